/** Tests of what only newer versions of PostgreSQL have. */
import { type TestAPI, test } from 'vitest'
import { POSTGRES_MAJOR } from './postgres-version.ts'

/** A test of what PostgreSQL has since a major version; skipped before it. */
export function testSince(major: number): TestAPI {
  return test.skipIf(POSTGRES_MAJOR < major) as TestAPI
}

/** Tests of features that only newer versions of PostgreSQL have. */
import { type TestContext, type TestOptions, test } from 'vitest'
import { POSTGRES_MAJOR } from './postgres-version.ts'

interface AddTest {
  (name: string, run: () => Promise<void>): void
  (name: string, options: TestOptions, run: () => Promise<void>): void
}

/**
 * A test of a feature that PostgreSQL has since a major version. On older versions the test is skipped with a
 * message.
 * @param lacks The feature that older versions do not have, such as `MERGE`.
 */
export function testSince(major: number, lacks: string): AddTest {
  if (POSTGRES_MAJOR >= major) return test
  return (name: string) => test(name, (context: TestContext) => context.skip(`needs PostgreSQL ${major}: ${lacks}`))
}

/** The database with the demo's sample data that `sampleDatabase` copies. */
import { runStatements } from '../../src/demo/run-statements.ts'
import { OWNER_ROLE, sampleStatements } from '../../src/demo/sample.ts'
import { execute } from './execute.ts'
import { sqlSince } from './postgres-version.ts'
import { PLAIN_ROLE } from './roles.ts'
import { urlOf } from './server.ts'

export const SAMPLE_TEMPLATE = 'sample_template'

export async function loadSample(port: number): Promise<void> {
  await execute(urlOf(port, 'postgres', 'postgres'), `create role ${OWNER_ROLE} nologin`)
  await execute(urlOf(port, 'postgres', 'postgres'), `create database ${SAMPLE_TEMPLATE} template template0`)
  await runStatements(urlOf(port, 'postgres', SAMPLE_TEMPLATE), sampleStatements(PLAIN_ROLE).map(forThisVersion))
}

/**
 * Adapts the sample, written for the embedded PostgreSQL, to older versions. Before 15 its view runs with the
 * rights of its owner, to whom row-level security applies as well.
 */
function forThisVersion(statement: string): string {
  return statement
    .replace('unique nulls not distinct', sqlSince(15, 'unique nulls not distinct', 'unique'))
    .replace('with (security_invoker = true)', sqlSince(15, 'with (security_invoker = true)'))
}

/** The database with the demo's sample data that `sampleDatabase` copies. */
import { runStatements } from '../../src/demo/run-statements.ts'
import { OWNER_ROLE, sampleStatements } from '../../src/demo/sample.ts'
import { execute } from './execute.ts'
import { PLAIN_ROLE, urlOf } from './server.ts'

export const SAMPLE_TEMPLATE = 'sample_template'

export async function loadSample(port: number): Promise<void> {
  await execute(urlOf(port, 'postgres', 'postgres'), `create role ${OWNER_ROLE} nologin`)
  await execute(urlOf(port, 'postgres', 'postgres'), `create database ${SAMPLE_TEMPLATE} template template0`)
  await runStatements(urlOf(port, 'postgres', SAMPLE_TEMPLATE), sampleStatements(PLAIN_ROLE))
}

/** The demo's sample data for tests: loaded once per run and copied for each caller. */
import { SAMPLE_TENANTS, type SampleTenant } from '../../src/demo/sample.ts'
import { ask, createDatabase, type TestDatabase } from './postgres.ts'

export interface SampleDatabase extends TestDatabase {
  /** The tenants by number of rows, largest first. */
  readonly tenants: readonly SampleTenant[]
}

export async function sampleDatabase(): Promise<SampleDatabase> {
  const { port, template } = await ask<{ port: number; template: string }>('/sample')
  return { ...(await createDatabase(port, template)), tenants: SAMPLE_TENANTS }
}

/** Reads whose generic plan is slower than plans for their values. */
import { beforeAll, expect, test } from 'vitest'
import { openSession } from '../../test/support/catalog.ts'
import { compileRead } from '../../test/support/compiled.ts'
import { databaseFixture, fixture } from '../../test/support/fixtures.ts'
import { execute } from '../../test/support/postgres.ts'
import { EVERYTHING } from '../access/rights.ts'
import { introspect } from '../catalog/introspect.ts'
import { ANONYMOUS } from '../identity/authenticate.ts'
import { createPool } from '../postgres/pool.ts'
import { parseUrl } from '../postgres/url.ts'
import { createPlanTrials, type PlanTrials } from './plan-trials.ts'
import { createRunner, type Runner } from './run.ts'
import { createSessionReset } from './session-reset.ts'
import { createSettings } from './settings.ts'

const database = databaseFixture()
const session = fixture(() => openSession(database.adminUrl))

beforeAll(async () => {
  // PostgreSQL expects half of the rows for an unknown kind, so its generic plan reads them in order of id.
  await execute(
    database.adminUrl,
    `create table parts (id int primary key, kind text not null);
     insert into parts select i, case when i <= 99990 then 'common' else 'rare' end
       from generate_series(1, 100000) as i;
     create index on parts (kind); grant all on parts to public; analyze parts`,
  )
})

async function compiled(text: string) {
  const catalog = await introspect(session.query, { schemas: ['public'], exposedViews: [] })
  return { catalog, statement: compileRead(text, { catalog, rights: EVERYTHING, searchLanguage: 'english' }) }
}

interface Reads {
  run(value: string): Promise<readonly string[]>
  /** Custom and generic plans so far, as PostgreSQL counts them. */
  plans(): Promise<{ readonly custom: number; readonly generic: number }>
}

async function reading<T>(text: string, planTrials: PlanTrials | null, use: (reads: Reads) => Promise<T>): Promise<T> {
  const { catalog, statement } = await compiled(text)
  const pool = createPool({ target: parseUrl(database.url), maxConnections: 1 })
  const runner: Runner = createRunner({
    ...{ database: pool, settings: createSettings({ statementTimeoutMs: 30_000 }), planTrials },
    ...{ reset: createSessionReset(() => catalog), onStaleSchema() {}, announcements: null },
  })
  try {
    return await use({
      async run(value) {
        const values = statement.parameters.map(one => ('literal' in one ? one.literal : value))
        const [rows = []] = await runner.read(ANONYMOUS, [{ statement, values }], { ms: 0 }).result
        return rows.map(row => String(row[0]))
      },
      async plans() {
        const query = `select custom_plans, generic_plans from pg_prepared_statements
          where statement ~ 'FROM public[.]parts'`
        const [result] = await pool.run([{ text: query, parameters: [] }]).result
        const [custom, generic] = (result?.rows[0] ?? []).map(Number)
        return { custom: custom ?? 0, generic: generic ?? 0 }
      },
    })
  } finally {
    await pool.close({ deadlineMs: 1_000 })
  }
}

const FIRST = 'get parts fields min(id) as first where kind = :kind'

test('without trials, PostgreSQL keeps a generic plan that is slow for a rare value', async () => {
  await reading(FIRST, null, async ({ run, plans }) => {
    for (let turn = 0; turn < 8; turn++) expect(await run('rare')).toEqual(['{"first":99991}'])
    expect(await plans()).toEqual({ custom: 5, generic: 3 })
  })
})

test('with trials, it is replaced by plans for the value', async () => {
  const trials = createPlanTrials()
  await reading(FIRST, trials, async ({ run, plans }) => {
    while (trials.stats().custom === 0) expect(await run('rare')).toEqual(['{"first":99991}'])
    const before = await plans()
    for (let turn = 0; turn < 5; turn++) expect(await run('rare')).toEqual(['{"first":99991}'])
    expect(await plans()).toEqual({ custom: before.custom + 5, generic: before.generic })
    expect(trials.stats().custom).toBe(1)
  })
})

test('a generic plan that is not slower is kept', async () => {
  const trials = createPlanTrials()
  await reading('get parts fields id where id = :id', trials, async ({ run, plans }) => {
    while (trials.stats().trials === 0) expect(await run('7')).toEqual(['{"id":7}'])
    const before = await plans()
    for (let turn = 0; turn < 10; turn++) await run('7')
    expect(await plans()).toEqual({ custom: before.custom, generic: before.generic + 10 })
    expect(trials.stats().custom).toBe(0)
  })
})

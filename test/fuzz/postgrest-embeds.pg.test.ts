/**
 * docs/guides/coming-from-postgrest.md: random requests with embedded relations and aggregates return what
 * SQL written by hand returns.
 */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { clientFixture } from '../support/fixtures.ts'
import { postgrestFixture } from '../support/postgrest.ts'

const fixture = postgrestFixture(
  `create table clients (id int primary key, size int);
   create table projects (id int primary key, client_id int references clients, size int);
   create table tasks (id int primary key, project_id int references projects, size int);
   insert into clients select n, n % 3 from generate_series(1, 6) n;
   insert into projects select n, nullif(n % 6, 0), n % 4 from generate_series(1, 15) n;
   insert into tasks select n, nullif(n % 11, 0), n % 5 from generate_series(1, 30) n;
   grant usage on schema public to :anon;
   grant select on clients, projects, tasks to :anon`,
  'aggregates_enabled = true',
)
const admin = clientFixture(() => fixture.adminUrl())

type TableName = 'clients' | 'projects' | 'tasks'

/** The join conditions of each relation, with `%` for the alias of the row around it. */
const RELATIONS: Readonly<
  Record<TableName, Readonly<Partial<Record<TableName, readonly [on: string, many: boolean]>>>>
> = {
  clients: { projects: ['x.client_id = %.id', true] },
  projects: { clients: ['x.id = %.client_id', false], tasks: ['x.project_id = %.id', true] },
  tasks: { projects: ['x.id = %.project_id', false] },
}

/** One level of a request. */
interface Asked {
  readonly table: TableName
  readonly inner: boolean
  /** The filter `id=gt.n`; null for none. */
  readonly above: number | null
  readonly limit: number | null
  readonly below: readonly Asked[]
}

function asked(table: TableName, depth: number): fc.Arbitrary<Asked> {
  const others = Object.keys(RELATIONS[table]) as TableName[]
  const below =
    depth === 0
      ? fc.constant([])
      : fc.subarray(others).chain(names => fc.tuple(...names.map(name => asked(name, depth - 1))))
  return fc.record({
    ...{ table: fc.constant(table), inner: fc.boolean(), below },
    above: fc.option(fc.integer({ min: 0, max: 12 })),
    limit: fc.option(fc.integer({ min: 0, max: 4 })),
  })
}

function selectOf({ below }: Asked): string {
  return ['id', ...below.map(item => `${item.table}${item.inner ? '!inner' : ''}(${selectOf(item)})`)].join(',')
}

function parametersOf(level: Asked, path: string): readonly string[] {
  const own = [
    `${path}order=id`,
    ...(level.above === null ? [] : [`${path}id=gt.${level.above}`]),
    ...(level.limit === null ? [] : [`${path}limit=${level.limit}`]),
  ]
  return [...own, ...level.below.flatMap(item => parametersOf(item, `${path}${item.table}.`))]
}

function conditionsOf(level: Asked, alias: string): readonly string[] {
  const required = level.below.filter(({ inner }) => inner).map(item => `exists (${rowsOf(item, level.table, alias)})`)
  return [...(level.above === null ? [] : [`${alias}.id > ${level.above}`]), ...required]
}

/** The rows of an embedded relation, without their members. */
function rowsOf(level: Asked, around: TableName, parent: string): string {
  const alias = `${parent}x`
  const [on = 'true'] = RELATIONS[around][level.table] ?? []
  const joined = on.replace('x.', `${alias}.`).replace('%', parent)
  return `select from ${level.table} ${alias} where ${[joined, ...conditionsOf(level, alias)].join(' and ')}`
}

function membersOf(level: Asked, alias: string): string {
  const nested = level.below.map(item => {
    const inner = `${alias}x`
    const [on = 'true', many = false] = RELATIONS[level.table][item.table] ?? []
    const joined = on.replace('x.', `${inner}.`).replace('%', alias)
    const where = [joined, ...conditionsOf(item, inner)].join(' and ')
    const rows =
      `select ${membersOf(item, inner)} as member, ${inner}.id from ${item.table} ${inner} where ${where} ` +
      `order by ${inner}.id ${many && item.limit !== null ? `limit ${item.limit}` : ''}`
    const value = many ? "coalesce(json_agg(m.member order by m.id), '[]')" : 'max(m.member::text)::json'
    return `'${item.table}', (select ${value} from (${rows}) m)`
  })
  return `json_build_object(${["'id'", `${alias}.id`].join(', ')}${nested.map(text => `, ${text}`).join('')})`
}

test('a random tree of embedded relations has the rows that SQL returns', { timeout: 120_000 }, async () => {
  const tree = fc.constantFrom<TableName>('clients', 'projects', 'tasks').chain(table => asked(table, 3))
  await fc.assert(
    fc.asyncProperty(tree, async level => {
      const reply = await fixture.ask(`/${level.table}?select=${selectOf(level)}&${parametersOf(level, '').join('&')}`)
      const where = ['true', ...conditionsOf(level, 't')].join(' and ')
      const limit = level.limit === null ? '' : `limit ${level.limit}`
      const { rows } = await admin.query(
        `select ${membersOf(level, 't')} as member from ${level.table} t where ${where} order by t.id ${limit}`,
      )
      expect(reply.status, reply.text).toBe(200)
      expect(reply.json).toEqual(rows.map(({ member }) => member))
    }),
    { numRuns: 120 },
  )
})

const FUNCTIONS = ['sum', 'min', 'max', 'count', 'avg'] as const

test.each(FUNCTIONS)('%s of a column and of a spread column has the groups that SQL returns', async name => {
  const { rows: groups } = await admin.query(
    `select json_build_object('client_id', client_id, '${name}', ${name}(size)) as member
     from projects group by client_id order by client_id`,
  )
  expect((await fixture.ask(`/projects?select=client_id,size.${name}()&order=client_id`)).json).toEqual(
    groups.map(({ member }) => member),
  )
  const { rows: spread } = await admin.query(
    `select json_build_object('project_id', t.project_id, 'v', ${name}(p.size)) as member
     from tasks t left join projects p on p.id = t.project_id group by t.project_id order by t.project_id`,
  )
  expect((await fixture.ask(`/tasks?select=project_id,...projects(v:size.${name}())&order=project_id`)).json).toEqual(
    spread.map(({ member }) => member),
  )
  const { rows: many } = await admin.query(
    `select json_build_object('size', c.size, 'v', ${name}(p.size)) as member
     from clients c left join projects p on p.client_id = c.id group by c.size order by c.size`,
  )
  const reply = await fixture.ask(`/clients?select=size,...projects(v:size.${name}())&order=size`)
  expect(reply.json.map(round)).toEqual(many.map(({ member }) => round(member)))
})

/** An average over merged parts can have other trailing digits. */
function round(row: { readonly size: number; readonly v: number | null }): unknown {
  return { ...row, v: row.v === null ? null : Math.round(row.v * 1e9) / 1e9 }
}

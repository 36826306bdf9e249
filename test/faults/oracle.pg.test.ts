/**
 * Random filters, sort orders and pages over known rows. The gateway's results equal those computed by a few
 * lines of JavaScript (docs/reference/reading.md). Every second row belongs to another tenant and must never
 * be returned.
 */
import fc from 'fast-check'
import { beforeAll, expect, test } from 'vitest'
import { databaseFixture, gatewayFixture } from '../support/fixtures.ts'
import { execute } from '../support/postgres.ts'

interface Item {
  readonly id: number
  /** Like `id`, but two rows share each value. With `k2` it is the key of `pairs`. */
  readonly k1: string
  readonly k2: number
  readonly n: number | null
  readonly t: string | null
  readonly s: string
}

const TEXTS = [
  '',
  'a',
  'A',
  'b',
  'ab',
  'a%b',
  'a_b',
  'a\\b',
  'a*b',
  'in.x',
  'is_null',
  'a,b',
  '(a)',
  '"a"',
  "a'b",
  'ä',
  'null',
  '{a}',
  'eq.a',
  ' a',
]
const NUMBERS = [-2_147_483_648, -1, 0, 1, 2, 10, 2_147_483_647]

/** Deterministic: element `i` of a list that is traversed with a different step each time. */
const at = <T>(list: readonly T[], i: number): T => list[(i * 7 + Math.floor(i / list.length)) % list.length] as T

const ITEMS: readonly Item[] = Array.from({ length: 60 }, (_, i) => ({
  id: i + 1,
  k1: at(TEXTS, i * 3),
  k2: i,
  n: i % 4 === 3 ? null : at(NUMBERS, i),
  t: i % 5 === 2 ? null : at(TEXTS, i),
  s: at(TEXTS, i + 5),
}))

let authorization: string
const database = databaseFixture()

beforeAll(async () => {
  const columns =
    'id int, k1 text collate "C", k2 int, n int, t text collate "C", s text collate "C" not null, ' +
    'tenant_id text not null'
  const rows = JSON.stringify(ITEMS).replaceAll("'", "''")
  await execute(
    database.adminUrl,
    ['items', 'pairs', 'heap']
      .map(
        table => `create table ${table} (${columns});
          insert into ${table} select x.*, 't1' from json_to_recordset('${rows}') as x(id int, k1 text, k2 int,
            n int, t text, s text);
          insert into ${table} select x.id + 1000, x.k1, x.k2 + 1000, x.n, x.t, x.s, 't2'
            from json_to_recordset('${rows}') as x(id int, k1 text, k2 int, n int, t text, s text);
          alter table ${table} enable row level security;
          alter table ${table} force row level security;
          create policy own on ${table} using (tenant_id = (select current_setting('app.current_tenant_id', true)));
          grant select on ${table} to app;`,
      )
      .concat('alter table items add primary key (id)', ';alter table pairs add primary key (k1, k2)')
      .join('\n'),
  )
})
const gateway = gatewayFixture(database)

beforeAll(async () => {
  authorization = `Bearer ${await gateway.token({ tenantId: 't1' })}`
})

interface Answer {
  readonly data: readonly { readonly id: number }[]
  readonly count: number
  readonly next_cursor: string | null
  readonly total: number
}

async function ask(path: string): Promise<Answer> {
  const response = await fetch(gateway.url + path, { headers: { authorization, prefer: 'count=exact' } })
  const text = await response.text()
  if (response.status !== 200) throw new Error(`${path} → ${response.status} ${text}`)
  return JSON.parse(text)
}

const idsOf = (items: readonly { readonly id: number }[]) => items.map(item => item.id)

// ---- conditions: their types, their notation, their meaning ----

type Column = 'id' | 'n' | 't' | 's'
type Scalar = string | number

type Condition =
  | {
      readonly kind: 'test'
      readonly column: Column
      readonly operator: string
      readonly negated: boolean
      readonly operand: Scalar | null
    }
  | {
      readonly kind: 'list'
      readonly column: Column
      readonly operator: string
      readonly negated: boolean
      readonly items: readonly Scalar[]
    }
  | {
      readonly kind: 'group'
      readonly name: 'and' | 'or'
      readonly negated: boolean
      readonly conditions: readonly Condition[]
    }

const isNumeric = (column: Column) => column === 'id' || column === 'n'

const scalar = (column: Column): fc.Arbitrary<Scalar> =>
  fc.constantFrom<Scalar[]>(...(isNumeric(column) ? NUMBERS : TEXTS))

const simple: fc.Arbitrary<Condition> = fc.constantFrom<Column[]>('id', 'n', 't', 's').chain(column => {
  const pattern = fc.constantFrom('a*', '*B', '*', 'a_b', 'a\\\\b', 'a\\_b', '*a*', '%', '', '-*', '1')
  return fc.oneof(
    fc.record({
      kind: fc.constant('test' as const),
      column: fc.constant(column),
      operator: fc.constantFrom('eq', 'ne', 'gt', 'gte', 'lt', 'lte', 'is_distinct'),
      negated: fc.boolean(),
      operand: scalar(column),
    }),
    fc.record({
      kind: fc.constant('test' as const),
      column: fc.constant(column),
      operator: fc.constantFrom('like', 'ilike', 'not_like', 'not_ilike'),
      negated: fc.boolean(),
      operand: pattern,
    }),
    fc.record({
      kind: fc.constant('test' as const),
      column: fc.constant(column),
      operator: fc.constantFrom('is_null', 'is_not_null'),
      negated: fc.boolean(),
      operand: fc.constant(null),
    }),
    fc.record({
      kind: fc.constant('list' as const),
      column: fc.constant(column),
      operator: fc.constantFrom('in', 'not_in'),
      negated: fc.boolean(),
      items: fc.array(scalar(column), { maxLength: 4 }),
    }),
  )
})

const { condition } = fc.letrec<{ condition: Condition; group: Condition }>(tie => ({
  condition: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    { weight: 3, arbitrary: simple },
    { weight: 2, arbitrary: tie('group') },
  ),
  group: fc.record({
    kind: fc.constant('group' as const),
    name: fc.constantFrom('and', 'or'),
    negated: fc.boolean(),
    conditions: fc.array(tie('condition'), { minLength: 1, maxLength: 3 }),
  }),
}))

const quote = (text: string) => `"${text.replace(/["\\]/g, '\\$&')}"`
const listOf = (items: readonly Scalar[]) => `(${items.map(item => quote(String(item))).join(',')})`

/** Inside a group. */
function written(condition: Condition): string {
  const not = condition.negated ? 'not.' : ''
  switch (condition.kind) {
    case 'group':
      return `${not}${condition.name}(${condition.conditions.map(written).join(',')})`
    case 'list':
      return `${condition.column}.${not}${condition.operator}.${listOf(condition.items)}`
    case 'test': {
      const operand = condition.operand === null ? '' : `.${quote(String(condition.operand))}`
      return `${condition.column}.${not}${condition.operator}${operand}`
    }
  }
}

/** As a separate parameter: a group, key style or value style. */
function parameter(condition: Condition, style: 'key' | 'value'): string {
  const not = condition.negated ? 'not.' : ''
  const pair = (name: string, value: string) => `${name}=${encodeURIComponent(value)}`
  if (condition.kind === 'group') return pair(not + condition.name, `(${condition.conditions.map(written).join(',')})`)
  const { column, operator } = condition
  const operand =
    condition.kind === 'list' ? listOf(condition.items) : condition.operand === null ? '' : String(condition.operand)
  if (style === 'key') return pair(`${column}.${condition.negated ? 'not.' : ''}${operator}`, operand)
  return pair(column, `${not}${operator}.${operand}`)
}

/** SQL's three-valued logic: null means unknown. */
function holds(condition: Condition, item: Item): boolean | null {
  const found = condition.kind === 'group' ? groupHolds(condition, item) : testHolds(condition, item)
  return condition.negated && found !== null ? !found : found
}

function groupHolds(group: Extract<Condition, { kind: 'group' }>, item: Item): boolean | null {
  const decides = group.name === 'or'
  const found = group.conditions.map(inner => holds(inner, item))
  if (found.includes(decides)) return decides
  return found.includes(null) ? null : !decides
}

function testHolds(condition: Exclude<Condition, { kind: 'group' }>, item: Item): boolean | null {
  const value = item[condition.column]
  const { operator } = condition
  if (operator === 'is_null') return value === null
  if (operator === 'is_not_null') return value !== null
  if (operator === 'is_distinct') return condition.kind === 'test' && value !== condition.operand
  // An empty list contains nothing, so every comparison with it is false, even for NULL.
  if (condition.kind === 'list' && condition.items.length === 0) return operator === 'not_in'
  if (value === null) return null
  if (condition.kind === 'list') return condition.items.includes(value) === (operator === 'in')
  const operand = condition.operand ?? ''
  if (operator.endsWith('like')) {
    const matches = patternOf(String(operand), operator.endsWith('ilike')).test(String(value))
    return operator.startsWith('not_') ? !matches : matches
  }
  const order = compare(value, operand)
  return (
    { eq: order === 0, ne: order !== 0, gt: order > 0, gte: order >= 0, lt: order < 0, lte: order <= 0 }[operator] ??
    null
  )
}

/** Compares numbers by value and text by bytes (collation "C"). */
function compare(a: Scalar, b: Scalar): number {
  return typeof a === 'number' ? a - Number(b) : Buffer.compare(Buffer.from(a), Buffer.from(String(b)))
}

function patternOf(pattern: string, anyCase: boolean): RegExp {
  const source = pattern.replaceAll('*', '%').replace(/\\(.)|%|_|[^\\%_]/gsu, (all, escaped: string | undefined) => {
    if (escaped !== undefined) return literally(escaped)
    return all === '%' ? '.*' : all === '_' ? '.' : literally(all)
  })
  return new RegExp(`^${source}$`, anyCase ? 'isu' : 'su')
}

const literally = (character: string) => character.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')

// ---- order ----

interface Key {
  readonly column: Column
  readonly descending: boolean
  readonly nulls: 'first' | 'last' | null
}

const keys: fc.Arbitrary<readonly Key[]> = fc.uniqueArray(
  fc.record({
    column: fc.constantFrom<Column[]>('n', 't', 's', 'id'),
    descending: fc.boolean(),
    nulls: fc.constantFrom(null, 'first' as const, 'last' as const),
  }),
  { maxLength: 3, selector: key => key.column },
)

const sortText = (sort: readonly Key[]) =>
  sort
    .map(key => `${key.column}:${key.descending ? 'desc' : 'asc'}${key.nulls === null ? '' : `.nulls${key.nulls}`}`)
    .join(',')

function byKeys(sort: readonly Key[], last: (a: Item, b: Item) => number) {
  return (a: Item, b: Item): number => {
    for (const { column, descending, nulls } of sort) {
      const [x, y] = [a[column], b[column]]
      if (x === y) continue
      if (x === null || y === null) {
        const nullsFirst = (nulls ?? (descending ? 'first' : 'last')) === 'first'
        return (x === null) === nullsFirst ? -1 : 1
      }
      const order = compare(x, y)
      if (order !== 0) return descending ? -order : order
    }
    return last(a, b)
  }
}

const byId = (a: Item, b: Item) => a.id - b.id
const byPair = (a: Item, b: Item) => compare(a.k1, b.k1) || a.k2 - b.k2

test('filters return exactly the rows that satisfy their conditions', async () => {
  const styles = fc.constantFrom('key' as const, 'value' as const)
  let found = 0
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(condition, styles), { minLength: 1, maxLength: 3 }), async filters => {
      const expected = ITEMS.filter(item => filters.every(([filter]) => holds(filter, item) === true))
      const query = filters.map(([filter, style]) => parameter(filter, style)).join('&')
      const answer = await ask(`/api/items?${query}&limit=100`)
      expect(idsOf(answer.data), query).toEqual(idsOf(expected))
      expect(answer.total).toBe(expected.length)
      found += expected.length
    }),
    { numRuns: 400 },
  )
  expect(found).toBeGreaterThan(1_000)
})

test('following the cursors returns each row once, in order', async () => {
  const limits = fc.constantFrom(1, 2, 7, 20, 59, 60, 61)
  await fc.assert(
    fc.asyncProperty(
      keys,
      limits,
      fc.constantFrom('items', 'pairs'),
      fc.option(simple, { freq: 3 }),
      async (sort, limit, table, filter) => {
        const expected = ITEMS.filter(item => filter === null || holds(filter, item) === true)
        const ordered = expected.toSorted(byKeys(sort, table === 'items' ? byId : byPair))
        const condition = filter === null ? '' : `&${parameter(filter, 'key')}`
        const query = `limit=${limit}&select=id&sort=${sortText(sort)}${condition}`
        const walked: number[] = []
        let cursor: string | null = null
        do {
          const page: Answer = await ask(`/api/${table}?${query}${cursor === null ? '' : `&cursor=${cursor}`}`)
          walked.push(...idsOf(page.data))
          cursor = page.next_cursor
          if (walked.length > ITEMS.length) break
        } while (cursor !== null)
        expect(walked, query).toEqual(idsOf(ordered))
      },
    ),
    { numRuns: 60 },
  )
})

test('following the cursors over a table without a key returns each row once', async () => {
  const walked: number[] = []
  let cursor: string | null = null
  do {
    const page: Answer = await ask(`/api/heap?limit=7&sort=t:desc,id${cursor === null ? '' : `&cursor=${cursor}`}`)
    walked.push(...idsOf(page.data))
    cursor = page.next_cursor
  } while (cursor !== null && walked.length <= ITEMS.length)
  expect(walked).toEqual(idsOf(ITEMS.toSorted(byKeys([{ column: 't', descending: true, nulls: null }], byId))))
})

test('distinct values are returned page by page', async () => {
  for (const [column, direction] of [
    ['t', ''],
    ['t', '-'],
    ['n', ''],
    ['s', '-'],
  ] as const) {
    const seen: unknown[] = []
    let cursor: string | null = null
    do {
      const page: Answer = await ask(
        `/api/items?distinct=${column}&sort=${direction}${column}&limit=3${cursor === null ? '' : `&cursor=${cursor}`}`,
      )
      seen.push(...page.data.map(row => (row as unknown as Item)[column]))
      cursor = page.next_cursor
    } while (cursor !== null && seen.length <= ITEMS.length)
    const descending = direction === '-'
    const sorted = ITEMS.toSorted(byKeys([{ column, descending, nulls: null }], byId)).map(item => item[column])
    expect(seen).toEqual([...new Set(sorted)])
  }
})

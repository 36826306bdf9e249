/**
 * Random trees of the whole grammar over a real schema, with names chosen to collide.
 * A statement that passes the check is valid in PostgreSQL: it may reject types and grouping, which the
 * check leaves to it, but never a name or the syntax, and an accepted statement uses only tables of the
 * catalog. Names mean the same as in PostgreSQL: a text returns the same rows whether the check has
 * resolved its names or PostgreSQL does.
 */
import fc from 'fast-check'
import { beforeAll, expect, test } from 'vitest'
import { openSession } from '../../test/support/catalog.ts'
import { databaseFixture, fixture } from '../../test/support/fixtures.ts'
import { POSTGRES_MAJOR } from '../../test/support/postgres-version.ts'
import { anyStatement } from '../../test/support/trees.ts'
import { introspect } from '../catalog/introspect.ts'
import type { Catalog } from '../catalog/model.ts'
import { compile } from '../compile/compile.ts'
import type { CompiledStatement as Printed } from '../compile/statement.ts'
import { GatewayError } from '../errors.ts'
import { printSql } from '../language/sql/print.ts'
import { parse } from '../language/syntax/parse.ts'
import type { Get, Statement } from '../language/tree/ast.ts'
import { checkRead } from './check.ts'
import { EVERYTHING } from './rights.ts'

let catalog: Catalog
const database = databaseFixture()
const session = fixture(() => openSession(database.adminUrl))

beforeAll(async () => {
  await session.run(SCHEMA)
  catalog = await introspect(session.query, { schemas: ['public', 'sales'], exposedViews: [] })
  await session.run('set statement_timeout = 5000')
})

/**
 * Tables with columns named like tables, aliases and row versions; and hidden tables, whose names are also
 * used inside.
 */
const SCHEMA = `
  create table users (id int primary key, name text, meta jsonb, "group" text, tags text[]);
  create table orders (id int8 primary key, user_id int references users, users jsonb, excluded int,
    total numeric, at timestamptz);
  create table "old" (id int primary key, "new" text, r int, page int);
  create schema sales;
  create table sales.users (id int primary key, sales int, secret text);
  create schema hidden;
  create table hidden.orders (id int, secret text);
  create function stable_one(int) returns int language sql stable as 'select $1';
  insert into users select i, 'u' || i, jsonb_build_object('name', 'm' || i, 'id', i), 'g' || i % 2, '{}'
    from generate_series(1, 4) i;
  insert into orders select i, i % 3 + 1, jsonb_build_object('name', 'o' || i), i * 3, i * 10
    from generate_series(1, 5) i;
  insert into "old" select i, 'n' || i, i * 7, i + 2 from generate_series(2, 4) i;
  insert into sales.users select i, i * 5, 's' || i from generate_series(3, 6) i;
`

const TABLES = ['users', 'orders', 'old', 'users', 'orders', 'users', 'orders', 'a', 'b', 'pg_class'] as const
const SCHEMAS = [null, null, null, null, null, null, null, 'public', 'public', 'sales', 'hidden', 'pg_catalog'] as const
const ALIASES = [
  'a',
  'b',
  'users',
  'orders',
  'old',
  'new',
  'excluded',
  'r',
  'n',
  'page',
  'public',
  'ctid',
  'id',
  'via',
] as const
const COLUMNS = [
  'id',
  'id',
  'name',
  'meta',
  'group',
  'tags',
  'user_id',
  'users',
  'excluded',
  'total',
  'new',
  'r',
  'page',
  'sales',
] as const
const SYSTEM = ['ctid', 'xmin', 'tableoid', 'secret'] as const
const FUNCTIONS = [
  'count',
  'lower',
  'max',
  'COALESCE',
  'stable_one',
  'now',
  'rank',
  'string_agg',
  'set_config',
  'ts_rewrite',
] as const
const TYPES = ['text', 'int4', 'jsonb', 'numeric', 'int8', 'regclass'] as const

/**
 * The same tree with names of the schema. Each word always maps to the same name, so that equal names stay
 * equal.
 */
function renamed(tree: Statement): Statement {
  const pick = <T>(list: readonly T[], word: string): T => list[hash(word) % list.length] as T
  const column = (word: string): string => (hash(word) % 23 === 0 ? pick(SYSTEM, word) : pick(COLUMNS, word))
  const walk = (node: unknown): unknown => {
    if (Array.isArray(node)) return node.map(walk)
    if (typeof node !== 'object' || node === null) return node
    const part = Object.fromEntries(Object.entries(node).map(([key, value]) => [key, walk(value)])) as Record<
      string,
      unknown
    >
    const text = (key: string): string => part[key] as string
    switch (part.kind) {
      case 'table':
        return { ...part, schema: pick(SCHEMAS, `${part.schema}${part.name}`), name: pick(TABLES, text('name')) }
      case 'column': {
        const path = part.path as string[]
        const isQualified = path.length > 1 && hash(path.join('.')) % 3 > 0
        return {
          ...part,
          path: path.map((word, index) => (index === 0 && isQualified ? pick(ALIASES, word) : column(word))),
        }
      }
      case 'name':
        return { ...part, text: pick([...ALIASES, ...COLUMNS], text('text')) }
      case 'function':
        return { ...part, schema: null, name: text('name') === 'extract' ? 'extract' : pick(FUNCTIONS, text('name')) }
      case 'type':
        return { ...part, schema: null, name: pick(TYPES, text('name')), modifiers: [], dimensions: 0 }
      case 'star':
        return { ...part, of: part.of === null ? null : pick(ALIASES, text('of')) }
      case 'table source':
      case 'query source':
      case 'nest':
      case 'field':
      case 'set':
      case 'del':
        return typeof part.alias === 'string' ? { ...part, alias: pick(ALIASES, part.alias) } : part
      default:
        return part
    }
  }
  return walk(tree) as Statement
}

function hash(word: string): number {
  let sum = 7
  for (const character of word) sum = (sum * 31 + (character.codePointAt(0) ?? 0)) % 1_000_003
  return sum
}

/** The SQL of a tree; null if the check rejects it, which only happens with an error for the caller. */
function printed(tree: Statement): Printed | null {
  const context = {
    catalog,
    rights: EVERYTHING,
    searchLanguage: 'english',
    parameterType: () => 'int4',
    isCallable: () => true,
  }
  try {
    if (tree.kind === 'get') return compile(tree, context, { kind: 'writing text', rowsMax: 10 })
    if (tree.kind === 'add' || tree.kind === 'set' || tree.kind === 'del')
      return compile(tree, context, { kind: 'write text', changedMax: null })
    return null
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    expect(error.message).not.toMatch(/undefined|\[object/)
    return null
  }
}

/**
 * Errors that are left to PostgreSQL, by SQLSTATE (PostgreSQL manual, appendix A): types of expressions,
 * which only it infers; what can appear in groups, windows, recursive tables and conflicts; duplicate
 * column names in one query.
 */
const SEMANTIC: ReadonlySet<string> = new Set([
  '0A000', // a set-returning function or a window where none can be
  '21000', // cardinality
  '42601', // lists of different lengths; only with the routines below
  '42701', // a column twice in a derived table's list
  '42702', // a derived table has two columns of that name
  '42704', // a window that is not defined
  '42710',
  '42712', // a common table twice
  '42725', // several operators or functions fit
  '42803', // grouping
  '42804', // types differ
  '42809', // no aggregate, no window function
  '42846', // no such cast
  '42883', // no such operator or function for these types
  '42P08', // a parameter of two types
  '42P10', // an unknown position, distinct on without its order, no unique key
  '42P18', // a parameter of no type
  '42P19', // recursion that PostgreSQL does not support
  '42P20', // a window where none can be
  '42P21', // collations
])

/**
 * `42601` is a syntax error, but PostgreSQL also uses it for lists of different lengths and constants to
 * sort by.
 */
const OF_ANALYSIS = new RegExp(
  [
    'non-integer constant in',
    'each UNION',
    'each INTERSECT',
    'each EXCEPT',
    'INSERT has more',
    'has [0-9]+ columns available',
    'subquery must return only one column',
    'subquery has too',
    'unequal number of entries',
    'UPDATE target',
  ].join('|'),
)

test('a tree that passes the check is valid SQL and uses only tables of the catalog', {
  timeout: 120_000,
}, async () => {
  const tally = { tried: 0, passed: 0, accepted: 0 }
  await fc.assert(
    fc.asyncProperty(anyStatement, async tree => {
      const statement = renamed(tree)
      tally.tried++
      const sql = printed(statement)
      if (sql === null) return
      tally.passed++
      const problem = await plan(sql.text, tally)
      if (problem !== null) throw new Error(`${problem}\n${sql.text}`)
    }),
    { numRuns: 8_000 },
  )
  // A property that holds for no case would pass too.
  expect(tally.passed).toBeGreaterThan(tally.tried / 100)
  expect(tally.accepted).toBeGreaterThan(tally.passed / 20)
})

/** The unexpected error that PostgreSQL reports for the text; null for none. */
async function plan(text: string, tally: { accepted: number }): Promise<string | null> {
  try {
    const json = await genericPlan(text)
    tally.accepted++
    const strange = [...json.matchAll(/"Schema": "([^"]*)"/g)].find(
      ([, schema]) => schema !== 'public' && schema !== 'sales',
    )
    return strange === undefined ? null : `it reads the schema ${strange[1]}`
  } catch (error) {
    const { code = '', message } = error as { code?: string; message: string }
    // Values that are computed while planning.
    if (code.startsWith('22')) return null
    if (code === '42601' && !OF_ANALYSIS.test(message)) return `${code} ${message}`
    return SEMANTIC.has(code) ? null : `${code} ${message}`
  }
}

/**
 * The plan as JSON; empty before PostgreSQL 16, which can only analyse a statement whose parameters have no
 * values.
 */
async function genericPlan(text: string): Promise<string> {
  if (POSTGRES_MAJOR >= 16) {
    const [[json] = []] = await session.query(`EXPLAIN (GENERIC_PLAN, VERBOSE, FORMAT JSON) ${text}`, [])
    return json ?? ''
  }
  await session.query(`PREPARE checked AS ${text}`, [])
  await session.query('DEALLOCATE checked', [])
  return ''
}

// ---- names
// -------------------------------------------------------------------------------------------------

interface Known {
  readonly alias: string
  /**
   * The qualified name by which the source can be mentioned as long as it has no alias; null if it has
   * none.
   */
  readonly qualified: string | null
  readonly columns: Readonly<Record<string, 'number' | 'text'>>
}

const OWN: Readonly<Record<string, Known['columns']>> = {
  users: { id: 'number', name: 'text' },
  orders: { id: 'number', user_id: 'number', excluded: 'number', total: 'number' },
  old: { id: 'number', new: 'text', r: 'number', page: 'number' },
  'sales.users': { id: 'number', sales: 'number', secret: 'text' },
}

/**
 * Generates texts whose sources shadow each other as often as possible, nested and next to common tables,
 * and which mention names in scope.
 */
class Author {
  #seed: number

  constructor(seed: number) {
    this.#seed = seed
  }

  query(): string {
    const tables: Record<string, Known['columns']> = {}
    const clause = this.#chance(0.4)
      ? `with ${['users', 'a'].slice(0, this.#below(2) + 1).map(name => {
          const { text, columns } = this.#get([], tables, 1)
          tables[name] = columns
          return `${name} as (${text})`
        })} `
      : ''
    return clause + this.#get([], tables, 3).text
  }

  #get(
    outer: readonly Known[][],
    tables: Record<string, Known['columns']>,
    depth: number,
    answer: 'rows' | 'a number' = 'rows',
  ): { text: string; columns: Known['columns'] } {
    const sources: Known[] = []
    const first = this.#source(sources, outer, tables, depth)
    const scopes = [sources, ...outer]
    const joins = Array.from({ length: this.#below(3) }, () => {
      const lateral = depth > 0 && this.#chance(0.2)
      const text = lateral
        ? this.#derived(sources, [[...sources], ...outer], tables, depth)
        : this.#source(sources, outer, tables, depth)
      return ` inner join ${lateral ? 'lateral ' : ''}${text} on ${this.#condition(scopes, tables, depth - 1)}`
    })
    const names = this.#some(['id', 'name', 'total', 'r', 'secret', 'new'])
    const fields = names.map(name => ({ name, type: this.#chance(0.6) ? ('number' as const) : ('text' as const) }))
    const values = fields.map(({ name, type }) => `${this.#value(type, scopes, tables, depth)} as ${name}`)
    const list = answer === 'rows' ? values.join(', ') : 'count(*)'
    const where = this.#chance(0.7) ? ` where ${this.#condition(scopes, tables, depth)}` : ''
    return {
      text: `get ${first}${joins.join('')} fields ${list}${where}`,
      columns: Object.fromEntries(fields.map(({ name, type }) => [name, type])),
    }
  }

  #source(
    sources: Known[],
    outer: readonly Known[][],
    tables: Record<string, Known['columns']>,
    depth: number,
  ): string {
    if (depth > 0 && this.#chance(0.25)) return this.#derived(sources, outer, tables, depth)
    const name = this.#one([...Object.keys(OWN), ...Object.keys(tables)])
    const bare = name.split('.').at(-1) ?? ''
    const alias = this.#chance(0.5) || sources.some(source => source.alias === bare) ? this.#alias(sources) : null
    const isOwn = tables[name] === undefined
    const spelled =
      isOwn && name in tables === false && this.#chance(0.3) && !name.includes('.') ? `public.${name}` : name
    sources.push({
      alias: alias ?? bare,
      qualified: alias === null && isOwn ? (name.includes('.') ? name : `public.${name}`) : null,
      columns: (spelled === name ? tables[name] : undefined) ?? OWN[name] ?? {},
    })
    return alias === null ? spelled : `${spelled} as ${alias}`
  }

  #derived(
    sources: Known[],
    outer: readonly Known[][],
    tables: Record<string, Known['columns']>,
    depth: number,
  ): string {
    const { text, columns } = this.#get(outer, tables, depth - 1)
    const alias = this.#alias(sources)
    sources.push({ alias, qualified: null, columns })
    return `(${text}) as ${alias}`
  }

  #alias(sources: readonly Known[]): string {
    const free = ['a', 'b', 'users', 'orders', 'old', 'public', 'id', 'r'].filter(
      name => !sources.some(({ alias }) => alias === name),
    )
    return this.#one(free)
  }

  #value(
    type: 'number' | 'text',
    scopes: readonly Known[][],
    tables: Record<string, Known['columns']>,
    depth: number,
  ): string {
    if (depth > 0 && this.#chance(0.2)) {
      return type === 'number' ? `(${this.#get(scopes, tables, depth - 1, 'a number').text})` : "'x'"
    }
    const scope = scopes[this.#chance(0.6) ? 0 : this.#below(scopes.length)] ?? []
    const found = scope.flatMap(source =>
      Object.entries(source.columns).flatMap(([name, of]) => (of === type ? [{ source, name }] : [])),
    )
    if (found.length === 0) return type === 'number' ? '1' : "'x'"
    const { source, name } = this.#one(found)
    const dotted = `${source.alias}.${name}`
    const spellings = [name, dotted, dotted, dotted, source.qualified === null ? dotted : `${source.qualified}.${name}`]
    return this.#one(spellings)
  }

  #condition(scopes: readonly Known[][], tables: Record<string, Known['columns']>, depth: number): string {
    const type = this.#chance(0.7) ? 'number' : 'text'
    const value = () => this.#value(type, scopes, tables, 0)
    if (depth <= 0 || this.#chance(0.5)) return `${value()} ${this.#one(['=', '<', '<=', '<>'])} ${value()}`
    if (this.#chance(0.3))
      return `(${this.#condition(scopes, tables, depth - 1)} or ${this.#condition(scopes, tables, depth - 1)})`
    return `exists (${this.#get(scopes, tables, depth - 1).text})`
  }

  #some(list: readonly string[]): readonly string[] {
    const first = this.#below(list.length)
    return list.slice(first, first + 1 + this.#below(2))
  }

  #one<T>(list: readonly T[]): T {
    return list[this.#below(list.length)] as T
  }

  #chance(part: number): boolean {
    return this.#below(1000) < part * 1000
  }

  #below(limit: number): number {
    this.#seed = (Math.imul(this.#seed, 1_103_515_245) + 12_345) >>> 0
    return Math.floor((this.#seed / 2 ** 32) * limit)
  }
}

test('a name means the same as in PostgreSQL', { timeout: 120_000 }, async () => {
  const tally = { compared: 0, refused: 0 }
  const context = { catalog, rights: EVERYTHING, searchLanguage: 'english' }
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 2 ** 31 - 1 }), async seed => {
      const text = new Author(seed).query()
      const tree = parse(text) as Get
      const plain = await answer(printSql(tree).text)
      let checkedText: string
      try {
        checkedText = printSql(checkRead(tree, context).query).text
      } catch (error) {
        if (!(error instanceof GatewayError)) throw error
        tally.refused++
        return
      }
      const ours = await answer(checkedText)
      if (typeof ours === 'string' && !OF_VALUES.test(ours)) {
        throw new Error(`${ours}\n${text}\n${checkedText}`)
      }
      // Syntax that only the gateway supports, such as `schema.table.column` of a derived table, has no
      // counterpart.
      if (typeof plain === 'string' || typeof ours === 'string') return
      tally.compared++
      expect({ text, rows: ours }).toEqual({ text, rows: plain })
    }),
    { numRuns: 2_500 },
  )
  expect(tally.compared).toBeGreaterThan(150)
  expect(tally.refused).toBeGreaterThan(10)
})

/**
 * Expected errors, because the generator ignores types: invalid values, operands of a wrong type, timeouts.
 */
const OF_VALUES = /^(22...|42883|42804|57014) /

/** The rows, sorted; for an error, its code and message. */
async function answer(sql: string): Promise<readonly string[] | string> {
  try {
    return (await session.query(`${sql} LIMIT 3000`, [])).map(row => JSON.stringify(row)).sort()
  } catch (error) {
    const { code = '', message } = error as { code?: string; message: string }
    return `${code} ${message}`
  }
}

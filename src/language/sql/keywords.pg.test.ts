/** The keyword lists match the server's, and every keyword of the server can be used as any kind of name. */
import { beforeAll, expect, test } from 'vitest'
import { clientFixture, databaseFixture } from '../../../test/support/fixtures.ts'
import { POSTGRES_MAJOR } from '../../../test/support/postgres-version.ts'
import type { Add, Del, Get, Merge, Set as SetStatement, Statement } from '../tree/ast.ts'
import { NOWHERE } from '../tree/ast.ts'
import {
  arithmetic,
  call,
  cast,
  column,
  compare,
  field,
  get,
  integer,
  isNull,
  literal,
  nest,
  order,
  star,
  tableName,
} from '../tree/build.ts'
import { EXTRACT_FIELDS, isAggregate, SYNTAX_FUNCTIONS, VALUE_FUNCTIONS } from '../tree/functions.ts'
import { COLUMN_ONLY, RESERVED, TYPE_OR_FUNCTION } from './keywords.ts'
import { printSql } from './print.ts'
import { inDoubleQuotes } from './quote.ts'

const database = databaseFixture()
let words: readonly { readonly word: string; readonly catcode: 'R' | 'T' | 'C' | 'U' }[]
const client = clientFixture(() => database.adminUrl)

beforeAll(async () => {
  words = (await client.query('select word, catcode::text from pg_get_keywords()')).rows
})

const CLASSES = [
  ['R', RESERVED],
  ['T', TYPE_OR_FUNCTION],
  ['C', COLUMN_ONLY],
] as const

test("the keyword classes match the server's", () => {
  const of = (code: string): readonly string[] =>
    words
      .filter(({ catcode }) => catcode === code)
      .map(({ word }) => word)
      .sort()
  expect(words.length).toBeGreaterThan(400)
  if (POSTGRES_MAJOR < 18) {
    // Keywords of newer versions are only quoted unnecessarily.
    for (const [code, ours] of CLASSES) expect(of(code).filter(word => !ours.has(word))).toEqual([])
    return
  }
  for (const [code, ours] of CLASSES) expect([...ours].sort()).toEqual(of(code))
})

test("the list of aggregates matches the server's", async () => {
  const { rows } = await client.query<{ proname: string }>(
    `select distinct proname from pg_proc join pg_aggregate on aggfnoid = pg_proc.oid
     where pronamespace = 'pg_catalog'::regnamespace and aggkind = 'n'`,
  )
  expect(rows.length).toBeGreaterThan(30)
  expect(rows.filter(({ proname }) => !isAggregate(call(proname, [column('a')])))).toEqual([])
  expect(isAggregate(call('lower', [column('a')]))).toBe(false)
  expect(isAggregate(call('mine', [column('a')], { distinct: true }))).toBe(true)
  expect(isAggregate(call('count', [], { star: true, over: 'w' }))).toBe(false)
})

test('the server accepts every field of extract and every function without parentheses', async () => {
  for (const name of EXTRACT_FIELDS) {
    const tree = get({
      table: { schema: 'pg_catalog', name: 'pg_class' },
      fields: [field(call('extract', [literal('text', name), call('now', [])]))],
    })
    await client.query(`prepare p as ${printSql(tree).text}`)
    await client.query('deallocate p')
  }
  for (const name of VALUE_FUNCTIONS) {
    if (name === 'system_user' && POSTGRES_MAJOR < 16) continue
    const tree = get({ table: { schema: 'pg_catalog', name: 'pg_class' }, fields: [field(call(name, []))] })
    await client.query(`prepare p as ${printSql(tree).text}`)
    await client.query('deallocate p')
  }
})

/** Statements that use one name for a table, its column, an alias, a common table and a window at once. */
function statementsAbout(word: string): readonly Statement[] {
  const table = { schema: null, name: word }
  const name = { kind: 'name', text: word, span: NOWHERE } as const
  const assignments = [{ kind: 'assignment', column: name, value: integer('1'), span: NOWHERE }] as const
  const parts = { with: null, table: tableName(table), span: NOWHERE }
  const plain = get({ table, fields: [field(column(word))] })
  const everything: Get = {
    ...get({
      table,
      alias: word,
      fields: [
        field(column(word, word), word),
        field(arithmetic('-', column(word), integer('1'))),
        field(call('count', [column(word)], { over: word })),
      ],
      where: isNull(column(word)),
      orderBy: [order(column(word), { nulls: 'first' }), order(arithmetic('*', column(word), column(word)))],
    }),
    windows: [
      {
        kind: 'named window',
        name,
        body: {
          kind: 'window',
          base: null,
          partitionBy: [column(word)],
          orderBy: [order(column(word))],
          frame: null,
          span: NOWHERE,
        },
        span: NOWHERE,
      },
      {
        kind: 'named window',
        name: { ...name, text: 'other' },
        body: { kind: 'window', base: word, partitionBy: [], orderBy: [], frame: null, span: NOWHERE },
        span: NOWHERE,
      },
    ],
  }
  const common: Get = {
    ...get({ table, fields: [star(word)] }),
    with: {
      kind: 'with',
      recursive: false,
      tables: [{ kind: 'cte', name, columns: [name], statement: plain, span: NOWHERE }],
      span: NOWHERE,
    },
    joins: [
      {
        kind: 'join',
        type: 'cross',
        lateral: false,
        source: { kind: 'query source', query: plain, alias: 'other', span: NOWHERE },
        on: null,
        span: NOWHERE,
      },
    ],
  }
  const grouped: Get = {
    ...get({ table, fields: [field(column(word)), field(call('count', [], { star: true }))] }),
    groupBy: [column(word)],
  }
  const nested = get({
    table,
    nests: [
      nest({
        many: true,
        table,
        alias: 'inner',
        name: word,
        on: compare('=', column('inner', word), column(word, word)),
      }),
    ],
  })
  const add: Add = {
    kind: 'add',
    ...parts,
    columns: [name],
    rows: { kind: 'values', rows: [[integer('1')]], span: NOWHERE },
    conflict: {
      kind: 'conflict',
      target: [name],
      update: { assignments, where: isNull(column(word, word)) },
      span: NOWHERE,
    },
    returning: [field(column(word))],
  }
  const set: SetStatement = {
    kind: 'set',
    ...parts,
    alias: null,
    joins: [],
    assignments,
    where: isNull(column(word)),
    returning: null,
  }
  const aliasedSet: SetStatement = {
    ...set,
    table: tableName({ schema: 'public', name: word }),
    alias: 'x',
    where: isNull(column('x', word)),
  }
  const del: Del = {
    kind: 'del',
    ...parts,
    alias: word,
    joins: [],
    where: isNull(column(word)),
    returning: [star(word)],
  }
  const merge: Merge = {
    kind: 'merge',
    ...parts,
    alias: word,
    using: { kind: 'query source', query: plain, alias: 'other', span: NOWHERE },
    on: compare('=', column('other', word), column(word, word)),
    whens: [
      {
        kind: 'when',
        match: 'matched',
        and: null,
        action: { kind: 'merge update', assignments, span: NOWHERE },
        span: NOWHERE,
      },
    ],
  }
  const statements = [plain, everything, common, grouped, nested, add, set, aliasedSet, del]
  return POSTGRES_MAJOR < 15 ? statements : [...statements, merge]
}

test('every keyword can name a table, a column, an alias, a common table and a window', {
  timeout: 60_000,
}, async () => {
  const names = [...words.map(({ word }) => word), 'A b', 'tÄst', 'do$llar$s', 'a"b', 'constructor']
  await client.query(
    names.map(word => `create table ${inDoubleQuotes(word)} (${inDoubleQuotes(word)} int unique)`).join(';'),
  )
  const failures: string[] = []
  for (const word of names) {
    for (const statement of statementsAbout(word)) {
      const { text } = printSql(statement)
      await client.query(`prepare p as ${text}`).then(
        () => client.query('deallocate p'),
        (error: Error) => failures.push(`${text}: ${error.message}`),
      )
    }
  }
  expect(failures).toEqual([])
})

test('every keyword can name a function and a type', { timeout: 60_000 }, async () => {
  const names = words.map(({ word }) => word).filter(word => !SYNTAX_FUNCTIONS.has(word) && word !== 'extract')
  await client.query('create schema f; set search_path to f, pg_catalog')
  await client.query(names.map(word => `create domain f.${inDoubleQuotes(word)} as int`).join(';'))
  await client.query(
    names
      .map(word => `create function f.${inDoubleQuotes(word)}(a int, b int) returns int language sql as 'select 1'`)
      .join(';'),
  )
  const failures: string[] = []
  for (const word of names) {
    const fields = [field(call(word, [integer('1'), integer('2')])), field(cast(literal('null', ''), word))]
    const { text } = printSql(get({ table: { schema: 'pg_catalog', name: 'pg_class' }, fields }))
    await client.query(`prepare p as ${text}`).then(
      () => client.query('deallocate p'),
      (error: Error) => failures.push(`${text}: ${error.message}`),
    )
  }
  expect(failures).toEqual([])
  await client.query('reset search_path')
})

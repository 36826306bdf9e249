/** The module that `printTypes` writes for a document: it compiles and matches the document. */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { builder } from '../language/builder/builder.ts'
import { parseSchema } from './parse.ts'
import { relationTypes } from './relation-types.ts'
import { printTypes } from './types.ts'
import { typesOfApi } from './types-of-api.ts'

/** Types of the columns of `table t { … }`, without their names. */
function types(columns: string, rest = ''): readonly string[] {
  return Array.from(
    printTypes(parseSchema(`table t { ${columns} } ${rest}`)).matchAll(/^ {8}\w+: (.*)$/gm),
    match => match[1] ?? '',
  )
}

describe('columns', () => {
  test('PostgreSQL’s own types', () => {
    expect(
      types('a int2 not_null, b int not_null, c i64 not_null, d real not_null, e f64 not_null, f numeric(3) not_null'),
    ).toEqual([...['number', 'number', 'number', 'number', 'number', 'number']])
    expect(
      types(
        'a str not_null, b bool not_null, c json not_null, d jsonb not_null, e timestamptz not_null, f uuid ' +
          'not_null, g money not_null',
      ),
    ).toEqual([...['string', 'boolean', 'Json', 'Json', 'string', 'string', 'string']])
    expect(types('a text[] not_null, b int[][] not_null, c jsonb[], d interval year, e pg_catalog.char')).toEqual([
      ...['string[]', 'number[][]', 'Json[] | null', 'string | null', 'string | null'],
    ])
  })

  test('a column type includes null unless it is a key, an identity, a serial or a not-null domain', () => {
    expect(
      types(
        'a int, b int not_null, c int identity, d serial, e int, f strict, g loose, h strict[], primary_key (b, e)',
        'domain strict int not_null domain loose text',
      ),
    ).toEqual(['number | null', 'number', 'number', 'number', 'number', 'number', 'string | null', 'number[] | null'])
  })

  test('enums, domains over them, and unknown types', () => {
    const rest = `enum mood { ok, 'it''s "bad"', 'a\\b' } enum none { } domain moods mood[] domain round round`
    expect(
      types(
        'a mood not_null, b mood[] not_null, c moods not_null, d none not_null, e nope not_null, f nope, g round ' +
          'not_null, h citext',
        rest,
      ),
    ).toEqual([
      "Enum<'mood'>",
      "Enum<'mood'>[]",
      "Enum<'mood'>[]",
      "Enum<'none'>",
      'Json',
      'Json',
      'Json',
      'string | null',
    ])
  })
})

// <<< what `printTypes` makes of DOCUMENT, here for the compiler to see
interface Schema {
  Tables: {
    /** Only the public ones *\/ */
    seen: {
      Row: { [column: string]: Json }
      Insert: { [column: string]: Json }
      Update: { [column: string]: Json }
      Relations: object
    }
    /**
     * People
     * who buy
     */
    users: {
      Row: {
        id: number
        /** Where it came from */
        'E-mail': string
        mood: Enum<'mood'> | null
        meta: Json
        tags: string[]
        age: number | null
        __proto__: boolean | null
      }
      Insert: New<'users', 'E-mail' | 'meta' | 'tags', 'id'>
      Update: Changes<'users', 'id'>
      Relations: object
    }
    'sales.Order Details': {
      Row: {
        id: number
        total: number
      }
      Insert: New<'sales.Order Details', 'id'>
      Update: Changes<'sales.Order Details'>
      Relations: object
    }
  }
  Functions: {
    total_of: { Args: { of: Written<number | null>; since?: Written<string | null> }; Returns: number | null }
    of_mood: { Args: readonly Json[]; Returns: Row<'users'>[] }
  }
  Enums: {
    mood: 'ok' | 'so-so' | 'it\'s "bad"'
    none: never
  }
}

type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json }

/** The name of a table. */
type Table = keyof Schema['Tables']

/** A row as the API answers it. */
type Row<T extends Table> = Schema['Tables'][T]['Row']

/** A label of an enum. */
type Enum<E extends keyof Schema['Enums']> = Schema['Enums'][E]

/** A value in a body: a number with more digits than a JavaScript number has is a text. */
type Written<V> = V extends number ? V | `${number}` : V

/** A row to insert. Columns with a default can be omitted. */
type New<T extends Table, Required extends keyof Row<T>, Never extends keyof Row<T> = never> = {
  [C in Required]: Written<Row<T>[C]>
} & { [C in Exclude<keyof Row<T>, Required | Never>]?: Written<Row<T>[C]> }

/** The columns to change. A number can also be incremented. */
type Changes<T extends Table, Never extends keyof Row<T> = never> = {
  [C in Exclude<keyof Row<T>, Never>]?:
    | Written<Row<T>[C]>
    | (number extends Row<T>[C] ? { $inc: Written<number> } : never)
}
// >>>

const DOCUMENT = `
  table users {
    id i64 identity always primary_key, \`E-mail\` text not_null, mood mood, meta jsonb not_null,
    tags text[] not_null, age int, __proto__ bool
  }
  table sales.\`Order Details\` { id int primary_key, total numeric not_null default 0 }
  enum mood { ok, 'so-so', 'it''s "bad"' }
  enum none { }
  view seen $$ select 1 $$
  function total_of(of i64, since date = now()) returns numeric language sql stable $$ select 1 $$
  function of_mood(mood) returns setof users language sql stable $$ select 1 $$
  comment on users 'People\nwho buy' comment on users.\`E-mail\` 'Where it came from'
  comment on seen 'Only the public ones */'`

test('the printed text equals the types that the compiler checks above', () => {
  const source = readFileSync(new URL(import.meta.url), 'utf8')
  const [, shown] = /\/\/ <<<.*\n([\s\S]*?)\/\/ >>>/.exec(source) ?? []
  expect(printTypes(parseSchema(DOCUMENT))).toBe(shown?.replaceAll(/^(?=type|interface)/gm, 'export ').trimStart())
})

test('the builder accepts the types', () => {
  const { get, add } = builder<Schema>()
  expect(get('users').fields('id', 'mood').toText()).toBe('get users\nfields id, mood')
  expect(get('sales.Order Details').fields('id').toSql({ parameters: 'keep' }).text).toContain('"Order Details"')
  add('users').values({ id: 9_007_199_254_740_993n, mood: 'so-so', meta: { a: [1, null] }, tags: ['x'], age: null })
  // @ts-expect-error a label that is not in the enum
  add('users').values({ mood: 'bad' })
  // @ts-expect-error a column that does not exist
  get('users').fields('nope')
  // @ts-expect-error a table that does not exist
  expect(get('Tables')).toBeDefined()
})

test('only the helpers that are used are printed', () => {
  expect(printTypes(parseSchema(''))).toBe(
    'export interface Schema {\n  Tables: object\n  Functions: object\n  Enums: object\n}\n',
  )
  const exported = (text: string) =>
    Array.from(printTypes(parseSchema(text)).matchAll(/^export \w+ (\w+)/gm), one => one[1])
  expect(exported("table t { a text not_null } enum Json { 'Json' }")).toEqual([
    'Schema',
    'Table',
    'Row',
    'Written',
    'New',
    'Changes',
  ])
  expect(exported('domain d jsonb domain e d[] table t { a e }')).toContain('Json')
})

test('a comment becomes code only as the name of a type', () => {
  const printed = (comment: string) =>
    printTypes(parseSchema(`table t { a jsonb not_null } comment on t.a '${comment}'`), { jsonTypes: './json.ts' })
  expect(printed('Its meta.\n@type Meta[]')).toContain('a: Meta[]\n')
  expect(printed('@type Meta')).toMatch(/^import type \{ Meta \} from '\.\/json\.ts'\n/)
  for (const text of ['@type Meta; evil', '@type', 'of @type Meta', '@type import("x")', '@type a.b']) {
    expect(printed(text)).toContain('a: Json\n')
    expect(printed(text)).not.toContain('import type')
  }
})

describe('relations', () => {
  const one = { name: 'users', table: 'users', cardinality: 'one', columns: ['user_id'], via: 'a_fkey' } as const

  test('have the short name of their key if nothing else has it', () => {
    expect(relationTypes([one])).toEqual([{ name: 'user', table: 'users', many: false }])
    expect(relationTypes([{ ...one, columns: ['tenant_id', 'user_id'] }])).toMatchObject([{ name: 'users' }])
    expect(relationTypes([{ ...one, columns: ['owner'] }])).toMatchObject([{ name: 'users' }])
  })

  test('are distinguished by column, constraint or junction', () => {
    const [made, approved] = [
      { ...one, columns: ['made_by'] },
      { ...one, columns: ['approved_by'], via: 'b_fkey' },
    ]
    expect(relationTypes([made, approved]).map(({ name }) => name)).toEqual(['users!approved_by', 'users!made_by'])
    const many = { ...one, cardinality: 'many', columns: ['id'] } as const
    expect(relationTypes([many, { ...many, via: 'other' }]).map(({ name }) => name)).toEqual([
      'users!a_fkey',
      'users!other',
    ])
    expect(relationTypes([{ ...many, name: 'a.b' }])).toMatchObject([{ name: '"a.b"' }])
  })

  test('that no name leads to are left out', () => {
    expect(relationTypes([one, one])).toEqual([])
  })
})

test('answers that are not those of a gateway are rejected, and odd members ignored', () => {
  for (const [schema, openapi] of [
    [null, {}],
    [{}, {}],
    [{ tables: [] }, { paths: {} }],
    [{ tables: {} }, []],
  ]) {
    expect(() => typesOfApi(schema, openapi)).toThrow(TypeError)
  }
  const schema = { tables: { t: { columns: [{ name: 'a', type: 7 }, { name: 3 }, null], relations: 'x' }, u: null } }
  const deep = { $ref: '#/components/schemas/t' }
  const openapi = { paths: { '/api/rpc/f': 5 }, components: { schemas: { t: { properties: { a: deep } } } } }
  expect(typesOfApi(schema, openapi)).toMatchObject({
    tables: [
      { name: 't', columns: [{ name: 'a', type: "Row<'t'>" }] },
      { name: 'u', columns: [] },
    ],
    functions: [{ name: 'f', arguments: [null], returns: ['Json'] }],
  })
})

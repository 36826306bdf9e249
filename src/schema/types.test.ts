/** The schema type for the builder: it compiles and matches the document. */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { builder } from '../language/builder/builder.ts'
import { parseSchema } from './parse.ts'
import { printTypes } from './types.ts'

/** Types of the columns of `table t { … }`, without their names. */
function types(columns: string, rest = ''): readonly string[] {
  return Array.from(
    printTypes(parseSchema(`table t { ${columns} } ${rest}`)).matchAll(/^ {6}\w+: (.*)$/gm),
    match => match[1] ?? '',
  )
}

describe('columns', () => {
  test('PostgreSQL’s own types', () => {
    expect(
      types('a int2 not_null, b int not_null, c i64 not_null, d real not_null, e f64 not_null, f numeric(3) not_null'),
    ).toEqual([...['number', 'number', 'string', 'number', 'number', 'string']])
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
      `'ok' | 'it\\'s "bad"' | 'a\\\\b'`,
      `('ok' | 'it\\'s "bad"' | 'a\\\\b')[]`,
      `('ok' | 'it\\'s "bad"' | 'a\\\\b')[]`,
      'never',
      'unknown',
      'unknown',
      'unknown',
      'string | null',
    ])
  })
})

// <<< what `printTypes` makes of DOCUMENT, here for the compiler to see
type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json }

interface Schema {
  /** Only the public ones *\/ */
  seen: { columns: { [column: string]: unknown } }
  /**
   * People
   * who buy
   */
  users: {
    columns: {
      id: string
      /** Where it came from */
      'E-mail': string
      mood: 'ok' | 'so-so' | null
      meta: Json
      tags: string[]
      age: number | null
      __proto__: boolean | null
    }
  }
  'sales.Order Details': {
    columns: {
      id: number
    }
  }
}
// >>>

const DOCUMENT = `
  table users { id i64 primary_key, \`E-mail\` text not_null, mood mood, meta jsonb not_null, tags text[] not_null, age int, __proto__ bool }
  table sales.\`Order Details\` { id int primary_key }
  enum mood { ok, 'so-so' }
  view seen $$ select 1 $$
  comment on users 'People\nwho buy' comment on users.\`E-mail\` 'Where it came from' comment on seen 'Only the public ones */'`

test('the printed text equals the type that the compiler checks above', () => {
  const source = readFileSync(new URL(import.meta.url), 'utf8')
  const [, shown] = /\/\/ <<<.*\n([\s\S]*?)\/\/ >>>/.exec(source) ?? []
  expect(printTypes(parseSchema(DOCUMENT))).toBe(shown?.replaceAll(/^(?=type|interface)/gm, 'export ').trimStart())
})

test('the builder accepts the type', () => {
  const { get, add } = builder<Schema>()
  expect(get('users').fields('id', 'mood').toText()).toBe('get users\nfields id, mood')
  expect(get('sales.Order Details').fields('id').toSql({ parameters: 'keep' }).text).toContain('"Order Details"')
  add('users').values({ id: '9007199254740993', mood: 'so-so', meta: { a: [1, null] }, tags: ['x'], age: null })
  // @ts-expect-error a label that is not in the enum
  add('users').values({ mood: 'bad' })
  // @ts-expect-error a column that does not exist
  get('users').fields('nope')
})

test('Json and other helpers are printed only if they are used', () => {
  expect(printTypes(parseSchema("enum Json { 'Json' } table t { Json `Json` }"))).toBe(
    "export interface Schema {\n  t: {\n    columns: {\n      Json: 'Json' | null\n    }\n  }\n}\n",
  )
  expect(printTypes(parseSchema('domain d jsonb domain e d[] table t { a e }'))).toMatch(
    /^export type Json[\s\S]*a: Json\[\] \| null/,
  )
  expect(printTypes(parseSchema(''))).toBe('export interface Schema {}\n')
  expect(printTypes(parseSchema('table t { }'))).toBe('export interface Schema {\n  t: {\n    columns: {}\n  }\n}\n')
})

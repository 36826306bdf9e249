import { describe, expect, test } from 'vitest'
import type { Column, DataType, Table } from '../../catalog/model.ts'
import { GatewayError } from '../../errors.ts'
import { type JsonArray, type ObjectOutline, parseJsonBody } from '../../json/json-body.ts'
import { nameRefusedColumn } from './body-error.ts'

const INTEGER = { name: 'int4', kind: 'base', category: 'N', of: null, labels: [] } as unknown as DataType
const DATE: DataType = { ...INTEGER, name: 'date', category: 'D' }
const TEXT: DataType = { ...INTEGER, name: 'text', category: 'S' }
const STATUS: DataType = { ...INTEGER, name: 'status', kind: 'enum', category: 'E', labels: ['draft', 'paid'] }
const LIST: DataType = { ...INTEGER, name: 'ints', kind: 'domain', of: { ...INTEGER, kind: 'array', of: INTEGER } }

const COLUMNS = (
  [
    ['id', INTEGER, 'integer'],
    ['day', DATE, 'date'],
    ['note', TEXT, 'text'],
    ['ids', { ...INTEGER, kind: 'array', of: INTEGER }, 'integer[]'],
    ['docs', { ...INTEGER, kind: 'array', of: { ...INTEGER, name: 'jsonb' } }, 'jsonb[]'],
    ['lists', { ...INTEGER, kind: 'array', of: LIST }, 'ints[]'],
    ['status', STATUS, '"Odd: ""status"""'],
  ] as const
).map(([name, type, typeText]) => ({ name, type, typeText }) as unknown as Column)
const TABLE = { columnByName: new Map(COLUMNS.map(column => [column.name, column])) } as unknown as Table

/** The error message for a body that PostgreSQL rejected with `message`. */
async function named(body: string, message: string, sqlstate = '22P02'): Promise<string> {
  const error = new GatewayError('QUERY_ERROR', message, { details: { sqlstate } })
  const parsed = parseJsonBody(Buffer.from(body), 1_000) as ObjectOutline | JsonArray
  return ((await nameRefusedColumn(error, TABLE, parsed)) as GatewayError).message
}

describe('the column is named', () => {
  test.each([
    ['{"id":"x"}', 'invalid input syntax for type integer: "x"', 'column "id" is integer and cannot hold "x"'],
    ['{"id":"x"}', 'ungültige Eingabesyntax für Typ integer: »x«', 'column "id" is integer and cannot hold "x"'],
    ['{"id":"x"}', 'syntaxe en entrée invalide pour le type integer : «\u00a0x\u00a0»', 'column "id" is integer and'],
    ['{"id":"x"}', '无效的类型 integer 输入语法: “x”', 'column "id" is integer and cannot hold "x"'],
    // If several columns match, the column of the type in the message is named.
    ['{"day":"x","id":"x"}', 'invalid input syntax for type integer: "x"', 'column "id" is integer'],
    ['{"id":"x","day":"x"}', 'invalid input syntax for type date: "x"', 'column "day" is date'],
    ['{"note":"x","ids":[1,"x"]}', 'invalid input syntax for type integer: "x"', 'column "ids" is integer[]'],
    ['{"id":1e999}', 'invalid input syntax for type integer: "1e999"', 'cannot hold "1e999"'],
    ['{"id":"a\\"b\\"\\u00e9"}', 'invalid input syntax for type integer: "a"b"é"', 'cannot hold "a"b"é"'],
    ['{"id":""}', 'invalid input syntax for type integer: ""', 'column "id" is integer and cannot hold ""'],
    ['{"status":"x"}', 'invalid input value for enum "Odd: ""status""": "x"', '; expected one of draft, paid'],
    // Values in the text form of an array.
    [
      '{"lists":[[1],["x"]]}',
      'invalid input syntax for type integer: "x"',
      'column "lists" is ints[] and cannot hold "x"',
    ],
    ['{"lists":[[1],2]}', 'malformed array literal: "2"', 'column "lists" is ints[] and cannot hold "2"'],
    ['{"lists":[[3],[[1,2], 4]]}', 'malformed array literal: "{{1,2},4}"', 'cannot hold "[[3],[[1,2], 4]]"'],
    ['{"lists":[[["a"],"b"]]}', 'malformed array literal: "{{"a"},"b"}"', 'column "lists" is ints[] and cannot hold'],
    ['{"docs":"{[}"}', 'malformed array literal: "{[}"', 'column "docs" is jsonb[] and cannot hold "{[}"'],
    ['[{"id":1},{"id":"x"}]', 'invalid input syntax for type integer: "x"', 'item 2: column "id" is integer'],
  ])('%s %s', async (body, message, expected) => {
    expect(await named(body, message)).toContain(expected)
  })
})

describe('the error is unchanged', () => {
  test.each([
    ['for a value that no column has', '{"id":"y"}', 'invalid input syntax for type integer: "x"', '22P02'],
    ['for a text column, which accepts any value', '{"note":"x"}', 'invalid hexadecimal digit: "x"', '22023'],
    ['without a quoted value', '{"id":"x"}', 'numeric field overflow', '22003'],
    ['for an array that no column has', '{"lists":[[1]]}', 'malformed array literal: "{2}"', '22P02'],
    ['with a single quote character', '{"id":"x"}', 'odd " message', '22000'],
    ['of another error class', '{"id":"x"}', 'invalid "x"', '23514'],
  ])('%s', async (_, body, message, sqlstate) => {
    expect(await named(body, message, sqlstate)).toBe(message)
  })
  test('for values that are not database errors', () => {
    const body = parseJsonBody(Buffer.from('{"id":"x"}'), 1) as ObjectOutline
    for (const error of [
      new Error('"x"'),
      undefined,
      new GatewayError('FORBIDDEN', '"x"', { details: { sqlstate: '22P02' } }),
    ]) {
      expect(nameRefusedColumn(error, TABLE, body)).toBe(error)
    }
  })
})

describe.each([
  ['quotes', (count: number) => '"'.repeat(2 * count), '[{'],
  ['brackets', (count: number) => `[${'"]'.repeat(count)}`, '[{'],
  ['nothing', (count: number) => '"'.repeat(2 * count), ''],
  ['braces', (count: number) => `{${'"}'.repeat(count)}`, '[{'],
])('a hostile message and body: %s', (_, valueFor, filling) => {
  const message = (value: string) => `invalid input syntax for type integer: "${value}"`
  const bodyOf = (rows: number, value: string) => {
    const row = (id: number) => ({ id, day: '', ids: Array(200).fill(filling), lists: [[filling], [filling]] })
    return JSON.stringify([...Array.from({ length: rows }, (_, id) => row(id)), { id: value }])
  }
  test('are searched in linear time, in several turns of the event loop', async () => {
    const value = valueFor(300_000)
    let turns = 0
    const timer = setInterval(() => {
      turns += 1
    }, 0)
    expect(await named(bodyOf(400, value), message(value))).toMatch(/column "ids?" is integer/)
    clearInterval(timer)
    if (filling !== '') expect(turns).toBeGreaterThan(2)
  })
})

test('a long array that agrees with the quoted one almost everywhere is compared in linear time', async () => {
  const close = '}'.repeat(400_000)
  const body = JSON.stringify({ ids: ['}'.repeat(800_000)], id: `{{${close}` })
  expect(await named(body, `malformed array literal: "{{${close}"`)).toContain('column "id" is integer')
})

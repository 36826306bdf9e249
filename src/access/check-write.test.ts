/**
 * Writes through the check: names, columns that PostgreSQL fills in, conflict targets, and the types of
 * parameters.
 */
import { describe, expect, test } from 'vitest'
import { baseType, catalogOf, tableOf } from '../../test/support/model.ts'
import type { Column, Table } from '../catalog/model.ts'
import { printWriteRows } from '../language/sql/print-write-rows.ts'
import type { Add, Parameter, RecordColumn } from '../language/tree/ast.ts'
import {
  add,
  and,
  assign,
  column,
  compare,
  conflict,
  del,
  field,
  getFrom,
  position,
  recordColumn,
  recordSource,
  set,
  star,
} from '../language/tree/build.ts'
import { checkWrite, type Write } from './check.ts'
import { EVERYTHING } from './rights.ts'
import { toTypeName } from './types.ts'

const plain = tableOf('orders', { id: 'int8', status: 'text', total: 'numeric', number: 'int4', sum: 'numeric' })
const orders = changed(plain, { number: { identity: 'always' }, sum: { generated: 'stored' } })
const catalog = catalogOf(
  { ...orders, primaryKey: ['id'], unique: [['status', 'total']] },
  { ...tableOf('orders_view', { id: 'int8' }), kind: 'view' },
  tableOf('bare', { id: 'int8' }),
)

function changed(table: Table, changes: Readonly<Record<string, Partial<Column>>>): Table {
  const columns = table.columns.map(known => ({ ...known, ...changes[known.name] }))
  return { ...table, columns, columnByName: new Map(columns.map(known => [known.name, known])) }
}

function check<T extends Write>(write: T) {
  return checkWrite(write, { catalog, rights: EVERYTHING, searchLanguage: 'english' })
}

const text = (write: Write): string => printWriteRows(check(write).query, { keys: [], rowsMax: null }).text

const named = { schema: null, name: 'orders' }
const bodyOf = (columns: readonly string[], value: Parameter = position(1)) =>
  recordSource(
    value,
    'x',
    columns.map((name): RecordColumn => recordColumn(name, toTypeName(baseType('text')))),
    'one',
  )

function insertion(columns: readonly string[], parts: Partial<Parameters<typeof add>[0]> = {}): Add {
  const fields = columns.map(name => field(column('x', name)))
  return add({ table: named, columns, from: getFrom(bodyOf(columns), { fields }), returning: [], ...parts })
}

const renaming = (columns: readonly string[]) =>
  set({
    table: named,
    alias: 't',
    from: bodyOf(columns),
    assignments: columns.map(name => assign(name, column('x', name))),
    where: compare('=', column('t', 'id'), position(2)),
    returning: [star()],
  })

describe('a checked write is complete', () => {
  test('an insert', () => {
    expect(text(insertion(['id', 'status'], { returning: [star(), field(column('id'), 'key')] }))).toBe(
      'INSERT INTO public.orders (id, status) SELECT x.id, x.status FROM json_to_record($1) AS x(id text, status ' +
        'text) ' +
        'RETURNING (SELECT row_to_json(r.*) FROM (SELECT orders.id, orders.status, orders.total, orders.number, ' +
        'orders.sum, orders.id AS key) AS r)',
    )
  })
  test('an update, whose parameter takes the column’s type and whose result has the table’s columns only', () => {
    expect(text(renaming(['status']))).toBe(
      'UPDATE public.orders AS t SET status = x.status FROM json_to_record($1) AS x(status text) WHERE t.id = ' +
        '$2::int8 ' +
        'RETURNING (SELECT row_to_json(r.*) FROM (SELECT t.id, t.status, t.total, t.number, t.sum) AS r)',
    )
    expect([...check(renaming(['status'])).parameters]).toEqual([
      [1, { typeName: 'json', type: null, subject: null, list: false }],
      [2, { typeName: 'int8', type: expect.objectContaining({ name: 'int8' }), subject: 'column "id"', list: false }],
    ])
  })
  test('a deletion', () => {
    const where = and(compare('=', column('status'), position(1)), compare('>', column('t', 'total'), position(2)))
    expect(text(del({ table: named, alias: 't', where, returning: [] }))).toBe(
      'DELETE FROM public.orders AS t WHERE t.status = $1::text AND t.total > $2::numeric',
    )
  })
  test('values of a query-language text', () => {
    const rows = { kind: 'values', rows: [[position(1), position(2)]], span: { start: 0, end: 0 } } as const
    expect(text({ ...insertion(['id', 'status']), rows })).toBe(
      'INSERT INTO public.orders (id, status) VALUES ($1::int8, $2::text)',
    )
  })
})

describe('rejected writes', () => {
  test.each([
    [
      'an unknown column, with the nearest',
      insertion(['id', 'statsu']),
      'has no column "statsu"; did you mean "status"?',
    ],
    ['a generated column', insertion(['sum']), 'column "sum" of table "orders" is generated from other columns'],
    ['an identity that is always numbered', insertion(['number']), 'PostgreSQL always numbers itself'],
    ['a column twice', insertion(['id', 'id']), 'column "id" is written twice'],
    ['an unknown column of an update', renaming(['nope']), 'has no column "nope"'],
    ['a generated column of an update', renaming(['sum']), 'is generated from other columns'],
    ['an unknown column of the answer', insertion(['id'], { returning: [field(column('nope'))] }), 'no column "nope"'],
    [
      'the body in the answer',
      { ...renaming(['status']), returning: [field(column('x', 'status'))] },
      '"x.status" begins with "x", which is neither a table',
    ],
  ])('%s', (_, write, message) => {
    expect(() => check(write)).toThrow(expect.objectContaining({ code: 'PARSE_ERROR' }))
    expect(() => check(write)).toThrow(message)
  })
  test('an unknown table', () => {
    const nowhere = { schema: null, name: 'ordres' }
    expect(() => check(del({ table: nowhere, alias: 't', where: column('id'), returning: [] }))).toThrow(
      expect.objectContaining({ code: 'NOT_FOUND', message: expect.stringContaining('did you mean "orders"?') }),
    )
  })
})

describe('a conflict target', () => {
  const upsert = (...target: readonly string[]) =>
    insertion(['id', 'status', 'total'], {
      conflict: conflict(target, [assign('status', column('excluded', 'status'))]),
    })
  test.each([[['id']], [['status', 'total']], [['total', 'status']]])('can be the key %j', target => {
    expect(text(upsert(...target))).toContain(
      ` ON CONFLICT (${target.join(', ')}) DO UPDATE SET status = excluded.status`,
    )
  })
  test.each([
    [['status'], 'not a unique key of table "orders"; expected id or status,total'],
    [['id', 'status'], 'not a unique key of table "orders"'],
    [['nope'], 'has no column "nope"'],
  ])('cannot be %j', (target, message) => {
    expect(() => check(upsert(...target))).toThrow(message)
  })
  test('of a view is left to PostgreSQL, and a table without keys has none', () => {
    const into = (name: string) => ({ ...upsert('id'), table: { ...upsert('id').table, name } })
    expect(() => check({ ...into('orders_view'), columns: [], conflict: conflict(['id'], null) })).not.toThrow()
    const bare = { ...into('bare'), columns: [], conflict: conflict(['id'], null) }
    expect(() => check(bare)).toThrow('it has no unique key, so rows cannot conflict')
  })
})

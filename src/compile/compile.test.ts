import { expect, test } from 'vitest'
import { catalogOf, tableOf } from '../../test/support/model.ts'
import { EVERYTHING } from '../access/rights.ts'
import { column, compare, field, get, jsonStep, not, position, text } from '../language/tree/build.ts'
import { compile } from './compile.ts'

const catalog = catalogOf(tableOf('orders', { id: 'int8', meta: 'jsonb' }))
const context = { catalog, rights: EVERYTHING, searchLanguage: 'english' }
const AS_ROWS = { kind: 'read', form: 'rows' } as const
const orders = { schema: null, name: 'orders' }

test('a statement has its text and the use of each parameter', () => {
  const where = compare('=', column('id'), position(1))
  const { text, parameters } = compile(get({ table: orders, fields: [field(column('id'))], where }), context, AS_ROWS)
  expect(text).toBe(
    'SELECT row_to_json(r.*) FROM (SELECT orders.id FROM public.orders WHERE orders.id = $1::int8) AS r',
  )
  expect(parameters).toMatchObject([{ key: 1, use: { subject: 'column "id"', typeName: 'int8' } }])
})

test('a tree deeper than the printer’s limit is an error of the caller', () => {
  let where = compare('=', column('id'), position(1)) as Parameters<typeof not>[0]
  for (let level = 0; level < 200; level++) where = not(where)
  expect(() => compile(get({ table: orders, where }), context, AS_ROWS)).toThrow(
    expect.objectContaining({ code: 'PARSE_ERROR', message: expect.stringContaining('levels deep') }),
  )
  let path = jsonStep('->', column('meta'), text('a'))
  for (let level = 0; level < 200; level++) path = jsonStep('->', path, text('a'))
  expect(() => compile(get({ table: orders, fields: [field(path, 'a')] }), context, AS_ROWS)).toThrow(
    expect.objectContaining({ code: 'PARSE_ERROR' }),
  )
})

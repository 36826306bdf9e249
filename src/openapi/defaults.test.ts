import { expect, test } from 'vitest'
import { arrayOf, baseType, tableOf } from '../../test/support/model.ts'
import type { DataType } from '../catalog/model.ts'
import { constantDefault } from './defaults.ts'
import { valueSchema } from './types.ts'

function defaultOf(type: DataType, text: string): unknown {
  const [column] = tableOf('t', { c: type }).columns
  if (column === undefined) throw new Error('the table has a column')
  return constantDefault({ ...column, default: text }, valueSchema(type, type.name))
}

test.each([
  ['text', "'it''s'::text", "it's"],
  ['text', "'now()'::text", 'now()'],
  ['varchar', "'a'::character varying", 'a'],
  ['int4', '0', 0],
  ['int4', "'-1'::integer", -1],
  ['int4', '(-1)', -1],
  ['numeric', '0.5', 0.5],
  ['bool', 'true', true],
  ['jsonb', `'{"a": [1]}'::jsonb`, { a: [1] }],
  ['timestamptz', 'now()', undefined],
  ['text', 'CURRENT_USER', undefined],
  ['text', "('a'::text || 'b'::text)", undefined],
  ['int8', "'9007199254740993'::bigint", undefined],
  ['int4', "nextval('s'::regclass)", undefined],
])('%s default %s', (type, text, value) => {
  expect(defaultOf(baseType(type), text)).toEqual(value)
})

test('the default of an array column is included only if it is empty', () => {
  expect(defaultOf(arrayOf(baseType('text')), "'{}'::text[]")).toEqual([])
  expect(defaultOf(arrayOf(baseType('text')), "'{a}'::text[]")).toBeUndefined()
})

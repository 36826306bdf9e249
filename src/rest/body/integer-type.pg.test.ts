/**
 * An integer without a declared type gets the type that PostgreSQL gives a constant with the same digits
 * (docs/reference/functions.md#arguments).
 */
import { expect, test } from 'vitest'
import { clientFixture, databaseFixture } from '../../../test/support/fixtures.ts'
import { integerType } from './integer-type.ts'

const database = databaseFixture()
const client = clientFixture(() => database.url)

test.each([
  ['0', 'int4'],
  ['-1', 'int4'],
  ['999999999', 'int4'],
  ['2147483647', 'int4'],
  ['-2147483648', 'int4'],
  ['2147483648', 'int8'],
  ['-2147483649', 'int8'],
  ['9223372036854775807', 'int8'],
  ['-9223372036854775808', 'int8'],
  ['9223372036854775808', 'numeric'],
  ['-9223372036854775809', 'numeric'],
  ['99999999999999999999', 'numeric'],
  ['-100000000000000000000000', 'numeric'],
])('%s is %s', async (digits, type) => {
  expect(integerType(Buffer.from(digits))).toBe(type)
  const { rows } = await client.query(`select t.typname from pg_type t where t.oid = pg_typeof(${digits})`)
  expect(rows).toEqual([{ typname: type }])
})

test('the type is derived from the given part of a buffer only', () => {
  expect(integerType(Buffer.from('[1,2147483648]'), 3, 13)).toBe('int8')
})

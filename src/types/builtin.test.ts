import { expect, test } from 'vitest'
/** The table of PostgreSQL's own types: each name means one type, and the derived sets match PostgreSQL. */
import { BARE_NAMES, byType, CASTABLE, DOCUMENTED, OWN_NAMES, SQL_NAMES, typeSet } from './builtin.ts'
import { INCOMPARABLE, isOneFamily, SEVERAL_WORDS, UNORDERED } from './traits.ts'

test('every name occurs once, as a type or as an alias', () => {
  const others = [...SQL_NAMES.keys(), ...OWN_NAMES.keys(), ...SEVERAL_WORDS.keys()]
  expect(new Set(others).size).toBe(others.length)
  expect(others.filter(name => DOCUMENTED.has(name))).toEqual([])
})

test('a cast accepts all names of a type, except of types whose values are names of database objects', () => {
  expect(['int4', 'int', 'integer', 'timestamptz', 'oid'].filter(name => !CASTABLE.has(name))).toEqual([])
  expect(['regclass', 'regrole', 'serial', 'citext', 'record', 'any'].filter(name => CASTABLE.has(name))).toEqual([])
})

test('the query language accepts unqualified names except internal types', () => {
  expect(['regclass', 'serial4', 'citext', 'void', 'nchar'].filter(name => !BARE_NAMES.has(name))).toEqual([])
  expect(['pg_lsn', 'cid', 'record', 'anyelement'].filter(name => BARE_NAMES.has(name))).toEqual([])
})

test('a type without = has no order', () => {
  expect([...INCOMPARABLE].filter(name => !UNORDERED.has(name))).toEqual([])
  expect(UNORDERED.size).toBeGreaterThan(INCOMPARABLE.size)
})

test('types of one family compare with each other, others do not', () => {
  expect(isOneFamily('int4', 'numeric')).toBe(true)
  expect(isOneFamily('date', 'timestamptz')).toBe(true)
  expect(isOneFamily('int4', 'text')).toBe(false)
  expect(isOneFamily('uuid', 'jsonb')).toBe(false)
  expect(isOneFamily('constructor', 'constructor')).toBe(false)
})

test('lookups of arbitrary names are safe', () => {
  expect(byType({ int4: 1 }).get('int4')).toBe(1)
  expect(byType({ int4: 1 }).get('toString')).toBeUndefined()
  expect(typeSet('text').has('varchar')).toBe(false)
})

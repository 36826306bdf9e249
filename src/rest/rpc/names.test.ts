/**
 * The functions that a name refers to (docs/reference/functions.md), and the names that are rejected before
 * anything else is checked.
 */
import { expect, test } from 'vitest'
import { catalogWith, functionOf } from '../../../test/support/functions.ts'
import { parseFunctionList } from './function-list.ts'
import { callName, functionsNamed, type NameRules } from './names.ts'

const catalog = catalogWith(
  functionOf('add(a int4)'),
  functionOf('add(a text)'),
  functionOf('sales.odd()'),
  functionOf('toString()'),
  functionOf('report()', { schema: 'sales' }),
)
const FREE: NameRules = { qualified: false, allowed: null }
const QUALIFIED: NameRules = { qualified: true, allowed: null }
const LISTED: NameRules = {
  qualified: false,
  allowed: parseFunctionList('ADD\nsales.missing\ngone', 'public', 'rpc.txt'),
}

const meant = (name: string, rules: NameRules) => {
  const overloads = functionsNamed(catalog, name, rules)
  return [overloads[0]?.schema, overloads[0]?.name, overloads.length]
}

test('a bare name means the first schema, and schema.name any schema', () => {
  expect(meant('add', FREE)).toEqual(['public', 'add', 2])
  expect(meant('public.add', FREE)).toEqual(['public', 'add', 2])
  expect(meant('sales.report', FREE)).toEqual(['sales', 'report', 1])
  expect(meant('sales.odd', FREE)).toEqual(['public', 'sales.odd', 1])
  expect(meant('toString', FREE)).toEqual(['public', 'toString', 1])
})

test.each(['report', 'ADD', 'pg_catalog.now', 'now', 'public.report', 'other.add', '', '.', 'constructor', 'sales.'])(
  '%j is not a function',
  name => {
    expect(() => functionsNamed(catalog, name, FREE)).toThrow(expect.objectContaining({ code: 'NOT_FOUND' }))
  },
)

test('the error for an unknown name suggests the nearest name that can be called', () => {
  expect(() => functionsNamed(catalog, 'ad', FREE)).toThrow('there is no function "ad"; did you mean "add"?')
  expect(() => functionsNamed(catalog, 'sales.reprot', QUALIFIED)).toThrow('did you mean "sales.report"?')
  expect(() => functionsNamed(catalog, 'public.ad', QUALIFIED)).toThrow('did you mean "public.add"?')
})

test('a bare name is answered with 403 where names must be qualified, whether or not the function exists', () => {
  expect(meant('public.add', QUALIFIED)).toEqual(['public', 'add', 2])
  expect(meant('sales.report', QUALIFIED)).toEqual(['sales', 'report', 1])
  for (const name of ['add', 'missing']) {
    expect(() => functionsNamed(catalog, name, QUALIFIED)).toThrow(expect.objectContaining({ code: 'FORBIDDEN' }))
  }
  expect(() => functionsNamed(catalog, 'sales.odd', QUALIFIED)).toThrow(expect.objectContaining({ code: 'NOT_FOUND' }))
})

test('an unlisted name is answered with 403 even if the function exists, a listed missing one with 404', () => {
  expect(meant('add', LISTED)).toEqual(['public', 'add', 2])
  expect(meant('public.add', LISTED)).toEqual(['public', 'add', 2])
  for (const name of ['sales.report', 'report', 'missing', 'sales.odd', 'toString']) {
    expect(() => functionsNamed(catalog, name, LISTED)).toThrow(expect.objectContaining({ code: 'FORBIDDEN' }))
  }
  for (const name of ['sales.missing', 'gone', 'public.gone']) {
    expect(() => functionsNamed(catalog, name, LISTED)).toThrow(expect.objectContaining({ code: 'NOT_FOUND' }))
  }
})

test('callName returns a name that resolves to the function', () => {
  for (const rules of [FREE, QUALIFIED]) {
    for (const [of] of catalog.functions.values()) {
      if (of === undefined || (rules.qualified && of.name.includes('.'))) continue
      expect(functionsNamed(catalog, callName(of, rules), rules)).toContain(of)
    }
  }
})

/**
 * A cached text is not parsed, checked or printed again, but everything that may have changed since is
 * checked.
 */
import { expect, test } from 'vitest'
import { catalogOf, tableOf } from '../../test/support/model.ts'
import type { Approvals } from '../access/list/approvals.ts'
import { shapeOfQuery } from '../access/list/query-shape.ts'
import { EVERYTHING } from '../access/rights.ts'
import { compile } from '../compile/compile.ts'
import { createPlanCache } from '../compile/plans.ts'
import type { ReadStatement } from '../compile/statement.ts'
import { GatewayError } from '../errors.ts'
import { ANONYMOUS } from '../identity/authenticate.ts'
import type { JsonType, JsonValue } from '../json/json-body.ts'
import { parse } from '../language/syntax/parse.ts'
import type { Get } from '../language/tree/ast.ts'
import { STATEMENT_LIMITS } from '../statement-limits.ts'
import type { QueryRequest } from './request.ts'
import { createTextPlans, printClasses, TEXT_CHARACTERS_MAX, type TextPlansOptions } from './text-plans.ts'

const catalog = catalogOf(tableOf('orders', { id: 'int8', note: 'text' }))
const value = (type: JsonType, text: string): JsonValue => ({ type, bytes: Buffer.from(text) })
const request = (text: string, ...values: readonly JsonValue[]): QueryRequest => ({
  text,
  values: new Map(values.map((of, index) => [index + 1, of])),
})

function open(parts: Partial<TextPlansOptions> = {}) {
  const cache = createPlanCache()
  const texts = createTextPlans<ReadStatement>('text', {
    view: () => ({ catalog, rights: EVERYTHING }),
    ...{ searchLanguage: 'english', approvals: null, isCallable: () => true, allowed: () => null },
    ...{ limits: { maxInValues: 5, maxParameters: 1_000, maxTextFormBytes: 0 }, plans: cache, ...parts },
  })
  let compiled = 0
  const ask = (of: QueryRequest, purpose = '') =>
    texts.of(of, of, ANONYMOUS, purpose, (tree, context) => {
      compiled += 1
      return compile(tree as Get, context, { kind: 'read text', rowsMax: 0 })
    })
  return { ask, compiled: () => compiled, cache }
}

const ONE = 'get orders where id = $1'

test('the same text with other values of the same kind is compiled once', () => {
  const { ask, compiled, cache } = open()
  const first = ask(request(ONE, value('integer', '1')))
  expect(ask(request(ONE, value('integer', '2')))).toBe(first)
  expect(compiled()).toBe(1)
  expect(cache.stats()).toMatchObject({ hits: { text: 1 }, misses: { text: 1 }, entries: 1 })
  ask(request(ONE, value('integer', '1')), 'for something else')
  ask(request(ONE, value('integer', '5000000000')))
  ask(request(ONE, value('string', '"1"')))
  ask(request(ONE, value('string', `"${'1'.repeat(2_000)}"`)))
  expect(compiled()).toBe(5)
})

test('a long text is compiled each time', () => {
  const { ask, compiled, cache } = open()
  const long = `get orders where note = '${'x'.repeat(TEXT_CHARACTERS_MAX)}'`
  for (let times = 0; times < 2; times++) ask(request(long))
  expect([compiled(), cache.stats().entries]).toEqual([2, 0])
})

test('nothing is cached if the actual values pass but the longest values of their class would not', () => {
  const limits = { ...STATEMENT_LIMITS, maxBuiltValueBytes: 8 }
  const { ask, cache } = open({ view: () => ({ catalog, rights: EVERYTHING, limits }) })
  const text = 'get orders fields concat($1, note) as a'
  for (let times = 0; times < 2; times++) ask(request(text, value('string', `"${'x'.repeat(31)}"`)))
  expect(cache.stats()).toMatchObject({ entries: 0, misses: { text: 2 } })
  expect(() => ask(request(text, value('string', `"${'x'.repeat(600)}"`)))).toThrow(/more than 512 bytes/)
})

test('a plan that may call a function is compiled again for a different list of functions', () => {
  let allowed: object | null = null
  const { ask, compiled } = open({ allowed: () => allowed })
  for (let times = 0; times < 2; times++) ask(request('get orders'))
  expect(compiled()).toBe(1)
  allowed = {}
  for (let times = 0; times < 2; times++) ask(request('get orders'))
  expect(compiled()).toBe(2)
})

test('the allow-list is checked each time, with the same shape and line', () => {
  const asked: unknown[] = []
  let refuses = false
  const approvals: Approvals = {
    approve(_, { key, values, line }) {
      asked.push({ key, values, line: line() })
      if (refuses) throw new GatewayError('FORBIDDEN', 'not on the list')
    },
    answered() {},
  }
  const { ask } = open({ approvals })
  const text = "get orders where note = 'x' and id = 1"
  const { key, values, line } = shapeOfQuery(parse(text))
  for (let times = 0; times < 2; times++) ask(request(text))
  const shape = { key, values, line: line() }
  expect(asked).toEqual([shape, shape])
  refuses = true
  expect(() => ask(request(text))).toThrow('not on the list')
})

test('the cache key of values is unambiguous', () => {
  const of = (...entries: readonly (readonly [string | number, JsonValue])[]) =>
    printClasses({ text: '', values: new Map(entries) })
  const one = value('integer', '1')
  const all = [
    of(),
    of([1, one]),
    of([1, value('string', `"${'x'.repeat(31)}"`)]),
    of([1, value('string', `"${'x'.repeat(1_022)}"`)]),
    of([1, value('string', `"${'x'.repeat(1_023)}"`)]),
    of([1, one], [2, one]),
    of(['1 int4 5;1:2', one]),
    of(['a', one], ['b', one]),
    of(['a int4 5;1:b', one]),
  ]
  expect(all.filter((text, index) => all.indexOf(text) === index)).toHaveLength(all.length - 1)
  expect(all[2]).toBe(all[3])
})

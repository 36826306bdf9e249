/**
 * docs/guides/allow-list.md#texts-of-the-query-language: a text with `?` for its values, and the line that
 * approves it.
 */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { anyStatement } from '../../../test/support/trees.ts'
import { formatStatement } from '../../language/format/format.ts'
import { parse } from '../../language/syntax/parse.ts'
import type { Statement } from '../../language/tree/ast.ts'
import { LanguageError } from '../../language/tree/error.ts'
import { createPatternSet } from './pattern.ts'
import { parseQueryPattern, shapeOfQuery } from './query-shape.ts'

const line = (query: string) => shapeOfQuery(parse(query)).line()

function isApproved(by: string, query: string | Statement): boolean {
  const set = createPatternSet()
  set.add(parseQueryPattern(by))
  return set.has(shapeOfQuery(typeof query === 'string' ? parse(query) : query))
}

describe('the shape of a query text', () => {
  test.each([
    ["get orders where status = 'paid' limit 10", 'get orders where status = ? limit ?'],
    ['GET orders WHERE active = true AND note is null', 'get orders where active = ? and note is null'],
    ['get orders where id = $1 and total > :least offset $2', 'get orders where id = ? and total > ? offset ?'],
    ['get t where a < -5 and b > - 2.5 and c = -$1', 'get t where a < ? and b > ? and c = ?'],
    ["get t where a in ('x', 'y', $1) and b not in :ids", 'get t where a in (?) and b not in (?)'],
    ['get t where a = [1, 2] and b in (1, lower(c))', 'get t where a = [?] and b in (?, lower(c))'],
    ['get t where at > now() - 24h and a between 1 and 2', 'get t where at > now() - ? and a between ? and ?'],
    ["get t where '2026-01-01'::date < at", 'get t where ?::date < at'],
    ['get t where meta ? \'a\' and meta @> {"a": 1}', 'get t where meta ? ? and meta @> ?'],
    ['add t fields a, b values 1, null returning id', 'add t fields a, b values ?, ? returning id'],
    ["set t values a = 'x', n = n + 1 where id = 7", 'set t values a = ?, n = n + ? where id = ?'],
    ['del t where id = 7 -- that one', 'del t where id = ?'],
    [
      'get t nest many u { where x = 1 limit 5 } where exists (get v where y = 2 limit 3)',
      'get t nest many u { where x = ? limit ? } where exists (get v where y = ? limit ?)',
    ],
    ['explain get t where a = 1', 'explain get t where a = ?'],
    [
      'get t fields count(distinct 5), case 1 when 2 then 3 else 4 end',
      'get t fields count(distinct ?), case ? when ? then ? else ? end',
    ],
  ])('%s', (query, expected) => {
    expect(line(query)).toBe(expected)
    expect(isApproved(expected, query)).toBe(true)
  })
  test('keeps the keys of JSON paths', () => {
    const query = "get t fields meta ->> 'theme' as theme where a #>> '{b,0}' = 'x' and c json_exists '$.d'"
    expect(line(query)).toBe("get t fields meta ->> 'theme' as theme where a #>> '{b,0}' = ? and c json_exists '$.d'")
    expect(isApproved(line(query), query)).toBe(true)
    expect(isApproved(line(query), query.replace('theme', 'secret'))).toBe(false)
    expect(isApproved(line(query), query.replace('$.d', '$.e'))).toBe(false)
    expect(isApproved('get t fields meta ->> ?', "get t fields meta ->> 'secret'")).toBe(true)
    const last = 'get t fields a -> -1'
    expect(line(last)).toBe(last)
    expect([isApproved(last, last), isApproved(last, 'get t fields a -> 1')]).toEqual([true, false])
    // A parameter can have any value.
    expect(isApproved("get t fields meta ->> 'theme'", 'get t fields meta ->> $1')).toBe(false)
  })
})

describe('a line of the list', () => {
  test('matches however it is formatted', () => {
    expect(isApproved('GET  `orders`  WHERE (status = :x) ;', "get orders where status = 'paid'")).toBe(true)
    expect(isApproved('get t where id in ?', 'get t where id in (1, 2)')).toBe(true)
    expect(isApproved('get t where id in (?, ?)', 'get t where id in (1, 2, 3)')).toBe(true)
    expect(isApproved('get t where a < -?', 'get t where a < -5')).toBe(true)
    expect(isApproved('get t where meta??', "get t where meta ? 'a'")).toBe(true)
  })
  test('requires the values that it contains', () => {
    expect(isApproved('get t where public = true', 'get t where public = true')).toBe(true)
    expect(isApproved('get t where public = true', 'get t where public = false')).toBe(false)
    expect(isApproved('get t where public = true', 'get t where public = $1')).toBe(false)
    expect(isApproved('get t where a = 1 and b = ? limit 10', 'get t where a = 1 and b = 5 limit 10')).toBe(true)
    expect(isApproved('get t where a = 1 and b = ? limit 10', 'get t where a = 1 and b = 5 limit 11')).toBe(false)
    expect(isApproved('get t where a = 1', "get t where a = '1'")).toBe(false)
    expect(isApproved('get t where a = 1', 'get t where a = -1')).toBe(false)
    expect(isApproved('get t where a = -1', 'get t where a = 1')).toBe(false)
  })
  test.each([
    ['get orders', 'get users'],
    ['get orders where a = ?', 'get orders where b = 1'],
    ['get orders where a = ?', 'get orders where a > 1'],
    ['get orders where a = ?', 'get orders where a = 1 or true'],
    ['get orders where a = ?', 'get orders where a = b'],
    ['get orders where a = ?', 'get orders where a = (get u fields max(b))'],
    ['get orders where a = ?', 'get orders where a = 1 limit 1'],
    ['get orders where a in (?)', 'get orders where a in (b)'],
    ['get orders where a in (?)', 'get orders where a in (1, b)'],
    ['get orders', 'count orders'],
    ['get orders', 'export orders'],
    ['get orders', 'get orders fields id'],
    ['get orders', 'explain get orders'],
    ['del t where id = ?', 'del t where id = 1 returning *'],
    ['del t where id = ?', 'del t where all'],
    ['get t where a::int = ?', 'get t where a::text = 1'],
  ])('%s does not approve %s', (by, query) => {
    expect(isApproved(by, query)).toBe(false)
  })
  test('does not fix the number of values in a list', () => {
    expect(() => parseQueryPattern("get t where a in ('x', ?)")).toThrow('in (?)')
  })
  test.each([
    '',
    'get',
    'get t where',
    'get t where a = ? ?',
    'get t limit ? ?',
    'get t where a json_exists ?',
    '? t',
    'get ?',
  ])('%j is not a query', text => {
    expect(() => parseQueryPattern(text)).toThrow(LanguageError)
  })
  test('is the only text in which a question mark is a value', () => {
    expect(() => parse('get t where a = ?')).toThrow(LanguageError)
    expect(() => parse('get t limit ?')).toThrow(LanguageError)
  })
})

test('every query matches its own line, unless a name or a path contains a line break', () => {
  let seen = 0
  fc.assert(
    fc.property(anyStatement, tree => {
      const text = textOf(tree)
      if (text === null) return
      const query = parse(text)
      if (JSON.stringify(query).includes('\\n')) return
      seen += 1
      expect(isApproved(shapeOfQuery(query).line(), query)).toBe(true)
    }),
    { numRuns: 1_000 },
  )
  expect(seen).toBeGreaterThan(300)
})

/** The text of a tree; null for trees without a text, which only the REST API builds. */
function textOf(tree: Statement): string | null {
  try {
    return formatStatement(tree)
  } catch (error) {
    expect(error).toBeInstanceOf(LanguageError)
    return null
  }
}

test('no value of a query appears in its shape', () => {
  const text = fc.stringMatching(/^[a-z]{12}$/)
  fc.assert(
    fc.property(text, text, fc.integer({ min: 1e9, max: 2e9 }), (a, b, n) => {
      const query = `get t where x = '${a}' and y in ('${b}', ${n}) and z > now() - ${n}s limit ${n}`
      const { key } = shapeOfQuery(parse(query))
      for (const value of [a, b, String(n)]) expect(key).not.toContain(value)
      expect(key).toBe(shapeOfQuery(parse("get t where x = '' and y in (1) and z > now() - 1s limit 1")).key)
    }),
  )
})

/**
 * The notations of `select`, `sort`, `expand`, names and pages, each compared with a few lines of its
 * grammar.
 */
import { describe, expect, test } from 'vitest'
import { cast, column, field, jsonStep, order, position, star } from '../../language/tree/build.ts'
import { Values } from '../values.ts'
import { parseExpand } from './expand.ts'
import { parseNameList } from './name-reader.ts'
import { effectiveLimit, limitOf, parseBoolean, parseCount, parseSlice } from './page.ts'
import { parseQueryString } from './query-string.ts'
import { buildFields, parseSelect } from './select.ts'
import { buildOrder, parseSort } from './sort.ts'

const refused = (message: string) =>
  expect.objectContaining({ code: 'PARSE_ERROR', message: expect.stringContaining(message) })

describe('query string', () => {
  test('pairs are decoded in order, and a name without a value has an empty value', () => {
    expect(parseQueryString('a=1&b=x+y%20z&a=2&c&&d=a=b', 1_000)).toEqual([
      { name: 'a', value: '1' },
      { name: 'b', value: 'x y z' },
      { name: 'a', value: '2' },
      { name: 'c', value: '' },
      { name: 'd', value: 'a=b' },
    ])
  })
  test.each(['a=%', 'a=%zz', 'a=%FF', '%C3=1', 'a=%ED%A0%80'])('%s is not a valid encoding', query => {
    expect(() => parseQueryString(query, 1_000)).toThrow(refused('percent-encoded'))
  })
  test('NUL is rejected in every spelling', () => {
    expect(() => parseQueryString('a=%00', 1_000)).toThrow(refused('NUL'))
    expect(() => parseQueryString('a=\0', 1_000)).toThrow(refused('NUL'))
  })
  test('more than 1000 parameters are rejected', () => {
    expect(() => parseQueryString('a&'.repeat(1001), 1_000)).toThrow(refused('at most 1000'))
    expect(parseQueryString('a&'.repeat(1001), 0)).toHaveLength(1_001)
  })
})

describe('select', () => {
  const select = (text: string | undefined) => buildFields(parseSelect(text, new Values()), null)
  test('columns, aliases, paths and * are parsed', () => {
    expect(select('id,buyer:customer_id,meta->>theme,*')).toEqual([
      field(column('id')),
      field(column('customer_id'), 'buyer'),
      field(jsonStep('->>', column('meta'), cast(position(1), 'text')), 'theme'),
      star(),
    ])
  })
  test('an absent select means every column', () => {
    expect(select(undefined)).toEqual([])
  })
  test('names with punctuation are quoted', () => {
    expect(select('"a,b","x:""y"')).toEqual([field(column('a,b')), field(column('x:"y'))])
  })
  test.each([
    ['', 'empty name'],
    ['a,', 'empty name'],
    ['a,a', 'has "a" twice'],
    ['a,x->a', 'has "a" twice'],
    ['*,a,*', 'has "*" twice'],
    ['"a', 'closing double quote'],
    [`${'x'.repeat(64)}:a`, 'longer than 63 bytes'],
    [`${'é'.repeat(32)}:a`, 'longer than 63 bytes'],
    ['*x', 'has text after'],
  ])('select=%s is rejected: %s', (text, message) => {
    expect(() => select(text)).toThrow(refused(message))
  })
})

describe('sort', () => {
  const sort = (text: string | undefined) => parseSort(text, new Values()).map(item => buildOrder(item, null))
  test('directions and positions of NULLs are parsed', () => {
    expect(sort('a,-b,c:asc,d:desc,e:asc.nullsfirst,f:desc.nullslast,-g:nullslast,meta->>k:desc')).toEqual([
      order(column('a')),
      order(column('b'), { descending: true }),
      order(column('c')),
      order(column('d'), { descending: true }),
      order(column('e'), { nulls: 'first' }),
      order(column('f'), { descending: true, nulls: 'last' }),
      order(column('g'), { descending: true, nulls: 'last' }),
      order(jsonStep('->>', column('meta'), cast(position(1), 'text')), { descending: true }),
    ])
  })
  test.each([
    ['a:up', 'expected asc or desc'],
    ['-a:desc', 'both - and a direction'],
    ['a:asc.nulls', 'expected asc or desc'],
    ['a:asc.nullsfirst.x', 'expected asc or desc'],
    ['a,,b', 'empty name'],
    ['-', 'empty name'],
    [Array(33).fill('a').join(','), 'more than 32'],
  ])('sort=%s is rejected: %s', (text, message) => {
    expect(() => sort(text)).toThrow(refused(message))
  })
})

describe('expand', () => {
  const expand = (text: string) => parseExpand(text, 4)
  const step = (relation: string, rest: object = {}) => ({
    alias: null,
    nested: false,
    relation,
    hint: null,
    select: null,
    below: [],
    ...rest,
  })
  test('aliases, nested, hints', () => {
    expect(expand('customers,nested:items,approver:users!approved_by,recent:nested:orders')).toEqual([
      step('customers'),
      step('items', { nested: true }),
      step('users', { alias: 'approver', hint: 'approved_by' }),
      step('orders', { alias: 'recent', nested: true }),
    ])
  })
  test('the nested: prefix is repeated at each level it applies to', () => {
    expect(expand('nested:items.product,nested:customers.nested:orders')).toEqual([
      step('items', { nested: true, below: [step('product')] }),
      step('customers', { nested: true, below: [step('orders', { nested: true })] }),
    ])
  })
  test('paths with the same beginning are one expansion', () => {
    expect(expand('nested:items,nested:items.product,nested:items.tax')).toEqual([
      step('items', { nested: true, below: [step('product'), step('tax')] }),
    ])
  })
  test('columns, paths, aliases and relations in parentheses', () => {
    const item = (name: string, alias: string | null = null) => ({
      kind: 'column',
      path: { column: name, steps: [] },
      alias,
    })
    expect(expand('customer(id,label:name),lines:nested:items(*,a:meta->>b,product(name),nested:tags).tax')).toEqual([
      step('customer', { select: [item('id'), item('name', 'label')] }),
      step('items', {
        alias: 'lines',
        nested: true,
        select: [
          { kind: 'star' },
          {
            kind: 'column',
            path: { column: 'meta', steps: [{ operator: '->>', key: 'b', index: false }] },
            alias: 'a',
          },
        ],
        below: [step('product', { select: [item('name')] }), step('tags', { nested: true }), step('tax')],
      }),
    ])
  })
  test.each([
    ['a(b', 'not closed'],
    ['a()', 'empty name'],
    ['a(b,b)', 'has "b" twice'],
    ['a(*,*)', 'has "*" twice'],
    ['a(b),a(c)', 'lists the columns of "a" twice'],
    ['a(x:y:b)', 'too many colons'],
    ['a(b)c', 'text after a relation'],
    ['a->b', 'JSON path as a relation'],
    ['a(b(c(d(e(f(g(h(i(j)))))))))', 'deeper than 4'],
    ['a.b.c.d.e.f.g.h.i', 'deeper than 4'],
    ['a:b:c', 'too many colons'],
    ['a,', 'empty name'],
    ['a!', 'empty name'],
    [Array.from({ length: 65 }, (_, n) => `t${n}`).join(','), 'more than 64 tables'],
  ])('expand=%s is rejected: %s', (text, message) => {
    expect(() => expand(text)).toThrow(refused(message))
  })
})

describe('pages', () => {
  test.each([
    ['0', 0],
    ['25', 25],
    ['9007199254740991', 9007199254740991],
  ])('limit=%s is parsed', (text, value) => {
    expect(parseCount(text, 'limit')).toBe(value)
  })
  test.each(['-1', '1.5', 'x', '', ' 1', '1e3', '9007199254740992', '99999999999999999999'])(
    'limit=%s is rejected',
    text => {
      expect(() => parseCount(text, 'limit')).toThrow(refused('whole number'))
    },
  )
  test('the row cap lowers a limit, and 0 means no cap', () => {
    expect([
      effectiveLimit(undefined, 50, 10_000),
      effectiveLimit(20_000, 50, 10_000),
      effectiveLimit(20_000, 50, 0),
    ]).toEqual([50, 10_000, 20_000])
  })
  test('only a few limits become part of the statement text', () => {
    const values = new Values()
    const limits = Array.from({ length: 20_001 }, (_, limit) => limitOf(limit, limit + 1, values))
    expect(limits.filter(limit => typeof limit === 'number')).toHaveLength(200)
    expect([limits[100], limits[101]]).toEqual([101, position(1)])
    expect(values.all[0]).toBe('102')
  })
  test('a result without a limit has all rows up to the cap', () => {
    const slice = (query: Record<string, string>, cap: number) => {
      const values = new Values()
      return { ...parseSlice(new Map(Object.entries(query)), values, cap), values: values.all }
    }
    expect(slice({}, 0)).toEqual({ limit: null, offset: null, values: [] })
    expect(slice({}, 1000)).toEqual({ limit: 1000, offset: null, values: [] })
    expect(slice({ limit: '5000', offset: '7' }, 1000)).toEqual({ limit: 1000, offset: position(1), values: ['7'] })
    expect(slice({ limit: '123', offset: '7' }, 0)).toEqual({
      limit: position(1),
      offset: position(2),
      values: ['123', '7'],
    })
    expect(slice({ limit: '0' }, 0)).toEqual({ limit: 0, offset: null, values: [] })
  })
  test('flags are true or false', () => {
    expect([parseBoolean(undefined, 'stream'), parseBoolean('true', 'stream')]).toEqual([false, true])
    expect(() => parseBoolean('yes', 'stream')).toThrow(refused('neither true nor false'))
  })
})

test('a list of names is parsed and each name is returned once', () => {
  expect(parseNameList('a, b,"c,""d"', 'search_columns')).toEqual(['a', 'b', 'c,"d'])
  expect(() => parseNameList('"a"b', 'search_columns')).toThrow(refused('separate names with a comma'))
  expect(() => parseNameList('a,b,a', 'search_columns')).toThrow(refused('has "a" twice'))
})

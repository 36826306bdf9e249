import { describe, expect, test } from 'vitest'
import { PostgrestError } from './errors.ts'
import { parseQueryParameters, type QueryParameters, type QuerySlot } from './query-parameters.ts'

const LIMITS = { maxQueryParameters: 1_000, maxFilters: 10, maxInValues: 3, maxExpandDepth: 2 }

const parse = (query: string): QueryParameters => parseQueryParameters(query, false, LIMITS)

function refusal(query: string): readonly [string, unknown] {
  try {
    parse(query)
  } catch (error) {
    if (error instanceof PostgrestError) return [error.message, error.details]
    throw error
  }
  throw new Error('expected a refusal')
}

describe('select', () => {
  test('embedded relations keep hints, joins, aliases and their own members', () => {
    const { root } = parse('select=id,buyer:customers!fk!inner(name,orders(id)),...notes(text)')
    expect(root.fields.map(({ field }) => field.name)).toEqual(['id'])
    const [buyer, notes] = root.embedded
    expect(buyer?.embedding).toMatchObject({ name: 'customers', alias: 'buyer', hint: 'fk', join: 'inner' })
    expect(buyer?.embedded[0]?.embedding?.name).toBe('orders')
    expect(notes?.embedding).toMatchObject({ name: 'notes', isSpread: true })
  })

  test('aggregates and casts are part of a field', () => {
    const { root } = parse('select=count(),total:amount.sum()::text,at::date.max()')
    expect(root.fields.map(({ alias, cast, aggregate }) => [alias, cast, aggregate])).toEqual([
      [null, null, { name: 'count', cast: null }],
      ['total', null, { name: 'sum', cast: 'text' }],
      [null, 'date', { name: 'max', cast: null }],
    ])
  })

  test('an error has the position and what was expected there', () => {
    expect(refusal('select=id,clients(name[])')).toEqual([
      '"failed to parse select parameter (id,clients(name[]))" (line 1, column 16)',
      `unexpected '[' expecting letter, digit, "-", "->>", "->", "::", ".", ")", "," or end of input`,
    ])
  })
})

describe('parameters of embedded relations', () => {
  test('are sorted into their level', () => {
    const { root } = parse('select=id,a(b(x))&a.b.x=eq.1&a.order=y.desc&a.b.limit=3&a.or=(p.eq.1,q.eq.2)')
    const [a] = root.embedded
    const [b] = a?.embedded ?? []
    expect(a?.order).toMatchObject([{ field: { name: 'y' }, descending: true }])
    expect(a?.where).toMatchObject([{ kind: 'group', operator: 'or' }])
    expect(b?.where).toMatchObject([{ kind: 'filter', field: { name: 'x' } }])
    expect(b?.range).toEqual({ offset: 0, limit: 3 })
  })

  test('of a relation that is not embedded are refused', () => {
    expect(refusal('a.x=eq.1')[0]).toBe("'a' is not an embedded resource in this request")
  })
})

describe('limits', () => {
  test.each<[query: string, message: string]>([
    ['x=in.(1,2,3,4)', 'a list has more than 3 values (max_in_values)'],
    [Array.from({ length: 11 }, () => 'x=eq.1').join('&'), 'the request has more than 10 filters (max_filters)'],
    ['select=a(b(c(d)))', 'select embeds more than 2 levels (max_expand_depth)'],
    [`or=${'('.repeat(65)}`, 'the logic tree is nested more than 64 levels deep'],
    [`select=${'a('.repeat(65)}`, 'the select parameter is nested more than 64 levels deep'],
    ['a&'.repeat(1_001), 'the query string has more than 1000 parameters (max_query_parameters)'],
  ])('are applied to %#', (query, message) => {
    expect(refusal(query)[0]).toBe(message)
  })
})

test('hostile texts are parsed or refused, in linear time', () => {
  const pieces = [
    'a',
    '(',
    ')',
    '.',
    ',',
    '"',
    '\\',
    '!',
    '->',
    '->>',
    '::',
    '...',
    'not',
    'or',
    'eq',
    '{',
    '}',
    ' ',
    '*',
  ]
  let seed = 7
  const random = (below: number): number => {
    seed = (seed * 48_271) % 2_147_483_647
    return seed % below
  }
  for (let round = 0; round < 2_000; round += 1) {
    const text = Array.from({ length: random(40) }, () => pieces[random(pieces.length)]).join('')
    for (const name of ['select', 'order', 'or', 'columns', 'x']) {
      try {
        parse(`${name}=${encodeURIComponent(text)}`)
      } catch (error) {
        expect(error).toBeInstanceOf(PostgrestError)
      }
    }
  }
})

test('the canonical query is sorted and encoded', () => {
  expect(parse('select=id&b=eq.1&a=in.(1,2)').canonical).toBe('a=in.%281%2C2%29&b=eq.1&select=id')
})

describe('requests of one shape', () => {
  test('share everything except the values of their filters', () => {
    const [one, other] = ['a=eq.1&b=like.x*&c=in.(1)', 'a=eq.2=3&b=like.&c=in.(1)'].map(parse)
    expect(other?.shared).toBe(one?.shared)
    const valuesOf = (of: QueryParameters | undefined) =>
      of?.root.where.map(filter => (filter.kind === 'filter' && 'value' in filter.test ? filter.test.value : null))
    expect([valuesOf(one), valuesOf(other)]).toEqual([
      ['1', 'x*', null],
      ['2=3', '', null],
    ])
    expect([one?.canonical, other?.canonical]).toEqual([
      'a=eq.1&b=like.x%2A&c=in.%281%29',
      'a=eq.2%3D3&b=like.&c=in.%281%29',
    ])
  })

  test.each([
    ['a=eq.1', 'a=eq.1&b'],
    ['a=eq.1&select=a', 'a=eq.1&select=b'],
    ['a=eq.1&limit=1', 'a=eq.1&limit=2'],
    ['a=in.(1)', 'a=in.(2)'],
    ['a->b=eq.1', 'a->b=eq.2'],
    ['and=(a.eq.1)', 'and=(a.eq.2)'],
  ])('%s and %s do not', (one, other) => {
    expect(parse(other).shared).not.toBe(parse(one).shared)
  })

  test('are recognized by the text of the last one, and all others are parsed', () => {
    const queries = [
      ...['a=eq.1', 'a=eq.2', 'a=eq.', 'a=eq.1&b', 'a=eq.1&b=eq.2', 'a=eq.3&b=eq.4&a=eq.5', 'a=eq.1&limit=1'],
      ...['a=eq.2&limit=1', 'a=eq.2&limit=12', 'a=eq.2&limit=1&', '&a=eq.2&limit=1', 'a=eq.2&&limit=1', '', 'a', 'a='],
      ...['a=not.eq.1', 'a=not.eq.eq.1', 'a=eq.%2B', 'a=eq.+', 'a=eq.x%26b=eq.y', 'a=eq.1=2', 'a=eqx', 'a.b=eq.1'],
    ]
    const outcome = (query: string, slot: QuerySlot) => {
      try {
        const { root, operands, canonical } = parseQueryParameters(query, false, LIMITS, slot)
        return { root, operands, canonical }
      } catch (error) {
        return String(error)
      }
    }
    for (const first of queries) {
      for (const query of queries) {
        const slot: QuerySlot = { query: null }
        outcome(first, slot)
        expect([first, query, outcome(query, slot)]).toEqual([first, query, outcome(query, { query: null })])
      }
    }
  })

  test('limits are those of the caller, not of an earlier request', () => {
    expect(parse('a=eq.1&b=eq.2').root.where).toHaveLength(2)
    expect(() => parseQueryParameters('a=eq.1&b=eq.2', false, { ...LIMITS, maxFilters: 1 })).toThrow(/max_filters/)
  })
})

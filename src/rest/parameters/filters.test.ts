import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { GatewayError } from '../../errors.ts'
import type { Expression } from '../../language/tree/ast.ts'
import {
  and,
  cast,
  column,
  compare,
  inSet,
  isDistinct,
  isNull,
  jsonStep,
  like,
  not,
  or,
  position,
} from '../../language/tree/build.ts'
import { printFilter } from '../plan-key.ts'
import { Values } from '../values.ts'
import { buildFilter, parseFilters } from './filters.ts'
import { parseQueryString } from './query-string.ts'
import { parseParameters } from './request-parameters.ts'

const LIMITS = { maxFilters: 8, maxInValues: 3 }

function read(query: string): { tree: Expression | null; values: readonly string[]; key: string } {
  const values = new Values()
  const conditions = parseFilters(parseParameters(parseQueryString(query, 1_000), []), values, LIMITS)
  return { tree: buildFilter(conditions, null), values: values.all.map(String), key: printFilter(conditions) }
}

function refusal(query: string): string {
  try {
    read(query)
  } catch (error) {
    if (error instanceof GatewayError && error.code === 'PARSE_ERROR') return error.message
    throw error
  }
  throw new Error(`"${query}" was accepted`)
}

const status = column('status')
const total = column('total')
const $1 = position(1)
const $2 = position(2)

test('a request without filters has no condition', () => {
  expect(read('').tree).toBeNull()
})

test('a range on one column keeps both ends', () => {
  expect(read('total.gte=18&total.lte=65')).toMatchObject({
    tree: and(compare('>=', total, $1), compare('<=', total, $2)),
    values: ['18', '65'],
  })
})

describe('both styles mean the same', () => {
  test.each<[valueStyle: string, keyStyle: string, tree: Expression, values: string[]]>([
    ['total=7', 'total.eq=7', compare('=', total, $1), ['7']],
    ['total=eq.7', 'total.eq=7', compare('=', total, $1), ['7']],
    ['total=ne.7', 'total.ne=7', compare('<>', total, $1), ['7']],
    ['total=neq.7', 'total.neq=7', compare('<>', total, $1), ['7']],
    ['total=gt.7', 'total.gt=7', compare('>', total, $1), ['7']],
    ['total=gte.7', 'total.gte=7', compare('>=', total, $1), ['7']],
    ['total=lt.7', 'total.lt=7', compare('<', total, $1), ['7']],
    ['total=lte.7', 'total.lte=7', compare('<=', total, $1), ['7']],
    ['total=in.(7,8)', 'total.in=7,8', inSet(total, $1), ['{"7","8"}']],
    ['total=not_in.(7,8)', 'total.not_in=7,8', inSet(total, $1, 'negated'), ['{"7","8"}']],
    ['status=like.*x*', 'status.like=*x*', like('like', status, $1), ['%x%']],
    ['status=ilike.*x*', 'status.ilike=*x*', like('ilike', status, $1), ['%x%']],
    ['status=not_like.x*', 'status.not_like=x*', like('like', status, $1, 'negated'), ['x%']],
    ['status=not_ilike.x*', 'status.not_ilike=x*', like('ilike', status, $1, 'negated'), ['x%']],
    ['status=is_null', 'status.is_null=true', isNull(status), []],
    ['status=is_null.false', 'status.is_null=false', isNull(status, 'negated'), []],
    ['status=is_not_null', 'status.is_not_null=true', isNull(status, 'negated'), []],
    ['status=is_distinct.a', 'status.is_distinct=a', isDistinct(status, $1), ['a']],
    ['tags=contains.a', 'tags.contains=a', compare('@>', column('tags'), $1), ['a']],
    ['tags=contained.a', 'tags.contained=a', compare('<@', column('tags'), $1), ['a']],
    ['tags=overlaps.a', 'tags.overlaps=a', compare('&&', column('tags'), $1), ['a']],
    ['status=match.^a', 'status.match=^a', compare('regex', status, $1), ['^a']],
    ['status=imatch.^a', 'status.imatch=^a', compare('~*', status, $1), ['^a']],
    ['status=fts.a b', 'status.fts=a b', compare('@@', status, $1), ['a b']],
    ['status=not.eq.a', 'status.not.eq=a', not(compare('=', status, $1)), ['a']],
    ['total=not.in.(7)', 'total.not.in=7', not(inSet(total, $1)), ['{"7"}']],
    ['status=not.is_null', 'status.not.is_null=', not(isNull(status)), []],
  ])('%s and %s', (valueStyle, keyStyle, tree, values) => {
    expect(read(valueStyle)).toMatchObject({ tree, values })
    expect(read(keyStyle)).toMatchObject({ tree, values })
    expect(read(valueStyle).key).toBe(read(keyStyle).key)
  })
})

describe('key-style wins', () => {
  test('a literal that looks like an operator is written in key style', () => {
    expect(read('name.eq=in.x')).toMatchObject({ tree: compare('=', column('name'), $1), values: ['in.x'] })
  })
  test('a suffix that is not an operator belongs to the name', () => {
    expect(read('a.b=gt.1').tree).toEqual(compare('>', column('a.b'), $1))
  })
  test('a column can have the name of a reserved parameter', () => {
    expect(read('limit.eq=5').tree).toEqual(compare('=', column('limit'), $1))
  })
})

test.each([
  ['zip=01234', '01234'],
  ['name=foo.bar', 'foo.bar'],
  ['name=not.foo', 'not.foo'],
  ['name=constructor.x', 'constructor.x'],
  ['name=like', 'like'],
  ['name=', ''],
  ['name=eq.', ''],
  ['name=a%2Bb+c%26', 'a+b c&'],
])('%s compares with the literal "%s"', (query, value) => {
  expect(read(query)).toMatchObject({ tree: compare('=', column(query.split('=')[0] ?? ''), $1), values: [value] })
})

describe('lists', () => {
  test.each([
    ['a=in.()', '{}'],
    ['a.in=', '{}'],
    ['a=in.("")', '{""}'],
    ['a=in.(x,)', '{"x",""}'],
    ['a=in.("x,y",z)', '{"x,y","z"}'],
    ['a=in.("\\"","\\\\")', '{"\\"","\\\\"}'],
    ['a=in.(NULL)', '{"NULL"}'],
  ])('%s is the array %s', (query, literal) => {
    expect(read(query).values).toEqual([literal])
  })
})

describe('logic trees', () => {
  test('or with a group inside', () => {
    expect(read('or=(status.eq.paid,and(total.gt.10,total.lt.20))')).toMatchObject({
      tree: or(compare('=', status, $1), and(compare('>', total, $2), compare('<', total, position(3)))),
      values: ['paid', '10', '20'],
    })
  })
  test('not before group, operator and operator without value', () => {
    expect(read('not.or=(status.not.eq.a,total.is_null)').tree).toEqual(
      not(or(not(compare('=', status, $1)), isNull(total))),
    )
  })
  test('values with commas and parentheses', () => {
    expect(read('and=(status.eq."a,b)",total.in.(1,2),tags.contains.{x,y})').values).toEqual([
      'a,b)',
      '{"1","2"}',
      '{x,y}',
    ])
  })
  test('a dotted value and a quoted column', () => {
    expect(read('or=("a.eq.b".eq.x.y,b.eq.1.5)')).toMatchObject({
      tree: or(compare('=', column('a.eq.b'), $1), compare('=', column('b'), $2)),
      values: ['x.y', '1.5'],
    })
  })
})

test('the keys of a path into JSON are parameters', () => {
  expect(read('meta->a->0->>b=x')).toMatchObject({
    tree: compare(
      '=',
      jsonStep(
        '->>',
        jsonStep('->', jsonStep('->', column('meta'), cast($1, 'text')), cast($2, 'int4')),
        cast(position(3), 'text'),
      ),
      position(4),
    ),
    values: ['a', '0', 'b', 'x'],
  })
})

test.each([
  ['country=gt.', 'country.gt='],
  ['country=not.lte.', 'country.not.lte='],
  ['country=eq.', 'country.eq='],
  ['or=(country.gt.)', 'and=(country.gt.)'],
])('%s is the same filter as %s: the operand is empty', (one, other) => {
  const { tree, values } = read(one)
  expect(values).toEqual([''])
  if (!one.startsWith('or')) expect(tree).toEqual(read(other).tree)
})

test.each([
  ['or=("a"",b".eq.1,c.eq.2)', ['a",b', 'c']],
  ['or=("a"",".gt.1,c.eq.2)', ['a",', 'c']],
])('a name with a double quote in %s', (query, names) => {
  for (const name of names) expect(JSON.stringify(read(query).tree)).toContain(JSON.stringify(name))
})

test.each([
  ['a=in.x', 'filter "a=in.x" needs a list in parentheses; write in.(a,b)'],
  [
    'a=in.(1,2,3,4)',
    'filter "a=in.(1,2,3,4)" has more than 3 values, the limit for one list (max_in_values); ' +
      'send several requests, or filter by a range or a join',
  ],
  ['a=in.("x)', 'filter "a=in.("x)" has a list element whose closing double quote is missing'],
  ['a=in.("x"y)', 'filter "a=in.("x"y)" has text after a quoted list element; separate elements with a comma'],
  ['a.is_null=maybe', 'filter "a.is_null=maybe" needs true or false after is_null'],
  ['or=a.eq.1', 'filter "or=a.eq.1" needs conditions in parentheses; write or=(a.eq.1,b.gt.2)'],
  ['or=()', 'filter "or=()" has an empty group; write at least one condition'],
  ['or=(a)', 'filter "or=(a)" has "a", which is not a condition; write column.operator.value, e.g. status.eq.paid'],
  ['or=(a.eq.1,b.eq.(2)', 'filter "or=(a.eq.1,b.eq.(2)" opens a parenthesis that is not closed'],
  ['or=(a.eq.1))', 'filter "or=(a.eq.1))" closes a parenthesis that was not opened'],
  ['or=(a.eq."1)', 'filter "or=(a.eq."1)" has a double quote that is not closed'],
  ['a=1&b=1&c=1&d=1&e=1&f=1&g=1&h=1&i=1', 'the request has more than 8 filters (max_filters)'],
])('%s is rejected: %s', (query, message) => {
  expect(refusal(query)).toBe(message)
})

test('groups nested deeper than 16 levels and deep unclosed groups are rejected', () => {
  expect(refusal(`or=${'(and'.repeat(17)}(a.eq.1)${')'.repeat(17)}`)).toContain('nests groups deeper than 16')
  expect(refusal(`or=${'('.repeat(5000)}`)).toContain('needs conditions in parentheses')
})

describe('the shape', () => {
  test('does not depend on values', () => {
    expect(read('a=1&b=in.(1,2)&meta->>x=1').key).toBe(read('a=2&b=in.(3)&meta->>y=z').key)
  })
  test.each([
    ['a=1', 'b=1'],
    ['a=1', 'a=gt.1'],
    ['a=eq.1', 'a=not.eq.1'],
    ['meta->x=1', 'meta->0=1'],
    ['meta->x=1', 'meta->>x=1'],
    ['"a->"=1', 'a->b=1'],
    ['or=(a.eq.1,b.eq.2)', 'and=(a.eq.1,b.eq.2)'],
    ['or=(a.eq.1,and(b.eq.2,c.eq.3))', 'or=(a.eq.1,and(b.eq.2),c.eq.3)'],
    ['a=is_null', 'a=is_not_null'],
    ['a.is_null=true', 'a.is_null=false'],
  ])('distinguishes %s from %s', (one, other) => {
    expect(read(one).key).not.toBe(read(other).key)
  })
  test('equal keys have equal trees', () => {
    const query = fc.array(
      fc.tuple(
        fc.constantFrom('a', 'b', 'a.not', '"a"', 'meta->x', 'or', 'not.and', 'a.in', 'a.is_null'),
        fc.constantFrom(
          '1',
          'gt.1',
          'not.lt.2',
          '(a.eq.1)',
          '(a.eq.1,b.is_null)',
          '(and(a.gt.1),b.eq.2)',
          '',
          'true',
          'false',
        ),
      ),
      { maxLength: 3 },
    )
    fc.assert(
      fc.property(query, query, (one, other) => {
        const [left, right] = [one, other].map(pairs => {
          try {
            return read(
              pairs.map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`).join('&'),
            )
          } catch {
            return null
          }
        })
        fc.pre(left !== null && right !== null && left?.key === right?.key)
        expect(left?.tree).toEqual(right?.tree)
        expect(left?.values.length).toBe(right?.values.length)
      }),
      { numRuns: 300 },
    )
  })
})

test('any text produces a condition or PARSE_ERROR', () => {
  const hostile = fc.string({
    unit: fc.constantFrom(
      'a',
      '.',
      ',',
      '(',
      ')',
      '"',
      '\\',
      '{',
      '}',
      '-',
      '>',
      'or',
      'not.',
      'eq.',
      'in.',
      '=',
      '&',
      '%',
      '+',
      '%41',
    ),
    maxLength: 40,
  })
  fc.assert(
    fc.property(hostile, query => {
      try {
        read(query)
      } catch (error) {
        expect(error).toBeInstanceOf(GatewayError)
        expect((error as GatewayError).code).toBe('PARSE_ERROR')
      }
    }),
    { numRuns: 2_000 },
  )
})

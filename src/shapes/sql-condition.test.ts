import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  and,
  arithmetic,
  between,
  cast,
  column,
  compare,
  inSet,
  integer,
  inValues,
  isNull,
  like,
  not,
  or,
  position,
} from '../language/tree/build.ts'
import { Values } from '../rest/values.ts'
import { ShapeProblem } from './shape-problem.ts'
import { DEPTH_MAX, parseSqlCondition } from './sql-condition.ts'
import { WHERE_TOKENS_MAX } from './sql-tokens.ts'

function parsed(text: string, params: readonly string[] = []) {
  const values = new Values()
  const numbered = new Map(params.map((value, index) => [index + 1, value]))
  const tree = parseSqlCondition(text, {
    ...{ table: 'issues', alias: 't', values, params: numbered, maxInValues: 3 },
    queryable: null,
  })
  return { tree, values: values.all }
}

const c = (name: string) => column('t', name)

describe('A condition', () => {
  test('has the precedence of SQL', () => {
    expect(parsed('not a = 1 or b = 2 and c = 3').tree).toEqual(
      or(
        not(compare('=', c('a'), integer('1'))),
        and(compare('=', c('b'), integer('2')), compare('=', c('c'), integer('3'))),
      ),
    )
    expect(parsed('a + 2 * 3 > -1').tree).toEqual(
      compare('>', arithmetic('+', c('a'), arithmetic('*', integer('2'), integer('3'))), integer('-1')),
    )
    expect(parsed('a = b is null').tree).toEqual(isNull(compare('=', c('a'), c('b'))))
  })

  test('keeps texts and parameters out of the tree', () => {
    const { tree, values } = parsed(`title like 'it''s%' and id = $1 and $1 <> other`, ['7'])
    expect(values).toEqual([`it's%`, '7'])
    expect(tree).toEqual(
      and(
        like('like', c('title'), position(1)),
        compare('=', c('id'), position(2)),
        compare('<>', position(2), c('other')),
      ),
    )
  })

  test('folds names to lower case unless they are quoted', () => {
    expect(parsed('"Weird Name" = issues.ID').tree).toEqual(compare('=', c('Weird Name'), c('id')))
  })

  test('has lists, ranges and arrays', () => {
    expect(parsed('a not in (1, 2)').tree).toEqual(inValues(c('a'), [integer('1'), integer('2')], 'negated'))
    expect(parsed('a between 1 and 2 and b is not null').tree).toEqual(
      and(between(c('a'), integer('1'), integer('2')), isNull(c('b'), 'negated')),
    )
    expect(parsed('a = any($1)', ['{1}']).tree).toEqual(inSet(c('a'), position(1)))
    expect(parsed('a = any(array[1])').tree).toEqual(inValues(c('a'), [integer('1')]))
  })

  test('has casts in each of their forms', () => {
    const expected = cast(position(1), 'timestamptz')
    for (const text of [`'x'::timestamptz`, `cast('x' as timestamp with time zone)`, `timestamptz 'x'`])
      expect(parsed(text).tree).toEqual(expected)
  })
})

describe('A condition is refused', () => {
  test.each([
    ['1 x 1', 'At location 17: syntax error at or near "x"'],
    ['a = ', 'At location 19: syntax error at or near "the end"'],
    [`a = 'x`, `At location 19: syntax error at or near "'x"`],
    ['a = 1; drop table a', 'At location 20: syntax error at or near "; drop tab"'],
    ['a in (select 1)', 'At location 21: syntax error at or near "select"'],
    ['a = 1 -- comment', 'At location 21: comments are not supported'],
    ['a = $2', 'parameter $2 was not provided'],
    ['other.a = 1', 'unknown reference other.a; columns are those of "issues"'],
    ['a in (1, 2, 3, 4)', 'has a list of 4 values; at most 3 are allowed'],
  ])('%s', (text, message) => {
    expect(() => parsed(text, ['1'])).toThrow(message)
  })

  test('beyond the limits on its depth and its length', () => {
    const nested = (levels: number) => `${'('.repeat(levels)}true${')'.repeat(levels)}`
    expect(() => parsed(nested(DEPTH_MAX - 1))).not.toThrow()
    expect(() => parsed(nested(DEPTH_MAX))).toThrow('nested more than')
    expect(() => parsed(`a${' + 1'.repeat(DEPTH_MAX)} > 1`)).not.toThrow(RangeError)
    expect(() => parsed(Array(WHERE_TOKENS_MAX).fill('a').join(' or '))).toThrow('words and symbols')
  })

  test('whatever the text is, with a problem of the parameter', () => {
    const words = [
      'a',
      '=',
      '(',
      ')',
      'and',
      'not',
      'is',
      'null',
      'in',
      "'x'",
      '1',
      '::',
      'int',
      '[',
      ']',
      ',',
      'any',
      'array',
      '"',
      '$1',
      '.',
    ]
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...words), { maxLength: 20 }), parts => {
        try {
          parsed(parts.join(' '), ['1'])
        } catch (error) {
          expect(error).toBeInstanceOf(ShapeProblem)
        }
      }),
    )
  })
})

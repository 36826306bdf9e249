/**
 * src/language/README.md#promises: the fewest parentheses. For any tree, PostgreSQL must parse the printed
 * text as that tree. The test compares PostgreSQL's deparsed output of the text with that of a fully
 * parenthesized text.
 */
import fc from 'fast-check'
import { beforeAll, expect, test } from 'vitest'
import { clientFixture, databaseFixture } from '../../../test/support/fixtures.ts'
import type { Expression } from '../tree/ast.ts'
import { NOWHERE } from '../tree/ast.ts'
import {
  and,
  arithmetic,
  between,
  call,
  cast,
  column,
  compare,
  integer,
  inValues,
  isDistinct,
  isNull,
  jsonStep,
  like,
  literal,
  negate,
  not,
  or,
  text,
} from '../tree/build.ts'
import { OUTERMOST } from '../tree/scope.ts'
import { createPrinter } from './print.ts'
import { printExpression } from './print-expression.ts'
import type { Printer } from './printer.ts'

const database = databaseFixture()
const client = clientFixture(() => database.adminUrl)

beforeAll(() => client.query('create table t (i int, j int, b boolean, c boolean, s text, d jsonb)'))

/**
 * Well-typed expressions, so that PostgreSQL accepts them. Each kind of operand occurs on both sides of its
 * operators.
 */
const { boolean, number, string, json } = fc.letrec<Record<'boolean' | 'number' | 'string' | 'json', Expression>>(
  tie => {
    const twice = (kind: 'boolean' | 'number' | 'string' | 'json') => fc.tuple(tie(kind), tie(kind))
    const polarity = fc.constantFrom('plain' as const, 'negated' as const)
    return {
      boolean: fc.oneof(
        { depthSize: 'small', withCrossShrink: true },
        fc.constantFrom<Expression>(column('b'), column('c'), literal('boolean', 'true')),
        twice('boolean').map(pair => and(...pair)),
        twice('boolean').map(pair => or(...pair)),
        tie('boolean').map(not),
        fc
          .tuple(
            fc.constantFrom('=' as const, '<>' as const, '<' as const, '>=' as const),
            fc.oneof(twice('number'), twice('boolean'), twice('string')),
          )
          .map(([operator, [left, right]]) => compare(operator, left, right)),
        fc
          .tuple(fc.constantFrom('@>' as const, '<@' as const), twice('json'))
          .map(([operator, [left, right]]) => compare(operator, left, right)),
        fc
          .tuple(fc.constantFrom('regex' as const, '~' as const, '~*' as const), twice('string'))
          .map(([operator, [left, right]]) => compare(operator, left, right)),
        fc
          .tuple(fc.constantFrom('like' as const, 'ilike' as const, 'similar to' as const), twice('string'), polarity)
          .map(([operator, [left, right], negated]) => like(operator, left, right, negated)),
        fc
          .tuple(fc.oneof(tie('boolean'), tie('number'), tie('string'), tie('json')), polarity)
          .map(([operand, negated]) => isNull(operand, negated)),
        fc
          .tuple(tie('boolean'), fc.boolean())
          .map(([operand, negated]): Expression => ({ kind: 'is', what: 'true', negated, operand, span: NOWHERE })),
        fc.oneof(twice('number'), twice('boolean')).map(([left, right]) => isDistinct(left, right)),
        fc
          .oneof(
            fc.tuple(tie('number'), tie('number'), tie('number'), polarity),
            fc.tuple(tie('boolean'), tie('boolean'), tie('boolean'), polarity),
          )
          .map(([operand, low, high, negated]) => between(operand, low, high, negated)),
        fc
          .oneof(
            fc.tuple(tie('number'), twice('number'), polarity),
            fc.tuple(tie('boolean'), twice('boolean'), polarity),
          )
          .map(([operand, values, negated]) => inValues(operand, values, negated)),
        tie('number').map(operand => cast(operand, 'bool')),
        tie('json').map(
          (operand): Expression => ({ kind: 'json test', test: 'json_value', operand, path: '$.a', span: NOWHERE }),
        ),
      ),
      number: fc.oneof(
        { depthSize: 'small', withCrossShrink: true },
        fc.constantFrom<Expression>(column('i'), column('j'), integer('1'), integer('-2')),
        fc
          .tuple(fc.constantFrom('+' as const, '-' as const, '*' as const, '/' as const, '%' as const), twice('number'))
          .map(([operator, [left, right]]) => arithmetic(operator, left, right)),
        tie('number').map(negate),
        fc.oneof(tie('boolean'), tie('string')).map(operand => cast(operand, 'int4')),
        tie('number').map(operand => call('abs', [operand])),
        fc.tuple(tie('boolean'), twice('number')).map(
          ([when, [then, otherwise]]): Expression => ({
            kind: 'case',
            operand: null,
            whens: [{ when, then }],
            else: otherwise,
            span: NOWHERE,
          }),
        ),
      ),
      string: fc.oneof(
        { depthSize: 'small', withCrossShrink: true },
        fc.constantFrom<Expression>(column('s'), cast(text('x'), 'text')),
        twice('string').map(([left, right]) => arithmetic('||', left, right)),
        fc
          .tuple(fc.constantFrom('->>' as const), tie('json'), tie('string'))
          .map(([operator, operand, step]) => jsonStep(operator, operand, step)),
        fc.oneof(tie('boolean'), tie('number')).map(operand => cast(operand, 'text')),
      ),
      json: fc.oneof(
        { depthSize: 'small', withCrossShrink: true },
        fc
          .constantFrom<Expression>(column('d'), column('d', 'a', 'b'), literal('json', '{"a": 1}'))
          .map(expression =>
            expression.kind === 'column' && expression.path.length > 1 ? cast(expression, 'jsonb') : expression,
          ),
        twice('json').map(([left, right]) => arithmetic('||', left, right)),
        fc
          .tuple(tie('json'), fc.oneof(tie('string'), tie('number')))
          .map(([operand, step]) => jsonStep('->', operand, step)),
        twice('string').map(([left, right]) => jsonStep('#>', column('d'), call('string_to_array', [left, right]))),
        tie('string').map(operand => cast(operand, 'jsonb')),
      ),
    }
  },
)

/** The expression as printed, and with parentheses around every subexpression. */
function written(expression: Expression): { readonly fewest: string; readonly every: string } {
  const careful: Printer = {
    ...createPrinter(expression, { parameters: 'keep' }),
    expression(part, scope, _floor, inference) {
      return printExpression(part, scope, Number.POSITIVE_INFINITY, this, inference)
    },
  }
  return {
    fewest: printExpression(expression, OUTERMOST, 0, createPrinter(expression, { parameters: 'keep' })),
    every: careful.expression(expression, OUTERMOST, 0),
  }
}

test('PostgreSQL parses the text with the fewest parentheses as the tree it was printed from', {
  timeout: 120_000,
}, async () => {
  let longest = ''
  await fc.assert(
    fc.asyncProperty(fc.oneof(boolean, boolean, number, string, json), async expression => {
      const { fewest, every } = written(expression)
      if (fewest.length > longest.length) longest = fewest
      await client.query('begin')
      try {
        await client.query(
          `create view fewest as select ${fewest} as x from t; create view every as select ${every} as x from t`,
        )
        const { rows } = await client.query<{ fewest: string; every: string }>(
          `select pg_get_viewdef('fewest'::regclass) as fewest, pg_get_viewdef('every'::regclass) as every`,
        )
        expect(rows[0]?.fewest, fewest).toBe(rows[0]?.every)
      } finally {
        await client.query('rollback')
      }
    }),
    { numRuns: 1_000 },
  )
  expect(longest.length).toBeGreaterThan(200)
})

test('the printer writes no parentheses that PostgreSQL does not need', () => {
  const { fewest, every } = written(
    or(
      and(column('b'), not(isNull(arithmetic('+', column('i'), arithmetic('*', column('j'), negate(integer('1'))))))),
      column('c'),
    ),
  )
  expect(fewest).toBe('b AND NOT i + j * -1 IS NULL OR c')
  expect(every).toBe('(((b) AND (NOT (((i) + ((j) * (-(1)))) IS NULL))) OR (c))')
})

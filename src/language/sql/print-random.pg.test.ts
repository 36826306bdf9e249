/**
 * src/language/README.md#promises for random trees. For any tree of any kind, with hostile names and texts,
 * PostgreSQL's grammar accepts the printed text. For well-typed trees, the text with literals and the text
 * with parameters return the same result.
 */
import fc from 'fast-check'
import { beforeAll, expect, test } from 'vitest'
import { clientFixture, databaseFixture } from '../../../test/support/fixtures.ts'
import { hasGrammarFor } from '../../../test/support/postgres-version.ts'
import { builtStatements, content, STATEMENTS } from '../../../test/support/trees.ts'
import type { Expression, Get } from '../tree/ast.ts'
import { NOWHERE } from '../tree/ast.ts'
import {
  and,
  arithmetic,
  call,
  cast,
  column,
  compare,
  exists,
  field,
  get,
  inQuery,
  integer,
  inValues,
  isDistinct,
  isNull,
  jsonStep,
  literal,
  nest,
  not,
  or,
  order,
  text,
} from '../tree/build.ts'
import { LanguageError } from '../tree/error.ts'
import { printSql } from './print.ts'
import { printRows } from './print-rows.ts'

const database = databaseFixture()
const client = clientFixture(() => database.adminUrl)

beforeAll(() =>
  client.query(`
    create table t (id int primary key, i int, j int8, x numeric, b boolean, s text, d jsonb);
    create table u (id int primary key, t_id int, i int, s text);
    insert into t select n, n % 3, n % 5 - 2, n / 4.0, n % 2 = 0, 's' || n % 4,
        jsonb_build_object('a', n % 3, 's1', 's' || n % 2)
      from generate_series(1, 12) as n;
    insert into t values (13), (14);
    insert into u select n, n % 14, n % 4, 's' || n % 3 from generate_series(1, 30) as n;
  `),
)

// ---- any tree ---------------------------------------------------------------------------------------------

/** Statements that a PL/pgSQL function can contain: all except those that end its transaction. */
const EMBEDDED = STATEMENTS.filter(name => !['begin', 'commit', 'rollback'].includes(name))

/** Creating a PL/pgSQL function parses each of its statements and does nothing else with them. */
async function assertParses(statements: readonly string[]): Promise<void> {
  const body = `begin ${statements.map(one => `${one};`).join('\n')} end`
  await client.query(
    `create or replace function parsed() returns void language plpgsql as $svc_body$ ${body} $svc_body$`,
  )
}

test.each(EMBEDDED)(
  'for any tree of %s, PostgreSQL’s grammar accepts the text, or the printer reports why it cannot print it',
  { timeout: 120_000 },
  async name => {
    const seen = { printed: 0, refused: 0 }
    await fc.assert(
      fc.asyncProperty(fc.array(builtStatements[name], { minLength: 1, maxLength: 12 }), async statements => {
        const texts: string[] = []
        for (const statement of statements) {
          for (const parameters of ['keep', 'all'] as const) {
            try {
              texts.push(printSql(statement, { parameters }).text)
              seen.printed += 1
            } catch (error) {
              if (!(error instanceof LanguageError)) throw error
              seen.refused += 1
            }
          }
        }
        await assertParses(texts.filter(hasGrammarFor))
      }),
      { numRuns: 60 },
    )
    expect(seen.printed).toBeGreaterThan(50)
    expect(seen.refused).toBeGreaterThan(0)
  },
)

test('PostgreSQL’s grammar accepts a column or function with the name of a keyword as a frame’s offset', async () => {
  const { rows } = await client.query<{ word: string }>('select word from pg_get_keywords()')
  const trees = rows.flatMap(({ word }) =>
    [column(word), column(word, 'i'), call(word, [])].flatMap(offset => {
      const start = { kind: 'preceding' as const, offset, span: NOWHERE }
      return [null, { kind: 'following' as const, offset, span: NOWHERE }].map(end => {
        const frame = { kind: 'frame' as const, unit: 'rows' as const, start, end, span: NOWHERE }
        const over = { kind: 'window' as const, base: null, partitionBy: [], orderBy: [], frame, span: NOWHERE }
        const counted = call('count', [], { star: true, over })
        return get({ table: { schema: null, name: 't' }, alias: word, fields: [field(counted)] })
      })
    }),
  )
  const texts = trees.flatMap(tree => {
    try {
      return [printSql(tree).text]
    } catch (error) {
      // A function of the language with that name takes arguments.
      if (error instanceof LanguageError) return []
      throw error
    }
  })
  expect(texts.length).toBeGreaterThan(2_400)
  await assertParses(texts)
})

test('the check itself detects a statement that does not parse', async () => {
  await expect(assertParses(['SELECT a b c FROM t'])).rejects.toThrow('syntax error')
})

const span = NOWHERE

// ---- well-typed trees -------------------------------------------------------------------------------------

interface Typed {
  readonly boolean: Expression
  readonly number: Expression
  readonly string: Expression
}

/** Expressions over one row of `t` with the alias `a` that cannot fail for any value. */
const sound = fc.letrec<Record<keyof Typed, Expression>>(tie => {
  const pair = (kind: keyof Typed): fc.Arbitrary<[Expression, Expression]> => fc.tuple(tie(kind), tie(kind))
  const u = (where: Expression, what: Expression): Get =>
    get({ table: { schema: null, name: 'u' }, fields: [field(what)], where })
  return {
    boolean: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      fc.constantFrom<Expression>(column('a', 'b'), literal('boolean', 'true'), literal('boolean', 'false')),
      pair('boolean').map(operands => and(...operands)),
      pair('boolean').map(operands => or(...operands)),
      tie('boolean').map(not),
      fc
        .tuple(
          fc.constantFrom('=' as const, '<>' as const, '<' as const, '>=' as const),
          fc.oneof(pair('number'), pair('string')),
        )
        .map(([operator, [left, right]]) => compare(operator, left, right)),
      fc.oneof(tie('number'), tie('string')).map(operand => isNull(operand)),
      fc.oneof(pair('number'), pair('string')).map(([left, right]) => isDistinct(left, right)),
      fc.tuple(tie('number'), pair('number')).map(([operand, values]) => inValues(operand, values)),
      fc
        .tuple(tie('string'), fc.constantFrom('s', '1', '%', '_'))
        .map(([left, value]) => compare('~', left, text(value))),
      fc
        .tuple(fc.constantFrom('{"a": 1}', '{}'), fc.boolean())
        .map(([value]) => compare('@>', column('a', 'd'), literal('json', value))),
      tie('number').map(what => exists(u(compare('=', column('u', 'i'), what), column('u', 'id')))),
      tie('number').map(operand => inQuery(operand, u(compare('=', column('u', 's'), text('s1')), column('u', 'i')))),
      fc.constantFrom('1d', '24h').map(value => compare('=', literal('duration', value), literal('duration', '24h'))),
      fc.constant<Expression>({ kind: 'json test', test: 'json_exists', operand: column('a', 'd'), path: '$.a', span }),
    ),
    number: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      fc.constantFrom<Expression>(
        column('a', 'i'),
        column('a', 'x'),
        integer('1'),
        integer('-2'),
        integer('3000000000'),
        literal('decimal', '1.5'),
      ),
      fc
        .tuple(fc.constantFrom('+' as const, '-' as const), pair('number'))
        .map(([operator, [left, right]]) => arithmetic(operator, cast(left, 'numeric'), right)),
      tie('number').map(operand => call('abs', [operand])),
      tie('string').map(operand => call('length', [operand])),
      pair('number').map(operands => call('coalesce', operands)),
    ),
    string: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      fc.constantFrom<Expression>(column('a', 's'), column('a', 'd', 's1')),
      content.map(value => cast(text(value), 'text')),
      pair('string').map(([left, right]) => arithmetic('||', left, right)),
      fc.constantFrom('a', 's1', "'").map(step => jsonStep('->>', column('a', 'd'), text(step))),
      tie('number').map(operand => cast(operand, 'text')),
      tie('string').map(operand => call('lower', [operand])),
      pair('string').map(operands => call('concat', [...operands, text('x')])),
    ),
  }
})

const value = fc.oneof(sound.number, sound.string)
const soundNest = fc.tuple(fc.boolean(), value, sound.boolean).map(([many, what, condition]) =>
  nest({
    many,
    table: { schema: null, name: 'u' },
    alias: 'nested',
    on: many
      ? compare('=', column('nested', 't_id'), column('a', 'id'))
      : compare('=', column('nested', 'id'), column('a', 'id')),
    fields: [field(column('nested', 'id'), 'id'), field(what, 'what')],
    where: condition,
    orderBy: [order(column('nested', 'id'))],
    limit: many ? integer('2') : null,
  }),
)

const soundGet: fc.Arbitrary<Get> = fc
  .record({
    values: fc.array(value, { minLength: 1, maxLength: 3 }),
    where: fc.option(sound.boolean),
    grouped: fc.constantFrom('implied', 'written', 'distinct', 'not'),
    nests: fc.array(soundNest, { maxLength: 1 }),
    inner: value,
  })
  .map(({ values, where, grouped, nests, inner }): Get => {
    const fields = values.map((expression, index) => field(expression, `f${index}`))
    const plain = get({ table: { schema: null, name: 't' }, alias: 'a', where, fields })
    // A group must depend on the row; PostgreSQL would take it for a position or reject it otherwise.
    const groups = values.map(expression => arithmetic('||', cast(column('a', 's'), 'text'), cast(expression, 'text')))
    const counted = [
      ...groups.map((expression, index) => field(expression, `f${index}`)),
      field(
        call(
          'sum',
          [cast(inner, 'text')].map(part => call('length', [part])),
        ),
        'n',
      ),
    ]
    switch (grouped) {
      case 'implied':
        return { ...plain, fields: counted, having: compare('>', column('n'), integer('0')) }
      case 'written':
        return {
          ...plain,
          fields: counted,
          groupBy: groups,
          orderBy: [order(column('f0'))],
          having: isNull(column('f0'), 'negated'),
        }
      case 'distinct':
        return {
          ...plain,
          distinct: { kind: 'distinct', on: [], span },
          orderBy: values
            .map(expression => order(expression))
            .filter(({ expression }) => expression.kind !== 'literal'),
        }
      default:
        return { ...plain, nests, orderBy: [order(column('a', 'id'))] }
    }
  })

async function answer(sql: { readonly text: string }, values: readonly string[] = []): Promise<readonly string[]> {
  const { rows } = await client.query({ text: sql.text, values: [...values] })
  return rows.map(row => JSON.stringify(row)).sort()
}

test('a query returns the same with literals and with parameters, and so do its rows as JSON', {
  timeout: 120_000,
}, async () => {
  let answered = 0
  await fc.assert(
    fc.asyncProperty(soundGet, async query => {
      const kept = await answer(printSql(query))
      const lifted = printSql(query, { parameters: 'all' })
      const values = lifted.parameters.map(one => (one.kind === 'literal' ? one.value : ''))
      expect(await answer(lifted, values), lifted.text).toEqual(kept)
      answered += kept.length
      const keys = query.distinct === null ? query.orderBy.map(one => one.expression) : []
      for (const offset of [null, integer('0')]) {
        const rows = await answer(printRows({ ...query, offset }, { keys }))
        expect(rows).toHaveLength(kept.length)
      }
    }),
    { numRuns: 500 },
  )
  expect(answered).toBeGreaterThan(1_000)
})

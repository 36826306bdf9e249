/**
 * The promises of src/language/README.md#promises, for trees nobody thought of. Any tree at all, of every kind, with hostile names and texts: PostgreSQL's grammar takes
 * what is printed. Trees of sound types: the text with literals and the text with parameters answer the same.
 */
import fc from 'fast-check'
import { beforeAll, expect, test } from 'vitest'
import { clientFixture, databaseFixture } from '../../../test/support/fixtures.ts'
import { hasGrammarFor } from '../../../test/support/postgres-version.ts'
import type {
  Assignment,
  Expression,
  Field,
  Frame,
  FunctionCall,
  Get,
  Join,
  Name,
  Nest,
  Order,
  Source,
  Statement,
  TableName,
  TypeName,
  WindowBody,
  With,
} from '../tree/ast.ts'
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
import { SYNTAX_FUNCTIONS } from '../tree/functions.ts'
import { printSql } from './print.ts'
import { printRows } from './print-rows.ts'

const database = databaseFixture()
const client = clientFixture(() => database.adminUrl)

beforeAll(() =>
  client.query(`
    create table t (id int primary key, i int, j int8, x numeric, b boolean, s text, d jsonb);
    create table u (id int primary key, t_id int, i int, s text);
    insert into t select n, n % 3, n % 5 - 2, n / 4.0, n % 2 = 0, 's' || n % 4, jsonb_build_object('a', n % 3, 's1', 's' || n % 2) from generate_series(1, 12) as n;
    insert into t values (13), (14);
    insert into u select n, n % 14, n % 4, 's' || n % 3 from generate_series(1, 30) as n;
  `),
)

// ---- any tree ----------------------------------------------------------------------------------------------

const span = NOWHERE
/** How far the parts of a tree may nest; every choice inside another counts. */
const shallow = { maxDepth: 8, depthIdentifier: fc.createDepthIdentifier() }
/** Mostly null. */
function seldom<T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | null> {
  return fc.oneof(shallow, { weight: 4, arbitrary: fc.constant(null) }, { weight: 1, arbitrary })
}
const word = fc.constantFrom(
  'a',
  'b',
  'users',
  'order',
  'select',
  'n',
  'r',
  'page',
  'recursive',
  'rows',
  'operator',
  'values',
  'left',
  'interval',
  'row',
  'cube',
  'Ünï',
  'a"b',
  "o'x",
  'a b',
  '$1',
  '--',
  '__proto__',
  'excluded',
)
const name: fc.Arbitrary<Name> = word.map(one => ({ kind: 'name', text: one, span }))
const names = fc.array(name, { minLength: 1, maxLength: 3 })
const table: fc.Arbitrary<TableName> = fc.record({
  kind: fc.constant('table' as const),
  schema: seldom(word),
  name: word,
  span: fc.constant(span),
})
const alias = fc.option(word)
const content = fc
  .oneof(
    fc.string({ unit: 'grapheme' }),
    fc.constantFrom("'", "''", '\\', "\\'", '$$', '--', '/*', ';', ':x', '$1', '%_'),
  )
  .filter(one => !one.includes('\0'))
const type: fc.Arbitrary<TypeName> = fc.record({
  kind: fc.constant('type' as const),
  schema: seldom(word),
  name: fc.oneof(
    word,
    fc.constantFrom(
      'int4',
      'text',
      'numeric',
      'double precision',
      'timestamptz',
      'char',
      'bit',
      'json',
      'interval',
      'time',
      'timestamp with time zone',
    ),
  ),
  modifiers: fc.constant([]),
  dimensions: fc.integer({ min: 0, max: 2 }),
  span: fc.constant(span),
})
const parameter = fc.oneof(
  fc.integer({ min: 1, max: 5 }).map(n => ({ kind: 'position', n, span }) as const),
  word.map(one => ({ kind: 'named', name: one, span }) as const),
)
const anyLiteral = fc.oneof(
  content.map(text),
  fc.bigInt({ min: -(2n ** 70n), max: 2n ** 70n }).map(value => integer(String(value))),
  fc.constantFrom('1.5', '-.5', '1e10', '2.').map(value => literal('decimal', value)),
  fc.constantFrom('true', 'false').map(value => literal('boolean', value)),
  fc.constant(literal('null', '')),
  fc
    .json()
    .filter(one => !one.includes('\\u0000'))
    .map(value => literal('json', value)),
  fc.constantFrom('1s', '5m', '24h', '7d', '2w', '3mo', '1y').map(value => literal('duration', value)),
)
const functionName = fc.oneof(
  word,
  fc.constantFrom(
    'count',
    'SUM',
    'lower',
    'coalesce',
    'greatest',
    'now',
    'rank',
    'current_date',
    'substring',
    'trim',
    'json_agg',
    'grouping',
    'string_agg',
  ),
)

interface Kinds {
  readonly expression: Expression
  readonly get: Get
  readonly nest: Nest
  readonly source: Source
  readonly statement: Statement
  readonly window: WindowBody
  readonly order: Order
  readonly field: Field
  readonly call: FunctionCall
  readonly with: With | null
  readonly join: Join
}

/** Most calls as a person would write them: the refusals of the others are tested one by one elsewhere. */
function plausible(one: FunctionCall): FunctionCall {
  const isSyntax = SYNTAX_FUNCTIONS.has(one.name)
  const isAggregate = !isSyntax && one.arguments.length > 0
  return {
    ...one,
    distinct: isAggregate && one.distinct,
    orderBy: isAggregate ? one.orderBy : [],
    filter: isSyntax ? null : one.filter,
    over: isSyntax ? null : one.over,
  }
}

const tree = fc.letrec<Record<keyof Kinds, unknown>>(tie => {
  const of = <K extends keyof Kinds>(kind: K): fc.Arbitrary<Kinds[K]> => tie(kind) as fc.Arbitrary<Kinds[K]>
  const e = of('expression')
  const maybe = fc.option(e, { ...shallow, freq: 2 })
  const list = (min: number, max = 3): fc.Arbitrary<Expression[]> => fc.array(e, { minLength: min, maxLength: max })
  const constant = <T>(value: T): fc.Arbitrary<T> => fc.constant(value)
  const rarely = <T>(arbitrary: fc.Arbitrary<T>, max = 2): fc.Arbitrary<T[]> =>
    fc.oneof(
      shallow,
      { weight: 3, arbitrary: constant<T[]>([]) },
      { weight: 1, arbitrary: fc.array(arbitrary, { maxLength: max }) },
    )
  const count = seldom(
    fc.oneof(
      fc.nat().map(n => integer(String(n))),
      parameter,
    ),
  )
  const assignments: fc.Arbitrary<Assignment[]> = fc.array(
    fc.record({ kind: constant('assignment' as const), column: name, value: e, span: constant(span) }),
    { minLength: 1, maxLength: 2 },
  )
  const returning = fc.option(fc.array(of('field'), { maxLength: 2 }))
  const writeJoins = rarely(
    fc.record({
      kind: constant('join' as const),
      type: constant('inner' as const),
      lateral: constant(false),
      source: of('source'),
      on: e,
      span: constant(span),
    }),
  )
  const where = fc.oneof(constant('all' as const), e)
  return {
    expression: fc.oneof(
      { ...shallow, withCrossShrink: true },
      fc.array(word, { minLength: 1, maxLength: 4 }).map(([first = 'a', ...path]) => column(first, ...path)),
      anyLiteral,
      parameter,
      fc
        .tuple(fc.constantFrom('and' as const, 'or' as const), list(2))
        .map(([kind, operands]) => ({ kind, operands, span })),
      fc
        .tuple(fc.constantFrom('not' as const, 'negate' as const), e)
        .map(([kind, operand]) => ({ kind, operand, span })),
      fc
        .tuple(
          fc.constantFrom(
            '=' as const,
            '<>' as const,
            '<' as const,
            '@>' as const,
            '&&' as const,
            '?' as const,
            '?|' as const,
            '@@' as const,
            'regex' as const,
            '~*' as const,
            '~' as const,
            'matches' as const,
          ),
          e,
          e,
        )
        .map(([operator, left, right]) => compare(operator, left, right)),
      fc.record({
        kind: constant('pattern' as const),
        operator: fc.constantFrom('like' as const, 'ilike' as const, 'similar to' as const),
        negated: fc.boolean(),
        operand: e,
        pattern: e,
        span: constant(span),
      }),
      fc.record({
        kind: constant('is' as const),
        what: fc.constantFrom('null' as const, 'true' as const, 'false' as const),
        negated: fc.boolean(),
        operand: e,
        span: constant(span),
      }),
      fc.record({
        kind: constant('distinct from' as const),
        negated: fc.boolean(),
        left: e,
        right: e,
        span: constant(span),
      }),
      fc.record({
        kind: constant('between' as const),
        negated: fc.boolean(),
        operand: e,
        low: e,
        high: e,
        span: constant(span),
      }),
      fc.record({
        kind: constant('in' as const),
        negated: fc.boolean(),
        operand: e,
        set: fc.oneof(
          list(1).map(values => ({ kind: 'in values', values, span }) as const),
          of('get').map(query => ({ kind: 'subquery', query, span }) as const),
          parameter,
        ),
        span: constant(span),
      }),
      fc.record({ kind: constant('exists' as const), negated: fc.boolean(), query: of('get'), span: constant(span) }),
      fc.record({
        kind: constant('json test' as const),
        test: fc.constantFrom('json_exists' as const, 'json_query' as const, 'json_value' as const),
        operand: e,
        path: content,
        span: constant(span),
      }),
      fc
        .tuple(
          fc.constantFrom('||' as const, '+' as const, '-' as const, '*' as const, '/' as const, '%' as const),
          e,
          e,
        )
        .map(([operator, left, right]) => arithmetic(operator, left, right)),
      fc
        .tuple(fc.constantFrom('->' as const, '->>' as const, '#>' as const, '#>>' as const), e, e)
        .map(([operator, operand, step]) => jsonStep(operator, operand, step)),
      fc.record({ kind: constant('cast' as const), operand: e, type, span: constant(span) }),
      of('call'),
      fc.record({
        kind: constant('case' as const),
        operand: maybe,
        whens: fc.array(fc.tuple(e, e), { minLength: 1, maxLength: 2 }).map(pairs =>
          pairs.map(
            ([when, result]) =>
              Object.fromEntries([
                ['when', when],
                ['then', result],
              ]) as unknown as { when: Expression; then: Expression },
          ),
        ),
        else: maybe,
        span: constant(span),
      }),
      of('get').map(query => ({ kind: 'subquery', query, span }) as const),
      fc
        .tuple(fc.constantFrom('array' as const, 'row' as const), list(0))
        .map(([kind, items]) => ({ kind, items, span })),
    ),
    call: fc
      .record({
        kind: constant('function' as const),
        schema: seldom(word),
        name: functionName,
        distinct: fc.boolean(),
        star: constant(false),
        arguments: list(0, 2),
        orderBy: rarely(of('order')),
        filter: seldom(e),
        over: seldom(fc.oneof(word, of('window'))),
        span: constant(span),
      })
      .map(plausible),
    window: fc.record({
      kind: constant('window' as const),
      base: alias,
      partitionBy: rarely(e),
      orderBy: rarely(of('order')),
      frame: fc.option(
        fc.record({
          kind: constant('frame' as const),
          unit: fc.constantFrom('rows' as const, 'range' as const, 'groups' as const),
          start: fc.oneof(
            constant({ kind: 'unbounded preceding', span } as const),
            e.map(offset => ({ kind: 'preceding', offset, span }) as const),
          ),
          end: fc.option(
            fc.oneof(
              constant({ kind: 'current row', span } as const),
              e.map(offset => ({ kind: 'following', offset, span }) as const),
            ),
          ),
          span: constant(span),
        }) as fc.Arbitrary<Frame>,
      ),
      span: constant(span),
    }),
    order: fc.record({
      kind: constant('order' as const),
      expression: e,
      descending: fc.boolean(),
      nulls: fc.constantFrom(null, 'first' as const, 'last' as const),
      span: constant(span),
    }),
    field: fc.oneof(
      { weight: 9, arbitrary: fc.tuple(e, alias).map(([expression, as]) => field(expression, as)) },
      { weight: 1, arbitrary: alias.map(one => ({ kind: 'star', of: one, span }) as const) },
    ),
    source: fc.oneof(
      shallow,
      {
        weight: 4,
        arbitrary: fc.record({
          kind: constant('table source' as const),
          table,
          alias,
          condition: seldom(e),
          span: constant(span),
        }),
      },
      {
        weight: 1,
        arbitrary: fc.record({
          kind: constant('query source' as const),
          query: of('get'),
          alias: word,
          span: constant(span),
        }),
      },
    ),
    join: fc
      .record({
        kind: constant('join' as const),
        type: fc.constantFrom('left' as const, 'inner' as const, 'right' as const, 'full' as const),
        lateral: fc.boolean(),
        source: of('source'),
        on: maybe,
        span: constant(span),
      })
      .map(join =>
        join.source.kind === 'query source' ? { ...join, on: join.on ?? column('a') } : { ...join, lateral: false },
      ),
    nest: fc.record({
      kind: constant('nest' as const),
      many: fc.boolean(),
      table,
      alias,
      name: alias,
      on: maybe,
      fields: rarely(of('field')),
      nests: rarely(of('nest'), 1),
      where: maybe,
      orderBy: rarely(of('order')),
      limit: constant(null),
      offset: count,
      span: constant(span),
    }),
    with: seldom(
      fc.record({
        kind: constant('with' as const),
        recursive: fc.boolean(),
        tables: fc.array(
          fc.record({
            kind: constant('cte' as const),
            name,
            columns: fc.oneof(constant([]), names),
            statement: of('get'),
            span: constant(span),
          }),
          { minLength: 1, maxLength: 2 },
        ),
        span: constant(span),
      }),
    ),
    get: fc.record({
      kind: constant('get' as const),
      purpose: fc.constantFrom('rows' as const, 'export' as const),
      with: of('with'),
      distinct: seldom(rarely(e).map(on => ({ kind: 'distinct', on, span }) as const)),
      source: of('source'),
      joins: rarely(of('join')),
      nests: rarely(of('nest'), 1),
      fields: fc.array(of('field'), { maxLength: 3 }),
      where: maybe,
      groupBy: rarely(e),
      having: seldom(e),
      windows: rarely(
        fc.record({ kind: constant('named window' as const), name, body: of('window'), span: constant(span) }),
        1,
      ),
      compounds: rarely(
        fc.record({
          kind: constant('compound' as const),
          operator: fc.constantFrom('union' as const, 'intersect' as const, 'except' as const),
          all: fc.boolean(),
          query: of('get'),
          span: constant(span),
        }),
        1,
      ),
      orderBy: rarely(of('order')),
      limit: count,
      offset: count,
      lock: seldom(
        fc.record({
          kind: constant('lock' as const),
          strength: fc.constantFrom('update' as const, 'share' as const),
          wait: fc.constantFrom(null, 'nowait' as const, 'skip locked' as const),
          span: constant(span),
        }),
      ),
      span: constant(span),
    }),
    statement: fc.oneof(
      { weight: 4, arbitrary: of('get') },
      {
        weight: 1,
        arbitrary: fc.record({
          kind: constant('add' as const),
          with: of('with'),
          table,
          columns: constant([]),
          rows: fc.oneof(
            list(1).map(row => ({ kind: 'values', rows: [row, row], span }) as const),
            of('get').map(query => ({ kind: 'from', query, span }) as const),
            constant({ kind: 'defaults', span } as const),
          ),
          conflict: fc.option(
            fc.record({
              kind: constant('conflict' as const),
              target: names,
              update: fc.option(fc.record({ assignments, where: maybe })),
              span: constant(span),
            }),
          ),
          returning,
          span: constant(span),
        }),
      },
      {
        weight: 1,
        arbitrary: fc.record({
          kind: constant('set' as const),
          with: of('with'),
          table,
          alias,
          joins: writeJoins,
          assignments,
          where,
          returning,
          span: constant(span),
        }),
      },
      {
        weight: 1,
        arbitrary: fc.record({
          kind: constant('del' as const),
          with: of('with'),
          table,
          alias,
          joins: writeJoins,
          where,
          returning,
          span: constant(span),
        }),
      },
      {
        weight: 1,
        arbitrary: fc.record({
          kind: constant('merge' as const),
          with: of('with'),
          table,
          alias,
          using: of('source'),
          on: e,
          whens: fc.array(
            fc.oneof(
              fc.record({
                kind: constant('when' as const),
                match: fc.constantFrom('matched' as const, 'not matched by source' as const),
                and: maybe,
                action: fc.oneof(
                  assignments.map(list => ({ kind: 'merge update', assignments: list, span }) as const),
                  constant({ kind: 'merge delete', span } as const),
                ),
                span: constant(span),
              }),
              fc.record({
                kind: constant('when' as const),
                match: fc.constantFrom('not matched' as const, 'not matched by target' as const),
                and: maybe,
                action: list(1).map(values => ({ kind: 'merge insert', columns: [], values, span }) as const),
                span: constant(span),
              }),
            ),
            { minLength: 1, maxLength: 3 },
          ),
          span: constant(span),
        }),
      },
      {
        weight: 1,
        arbitrary: fc.record({
          kind: constant('make' as const),
          table,
          columns: fc.array(
            fc.record({
              kind: constant('column definition' as const),
              name,
              type,
              primaryKey: constant(false),
              unique: fc.boolean(),
              nullable: fc.boolean(),
              default: maybe,
              check: maybe,
              references: fc.option(fc.record({ table, column: word })),
              span: constant(span),
            }),
            { minLength: 1, maxLength: 3 },
          ),
          constraints: fc.array(
            fc.record({
              kind: fc.constantFrom('primary key' as const, 'unique' as const),
              columns: names,
              span: constant(span),
            }),
            { maxLength: 1 },
          ),
          span: constant(span),
        }),
      },
      {
        weight: 1,
        arbitrary: fc.record({
          kind: constant('index' as const),
          name,
          table,
          columns: names,
          unique: fc.boolean(),
          where: maybe,
          span: constant(span),
        }),
      },
      {
        weight: 1,
        arbitrary: fc.record({
          kind: constant('call' as const),
          function: table,
          arguments: list(0),
          span: constant(span),
        }),
      },
    ),
  }
})

/** PL/pgSQL has every statement of a function parsed, and nothing more, when the function is created. */
async function assertParses(statements: readonly string[]): Promise<void> {
  const body = `begin ${statements.map(one => `${one};`).join('\n')} end`
  await client.query(
    `create or replace function parsed() returns void language plpgsql as $svc_body$ ${body} $svc_body$`,
  )
}

test('whatever the tree, PostgreSQL’s grammar takes the text, or the printer says why there is none', {
  timeout: 120_000,
}, async () => {
  const seen = { printed: 0, refused: 0 }
  const kinds = new Set<string>()
  await fc.assert(
    fc.asyncProperty(
      fc.array(tree.statement as fc.Arbitrary<Statement>, { minLength: 1, maxLength: 12 }),
      async statements => {
        const texts: string[] = []
        for (const statement of statements) {
          for (const parameters of ['keep', 'all'] as const) {
            try {
              texts.push(printSql(statement, { parameters }).text)
              seen.printed += 1
              kinds.add(statement.kind)
            } catch (error) {
              if (!(error instanceof LanguageError)) throw error
              seen.refused += 1
            }
          }
        }
        await assertParses(texts.filter(hasGrammarFor))
      },
    ),
    { numRuns: 300 },
  )
  expect([...kinds].sort()).toEqual(['add', 'call', 'del', 'get', 'index', 'make', 'merge', 'set'])
  expect(seen.printed).toBeGreaterThan(1_000)
  expect(seen.refused).toBeGreaterThan(50)
})

test('the check can fail: what does not parse is noticed', async () => {
  await expect(assertParses(['SELECT a b c FROM t'])).rejects.toThrow('syntax error')
})

// ---- trees of sound types ----------------------------------------------------------------------------------

interface Typed {
  readonly boolean: Expression
  readonly number: Expression
  readonly string: Expression
}

/** Expressions over one row of `t` under the alias `a` that no value can make fail. */
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
    // A group must depend on the row, or PostgreSQL takes it for a position or refuses it.
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

test('with literals and with parameters a query answers the same, and so do its rows as JSON', {
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

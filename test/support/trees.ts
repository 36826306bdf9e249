/**
 * Random trees of the whole grammar, in two forms: trees that a query text can express, to compare text and
 * tree; and any trees that the types allow, which the builder can create. Names and strings are chosen to
 * cause trouble: key words, quotes, back-ticks, non-Latin scripts, comment markers.
 */
import fc from 'fast-check'
import type {
  Add,
  Assignment,
  Call,
  ColumnDefinition,
  Compound,
  Conflict,
  Count,
  Del,
  Distinct,
  Explain,
  Expression,
  Field,
  Frame,
  FrameBound,
  FunctionCall,
  Get,
  Index,
  Join,
  Literal,
  Lock,
  Make,
  Merge,
  MergeWhen,
  Name,
  NamedWindow,
  Nest,
  Order,
  Parameter,
  Set as SetStatement,
  Source,
  Statement,
  TableConstraint,
  TableName,
  Transaction,
  TypeName,
  WindowBody,
  With,
} from '../../src/language/tree/ast.ts'
import { NOWHERE } from '../../src/language/tree/ast.ts'
import { SYNTAX_FUNCTIONS } from '../../src/language/tree/functions.ts'

const span = NOWHERE

/** Maximum nesting of a tree's parts. Every choice inside another counts. */
const shallow = { maxDepth: 7, depthIdentifier: fc.createDepthIdentifier() }

function constant<const T>(value: T): fc.Arbitrary<T> {
  return fc.constant(value)
}

function one<const T>(...values: readonly T[]): fc.Arbitrary<T> {
  return fc.constantFrom(...values)
}

/** Null most of the time. */
function seldom<T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | null> {
  return fc.oneof(shallow, { weight: 4, arbitrary: fc.constant(null) }, { weight: 1, arbitrary })
}

/** An empty array most of the time. */
function rarely<T>(arbitrary: fc.Arbitrary<T>, maxLength = 2): fc.Arbitrary<readonly T[]> {
  return fc.oneof(
    shallow,
    { weight: 3, arbitrary: fc.constant([]) },
    { weight: 1, arbitrary: fc.array(arbitrary, { minLength: 1, maxLength }) },
  )
}

/** A node of this kind. */
function node<K extends string, T extends object>(
  kind: K,
  parts: { readonly [P in keyof T]: fc.Arbitrary<T[P]> },
): fc.Arbitrary<{ kind: K } & T & { span: typeof NOWHERE }> {
  return fc.record({ kind: constant(kind), ...parts, span: constant(span) }) as unknown as fc.Arbitrary<
    { kind: K } & T & { span: typeof NOWHERE }
  >
}

// ---- words, texts, numbers ----

const WORDS = `
  a b users id name n r page Users ID order select group table values left interval row rows cube count all
  any and or not exists in is as on between like true false null case when then else end distinct from where
  fields limit offset union with recursive get add set del merge make index call begin explain excluded array
  extract substring filter over window partition range groups current unbounded nothing update delete insert
  defaults matched conflict returning using for nulls desc asc first last regex json_exists similar nest many
  lateral join inner cross full right unique pk ref nullable primary key default check cnt export having by
  skip locked nowait share constructor toString
`

/** Any name that PostgreSQL accepts. */
export const word: fc.Arbitrary<string> = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom(...WORDS.trim().split(/\s+/)) },
  {
    weight: 2,
    arbitrary: one(
      'Ünï',
      'таблица',
      '表',
      'a"b',
      "o'x",
      'a b',
      'a`b',
      '`',
      '``',
      '$1',
      ':a',
      '--',
      '/*',
      ' ',
      '1a',
      '1',
      'a.b',
      'a-b',
      '\\',
      '\n',
      '\t',
      '😀',
      'SELECT',
      'Order Details',
      '24h',
      'a$',
      '_',
      '__proto__',
    ),
  },
  {
    weight: 1,
    arbitrary: fc.string({ unit: 'grapheme', minLength: 1, maxLength: 5 }).filter(text => !text.includes('\0')),
  },
)

/** Any string that UTF-8 can encode. */
export const content: fc.Arbitrary<string> = fc
  .oneof(
    fc.string({ unit: 'grapheme' }),
    one(
      '',
      "'",
      "''",
      "'''",
      '"',
      '""',
      '"""',
      `'"`,
      `"'`,
      '\\',
      "\\'",
      '$$',
      '--',
      '/*',
      '*/',
      ';',
      ':x',
      '$1',
      '%_',
      '\n',
      '\r\n',
      '`',
    ),
    fc.string({ unit: fc.constantFrom("'", '"', 'a', '\n', ' '), maxLength: 8 }),
  )
  .filter(text => !text.includes('\0'))

const natural = fc.oneof(
  fc.nat({ max: 1000 }).map(String),
  fc.bigInt({ min: 0n, max: 2n ** 80n }).map(String),
  one('0', '007'),
)
const digits = fc.oneof({ weight: 3, arbitrary: natural }, { weight: 1, arbitrary: natural.map(text => `-${text}`) })

const writtenLiteral: fc.Arbitrary<Literal> = fc.oneof(
  node('literal', { type: constant('integer'), value: digits }),
  node('literal', {
    type: constant('decimal'),
    value: one('1.5', '0.10', '-2.5', '5.', '.5', '1e10', '1E+5', '-2.5e-3', '123456789012345678901234567890.123'),
  }),
  node('literal', { type: constant('text'), value: content }),
  node('literal', { type: constant('boolean'), value: one('true', 'false') }),
  node('literal', { type: constant('null'), value: constant('') }),
  node('literal', {
    type: constant('json'),
    value: fc.oneof(
      fc
        .dictionary(fc.string({ unit: 'grapheme' }), fc.jsonValue({ maxDepth: 2 }), { maxKeys: 3 })
        .map(value => JSON.stringify(value)),
      one(
        '{}',
        '[{}]',
        '[1, "x", {"a": [true]}]',
        '{"a": 1}',
        '{\n  "a" : [1, {"b": null}]\n}',
        '{"a": "}\\"{"}',
        '{"--": "/*"}',
      ),
    ),
  }),
  node('literal', { type: constant('duration'), value: one('1s', '5m', '24h', '7d', '2w', '3mo', '1y', '010d') }),
)

/**
 * Values that query texts cannot express: the parser treats a sign as an operator, and does not keep white
 * space outside JSON.
 */
const builtLiteral: fc.Arbitrary<Literal> = fc.oneof(
  node('literal', { type: constant('integer'), value: fc.bigInt({ min: -(2n ** 70n), max: 2n ** 70n }).map(String) }),
  node('literal', { type: constant('decimal'), value: one('1.5', '-.5', '1e10', '2.') }),
  node('literal', { type: constant('json'), value: fc.json().filter(text => !text.includes('\\u0000')) }),
)

const writtenParameter: fc.Arbitrary<Parameter> = fc.oneof(
  node('position', { n: fc.integer({ min: 1, max: 40 }) }),
  node('named', { name: one('a', 'id', 'tenant_id', 'Select', 'order', '_x9', 'pk', 'null', 'имя') }),
)

const writtenType: fc.Arbitrary<TypeName> = fc.oneof(
  node('type', {
    schema: constant(null),
    name: one(
      'int4',
      'int8',
      'text',
      'bool',
      'float8',
      'jsonb',
      'json',
      'timestamptz',
      'timestamp',
      'time',
      'date',
      'uuid',
      'interval',
      'bytea',
    ),
    modifiers: constant([]),
    dimensions: fc.integer({ min: 0, max: 2 }),
  }),
  node('type', {
    schema: constant(null),
    name: one('numeric', 'varchar'),
    modifiers: fc.array(fc.integer({ min: -9, max: 2 ** 31 - 1 }), { minLength: 1, maxLength: 2 }),
    dimensions: fc.integer({ min: 0, max: 1 }),
  }),
  node('type', {
    schema: constant(null),
    name: fc.oneof(word, one('string', 'double precision', 'Text')),
    modifiers: constant([]),
    dimensions: constant(0),
  }),
  node('type', { schema: word, name: word, modifiers: constant([]), dimensions: fc.integer({ min: 0, max: 1 }) }),
)

const builtType: fc.Arbitrary<TypeName> = node('type', {
  schema: seldom(word),
  name: fc.oneof(
    word,
    one('int4', 'text', 'numeric', 'double precision', 'timestamptz', 'char', 'bit', 'json', 'interval', 'time'),
    constant('timestamp with time zone'),
  ),
  modifiers: constant([]),
  dimensions: fc.integer({ min: 0, max: 2 }),
})

const name: fc.Arbitrary<Name> = node('name', { text: word })
const names = fc.array(name, { minLength: 1, maxLength: 3 })
const table: fc.Arbitrary<TableName> = node('table', { schema: seldom(word), name: word })
const alias = fc.option(word)

// ---- what contains each other ----

/** Each kind of statement, and each use of a read. */
export const STATEMENTS = [
  'get',
  'export',
  'count',
  'add',
  'set',
  'del',
  'merge',
  'make',
  'index',
  'call',
  'begin',
  'commit',
  'rollback',
  'explain',
] as const

interface Kinds {
  readonly expression: Expression
  readonly nest: Nest
  readonly source: Source
  readonly window: WindowBody
  readonly order: Order
  readonly field: Field
  readonly with: With | null
  readonly get: Get
  readonly export: Get
  readonly count: Get
  readonly add: Add
  readonly set: SetStatement
  readonly del: Del
  readonly merge: Merge
  readonly make: Make
  readonly index: Index
  readonly call: Call
  readonly begin: Transaction
  readonly commit: Transaction
  readonly rollback: Transaction
  readonly explain: Explain
  readonly statement: Statement
}

/** An operand of the same kind would be flattened: `and` and `or` are flat. */
function flat(kind: 'and' | 'or', operands: readonly Expression[]): Expression {
  return { kind, operands: operands.flatMap(part => (part.kind === kind ? part.operands : [part])), span }
}

/** The forms of read that `count` accepts. */
function counted({ source, joins, where, with: clause }: Get): Get {
  return {
    kind: 'get',
    purpose: 'count',
    with: clause,
    distinct: null,
    source,
    joins,
    nests: [],
    fields: [],
    where,
    groupBy: [],
    having: null,
    windows: [],
    compounds: [],
    orderBy: [],
    limit: null,
    offset: null,
    lock: null,
    span,
  }
}

/** A call as a person would write it, which PostgreSQL's grammar accepts for any function. */
function plausible(call: FunctionCall): FunctionCall {
  const isSyntax = SYNTAX_FUNCTIONS.has(call.name)
  const isAggregate = !isSyntax && call.arguments.length > 0
  return {
    ...call,
    star: call.star && !isSyntax,
    distinct: isAggregate && call.distinct,
    orderBy: isAggregate ? call.orderBy : [],
    filter: isSyntax ? null : call.filter,
    over: isSyntax ? null : call.over,
  }
}

/** A join as a person would write it. */
function plausibleJoin(join: Join): Join {
  if (join.type === 'cross' || join.source.kind !== 'query source') return { ...join, lateral: false }
  return { ...join, on: join.on ?? { kind: 'column', path: ['a'], span } }
}

/**
 * `written`: trees that a text can express and that parse back to the same tree. `built`: any trees that the
 * types allow, most of them plausible enough to be printed as SQL.
 */
function treesOf(form: 'written' | 'built') {
  const isBuilt = form === 'built'
  /**
   * In a built tree, uses `likely` most of the time, because one rejected part rejects the whole statement.
   */
  const mostly = <T>(likely: fc.Arbitrary<T>, other: fc.Arbitrary<T>): fc.Arbitrary<T> =>
    isBuilt ? fc.oneof({ weight: 19, arbitrary: likely }, { weight: 1, arbitrary: other }) : other
  const also = <T>(written: fc.Arbitrary<T>, built: fc.Arbitrary<T>): fc.Arbitrary<T> =>
    isBuilt ? fc.oneof(written, built) : written
  const literal = also(writtenLiteral, builtLiteral)
  const parameter = also(writtenParameter, node('named', { name: word }) as fc.Arbitrary<Parameter>)
  const type = also(writtenType, builtType)
  const count: fc.Arbitrary<Count | null> = seldom(
    fc.oneof(node('literal', { type: constant('integer'), value: natural }), parameter),
  )
  return fc.letrec<Record<keyof Kinds, unknown>>(tie => {
    const of = <K extends keyof Kinds>(kind: K): fc.Arbitrary<Kinds[K]> => tie(kind) as fc.Arbitrary<Kinds[K]>
    const e = of('expression')
    const maybe: fc.Arbitrary<Expression | null> = fc.option(e, { ...shallow, freq: 2 })
    const list = (minLength: number, maxLength = 3): fc.Arbitrary<Expression[]> => fc.array(e, { minLength, maxLength })
    const negated = fc.boolean()
    const orders = rarely(of('order'))
    const fields = (minLength: number): fc.Arbitrary<Field[]> => fc.array(of('field'), { minLength, maxLength: 3 })
    const assignments: fc.Arbitrary<readonly Assignment[]> = fc.array(node('assignment', { column: name, value: e }), {
      minLength: 1,
      maxLength: 2,
    })
    const returning = seldom(fields(isBuilt ? 0 : 1))
    const where: fc.Arbitrary<Expression | 'all'> = fc.oneof(constant('all'), e)
    const anyJoin: fc.Arbitrary<Join> = node('join', {
      type: one('left', 'inner', 'right', 'full', 'cross'),
      lateral: fc.boolean(),
      source: of('source'),
      on: maybe,
    })
    const joins = rarely(mostly(anyJoin.map(plausibleJoin), anyJoin))
    /** The parts of a statement that writes. */
    const writeJoins = rarely(
      mostly(node('join', { type: constant('inner'), lateral: constant(false), source: of('source'), on: e }), anyJoin),
    )
    const bound: fc.Arbitrary<FrameBound> = fc.oneof(
      node('unbounded preceding', {}),
      node('current row', {}),
      node('unbounded following', {}),
      node('preceding', { offset: e }),
      node('following', { offset: e }),
    )
    // PostgreSQL's grammar rejects a frame that ends before it starts.
    const [start, end] = isBuilt
      ? [
          fc.oneof(node('unbounded preceding', {}), node('current row', {}), node('preceding', { offset: e })),
          fc.oneof(node('current row', {}), node('unbounded following', {}), node('following', { offset: e })),
        ]
      : [bound, bound]
    const frame: fc.Arbitrary<Frame> = node('frame', {
      unit: one('rows', 'range', 'groups'),
      start,
      end: fc.option(end),
    })
    const anyCall: fc.Arbitrary<FunctionCall> = fc
      .record({
        schema: seldom(word),
        name: fc.oneof(
          word,
          one('count', 'SUM', 'lower', 'coalesce', 'now', 'rank', 'current_date', 'cast', 'Substring', 'LEFT'),
          one('greatest', 'substring', 'trim', 'json_agg', 'grouping', 'string_agg'),
        ),
        distinct: fc.boolean(),
        star: fc.boolean(),
        arguments: list(0, 2),
        orderBy: orders,
        filter: seldom(e),
        over: seldom(fc.oneof(word, of('window'))),
      })
      .map(parts => {
        const bare = parts.star || parts.arguments.length === 0
        return {
          kind: 'function',
          ...parts,
          arguments: parts.star ? [] : parts.arguments,
          distinct: parts.distinct && !bare,
          orderBy: bare ? [] : parts.orderBy,
          span,
        }
      })
    /** Inside another statement. The statements of a transaction are separate. */
    const inner = isBuilt
      ? fc.oneof<fc.Arbitrary<Statement>[]>(of('get'), of('get'), of('add'), of('set'), of('del'))
      : of('statement')
    const call = mostly(anyCall.map(plausible), anyCall)
    const anyWhen: fc.Arbitrary<MergeWhen> = node('when', {
      match: one('matched', 'not matched', 'not matched by source', 'not matched by target'),
      and: maybe,
      action: fc.oneof(
        node('merge update', { assignments }),
        node('merge insert', { columns: fc.oneof(constant([]), names), values: list(1) }),
        node('merge delete', {}),
        node('merge nothing', {}),
      ),
    })
    /** The action must be possible for the kind of match. */
    const plausibleWhen = anyWhen.filter(
      ({ match, action }) =>
        action.kind === 'merge nothing' ||
        (action.kind === 'merge insert') === (match === 'not matched' || match === 'not matched by target'),
    )
    return {
      expression: fc.oneof(
        { ...shallow, withCrossShrink: true },
        node('column', { path: fc.array(word, { minLength: 1, maxLength: isBuilt ? 4 : 3 }) }),
        literal,
        parameter,
        fc
          .tuple(one('and', 'or'), list(2))
          .map(([kind, operands]) => (isBuilt ? { kind, operands, span } : flat(kind, operands))),
        // `not exists` is a single node.
        e.map(
          (operand): Expression =>
            operand.kind === 'exists' && !operand.negated && !isBuilt
              ? { ...operand, negated: true }
              : { kind: 'not', operand, span },
        ),
        node('negate', { operand: e }),
        node('comparison', {
          operator: one(
            ...([
              '=',
              '<>',
              '<',
              '<=',
              '>',
              '>=',
              '@>',
              '<@',
              '&&',
              '?',
              '?|',
              '?&',
              '@@',
              'regex',
              '~*',
              '~',
            ] as const),
            ...(isBuilt ? (['matches'] as const) : []),
          ),
          left: e,
          right: e,
        }),
        node('pattern', { operator: one('like', 'ilike', 'similar to'), negated, operand: e, pattern: e }),
        node('is', { what: one('null', 'true', 'false'), negated, operand: e }),
        node('distinct from', { negated, left: e, right: e }),
        node('between', { negated, operand: e, low: e, high: e }),
        node('in', {
          negated,
          operand: e,
          set: fc.oneof(
            node('in values', { values: list(1) }),
            node('subquery', { query: of('get') }),
            parameter,
            node('cast', { operand: parameter, type }),
          ),
        }),
        node('exists', { negated, query: of('get') }),
        node('json test', { test: one('json_exists', 'json_query', 'json_value'), operand: e, path: content }),
        node('arithmetic', { operator: one('||', '+', '-', '*', '/', '%'), left: e, right: e }),
        node('json step', { operator: one('->', '->>', '#>', '#>>'), operand: e, step: e }),
        node('cast', { operand: e, type }),
        call,
        node('function', {
          schema: constant(null),
          name: constant('extract'),
          distinct: constant(false),
          star: constant(false),
          arguments: fc.tuple(
            node('literal', { type: constant('text'), value: one('day', 'epoch', 'from', 'time zone', "it's") }),
            e,
          ),
          orderBy: constant([]),
          filter: constant(null),
          over: constant(null),
        }),
        node('case', {
          operand: maybe,
          // biome-ignore lint/suspicious/noThenProperty: the branches of the tree have a `then`.
          whens: fc.array(fc.record({ when: e, then: e }), { minLength: 1, maxLength: 2 }),
          else: maybe,
        }),
        node('subquery', { query: of('get') }),
        node('array', { items: list(0) }),
        node('row', { items: list(0) }),
      ),
      window: node('window', { base: seldom(word), partitionBy: rarely(e), orderBy: orders, frame: fc.option(frame) }),
      order: node('order', { expression: e, descending: fc.boolean(), nulls: one(null, 'first', 'last') }),
      field: fc.oneof(
        { weight: 9, arbitrary: node('field', { expression: e, alias }) },
        { weight: 1, arbitrary: node('star', { of: alias }) },
      ),
      source: fc.oneof(
        shallow,
        { weight: 4, arbitrary: node('table source', { table, alias, condition: seldom(e) }) },
        { weight: 1, arbitrary: node('query source', { query: of('get'), alias: word }) },
      ),
      nest: node('nest', {
        many: fc.boolean(),
        table,
        alias,
        name: isBuilt ? alias : constant(null),
        on: maybe,
        fields: fc.oneof(constant([]), fields(1)),
        nests: rarely(of('nest'), 1),
        where: maybe,
        orderBy: orders,
        limit: count,
        offset: count,
      }),
      with: seldom(
        node('with', {
          recursive: fc.boolean(),
          tables: fc.array(
            node('cte', {
              name,
              columns: fc.oneof(constant([]), names),
              statement: fc.oneof(
                shallow,
                { weight: 3, arbitrary: of('get') as fc.Arbitrary<Statement> },
                { weight: 1, arbitrary: inner },
              ),
            }),
            { minLength: 1, maxLength: 2 },
          ),
        }),
      ),
      get: fc.record({
        kind: constant('get'),
        purpose: isBuilt ? one('rows', 'export') : constant('rows'),
        with: of('with') as fc.Arbitrary<With | null>,
        distinct: seldom(node('distinct', { on: rarely(e) }) as fc.Arbitrary<Distinct>),
        source: of('source'),
        joins,
        nests: rarely(of('nest'), 1),
        fields: fc.array(of('field'), { maxLength: 3 }),
        where: maybe,
        groupBy: rarely(e),
        having: seldom(e),
        windows: rarely(node('named window', { name, body: of('window') }) as fc.Arbitrary<NamedWindow>, 2),
        compounds: rarely(
          node('compound', { operator: one('union', 'intersect', 'except'), all: fc.boolean(), query: of('get') }),
        ) as fc.Arbitrary<readonly Compound[]>,
        orderBy: orders,
        limit: count,
        offset: count,
        lock: seldom(
          node('lock', {
            strength: one('update', 'share'),
            wait: one(null, 'nowait', 'skip locked'),
          }) as fc.Arbitrary<Lock>,
        ),
        span: constant(span),
      }),
      export: of('get').map((get): Get => ({ ...get, purpose: 'export' })),
      count: of('get').map(counted),
      add: node('add', {
        with: of('with'),
        table,
        columns: fc.oneof(constant([]), names),
        rows: fc.oneof(
          fc
            .integer({ min: 1, max: 3 })
            .chain(width => fc.array(list(width, width), { minLength: 1, maxLength: 3 }))
            .map(rows => ({ kind: 'values' as const, rows, span })),
          node('from', { query: of('get') }),
          node('defaults', {}),
        ),
        conflict: fc.option(
          node('conflict', {
            target: fc.oneof(constant([]), names),
            update: fc.option(fc.record({ assignments, where: maybe })),
          }) as fc.Arbitrary<Conflict>,
        ),
        returning,
      }),
      set: node('set', { with: of('with'), table, alias, joins: writeJoins, assignments, where, returning }),
      del: node('del', { with: of('with'), table, alias, joins: writeJoins, where, returning }),
      merge: node('merge', {
        with: of('with'),
        table,
        alias,
        using: of('source'),
        on: e,
        whens: fc.array(mostly(plausibleWhen, anyWhen), { minLength: 1, maxLength: 3 }),
      }),
      make: node('make', {
        table,
        columns: fc.array(
          node('column definition', {
            name,
            type,
            primaryKey: fc.boolean(),
            unique: fc.boolean(),
            nullable: fc.boolean(),
            default: seldom(e),
            check: seldom(e),
            references: seldom(fc.record({ table, column: word })),
          }) as fc.Arbitrary<ColumnDefinition>,
          { minLength: 1, maxLength: 3 },
        ),
        constraints: rarely(
          fc.oneof(
            node('primary key', { columns: names }),
            node('unique', { columns: names }),
          ) as fc.Arbitrary<TableConstraint>,
        ),
      }),
      index: node('index', { name, table, columns: names, unique: fc.boolean(), where: maybe }),
      call: node('call', { function: table, arguments: list(0) }),
      begin: node('begin', {}),
      commit: node('commit', {}),
      rollback: node('rollback', {}),
      explain: node('explain', { statement: inner }),
      statement: fc.oneof(
        shallow,
        { weight: 6, arbitrary: of('get') as fc.Arbitrary<Statement> },
        { weight: 1, arbitrary: of('export') },
        { weight: 1, arbitrary: of('count') },
        { weight: 3, arbitrary: fc.oneof<fc.Arbitrary<Statement>[]>(of('add'), of('set'), of('del'), of('merge')) },
        {
          weight: 1,
          arbitrary: fc.oneof<fc.Arbitrary<Statement>[]>(
            of('make'),
            of('index'),
            of('call'),
            fc.oneof(of('begin'), of('commit'), of('rollback')),
          ),
        },
        { weight: 1, arbitrary: of('explain') },
      ),
    }
  })
}

type Statements = Readonly<Record<(typeof STATEMENTS)[number], fc.Arbitrary<Statement>>>

const written = treesOf('written')

/** Any expression that a text can express. */
export const anyExpression = written.expression as fc.Arbitrary<Expression>

/** Any statement that a text can express. */
export const anyStatement = written.statement as fc.Arbitrary<Statement>

/** Statements that a text can express, by kind. */
export const writtenStatements = written as Statements

/** Statements of trees that the types allow, by kind. */
export const builtStatements = treesOf('built') as Statements

/** `parseSchema(printSchema(d))` equals `d`, except for positions, for any schema document. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { LanguageError } from '../language/tree/error.ts'
import { canonicalElement, canonicalExpression } from './expression.ts'
import type {
  Check,
  CommentTarget,
  Exclusion,
  ForeignKeyDefinition,
  FunctionArgument,
  FunctionDefinition,
  FunctionResultDefinition,
  IndexDefinition,
  KeyConstraint,
  Name,
  PartitionDefinition,
  PolicyDefinition,
  ReferenceDefinition,
  SchemaColumn,
  SchemaDocument,
  SchemaType,
  TableDefinition,
  TableName,
  Timing,
} from './model.ts'
import { NOWHERE } from './model.ts'
import { parseSchema } from './parse.ts'
import { printSchema } from './print.ts'

const span = fc.constant(NOWHERE)

/** Names that look safe, and unusual names. */
const nameText = fc.oneof(
  fc.constantFrom(
    'users',
    'id',
    'Users',
    'Order Details',
    'tenant_id',
    'über',
    'a`b',
    'a"b',
    "a'b",
    'a\nb',
    'a$$b',
    '名前',
    '😀',
  ),
  fc.constantFrom(
    ...[
      'table',
      'index',
      'unique',
      'check',
      'primary_key',
      'not_null',
      'default',
      'references',
      'identity',
      'on',
      'using',
      'where',
    ],
    ...[
      'in',
      'out',
      'inout',
      'variadic',
      'double',
      'interval',
      'time',
      'setof',
      'string',
      'enable_rls',
      'exclude',
      'public',
      'to',
    ],
  ),
  fc.string({ unit: 'grapheme', minLength: 1, maxLength: 8 }).filter(isName),
)

function isName(text: string): boolean {
  return text !== '' && !/\0|\p{Surrogate}/u.test(text) && Buffer.byteLength(text) <= 63
}

const name: fc.Arbitrary<Name> = fc.record({ kind: fc.constant('name' as const), text: nameText, span })
const names = fc.array(name, { minLength: 1, maxLength: 3 })
const tableName: fc.Arbitrary<TableName> = fc.record({
  kind: fc.constant('table' as const),
  schema: fc.option(nameText),
  name: nameText,
  span,
})

const type: fc.Arbitrary<SchemaType> = fc
  .record({
    kind: fc.constant('type' as const),
    schema: fc.option(nameText, { freq: 5 }),
    name: fc.oneof(
      nameText,
      fc.constantFrom('int4', 'text', 'char', 'timestamptz', 'interval day to second', 'numeric', 'float8', 'bpchar'),
    ),
    modifiers: fc.array(fc.constantFrom('10', '-2', '0', 'Point'), { maxLength: 2 }),
    dimensions: fc.integer({ min: 0, max: 3 }),
    span,
  })
  // One form for each meaning: `char` has its length, `bpchar` has none.
  .map(made => {
    if (made.schema !== null) return made
    if (made.name === 'char' && made.modifiers.length === 0) return { ...made, modifiers: ['1'] }
    return made.name === 'bpchar' ? { ...made, modifiers: [] } : made
  })

/**
 * Expressions with misleading content: quotes, comments, key words of the document, brackets, rows, line
 * breaks.
 */
const token = fc.constantFrom(
  ...[
    'a',
    '1',
    '+',
    ',',
    '(b)',
    "'it''s'",
    "'('",
    "E'\\''",
    '"Order ""Date"""',
    '$$ ) $$',
    '$q$ " $q$',
    '[1, 2]',
    '(c, d)',
  ],
  ...[
    'not_null',
    'unique',
    'check',
    'identity',
    '#>>',
    '#',
    '\n',
    "'x'\n'y'",
    '::text',
    '-- c )\n',
    '/* /* ( */ */',
    '(select 1)',
  ],
  ...['((', '))', "'\n'", '`', '😀', '=', 'default', 'x.check'],
)
const rough = fc.array(token, { minLength: 1, maxLength: 6 }).map(tokens => tokens.join(' '))

function settled(make: (text: string) => string): fc.Arbitrary<string> {
  return rough
    .map(text => {
      try {
        return make(text)
      } catch (error) {
        if (error instanceof LanguageError) return ''
        throw error
      }
    })
    .filter(text => text !== '')
}

const expression = settled(canonicalExpression)
const element = settled(canonicalElement)
const elements = fc.array(element, { minLength: 1, maxLength: 3 })
const body = fc
  .array(
    fc.oneof(fc.string({ maxLength: 5 }), fc.constantFrom('$$', '$', '$q1', '$q1$', '$q2$', '\n', ' select 1 ', "'")),
    { maxLength: 6 },
  )
  .map(parts => parts.join('').replaceAll(/\0|\p{Surrogate}/gu, ''))
const query = body.map(text => text.replaceAll(/^[ \t\n\r\f\v]+|[ \t\n\r\f\v]+$/g, '')).filter(text => text !== '')
const text = fc
  .oneof(fc.string({ unit: 'grapheme' }), fc.constantFrom("it's", "''", '', 'a\nb'))
  .filter(made => !/\0|\p{Surrogate}/u.test(made))

const timing: fc.Arbitrary<Timing> = fc.constantFrom('immediate', 'deferrable', 'deferred')
const action = fc.constantFrom(
  'no action' as const,
  'restrict' as const,
  'cascade' as const,
  'set null' as const,
  'set default' as const,
)
const check: fc.Arbitrary<Check> = fc.record({ kind: fc.constant('check' as const), expression, span })

function reference(width: number): fc.Arbitrary<ReferenceDefinition> {
  return fc
    .record({
      ...{
        kind: fc.constant('reference' as const),
        table: tableName,
        columns: fc.array(name, { minLength: width, maxLength: width }),
      },
      ...{ onDelete: action, onDeleteColumns: fc.array(name, { maxLength: 2 }), onUpdate: action },
      ...{ matchFull: fc.boolean(), period: fc.boolean(), timing, span },
    })
    .map(made => (made.onDelete.startsWith('set ') ? made : { ...made, onDeleteColumns: [] }))
}

const column: fc.Arbitrary<SchemaColumn> = fc
  .record({
    ...{ kind: fc.constant('column definition' as const), name, type, primaryKey: fc.boolean(), notNull: fc.boolean() },
    ...{ unique: fc.boolean(), checks: fc.array(check, { maxLength: 2 }), references: fc.option(reference(1)), span },
    value: fc.oneof(
      fc.constant({ default: null, identity: null, generated: null }),
      expression.map(made => ({ default: made, identity: null, generated: null })),
      fc
        .constantFrom('always' as const, 'by default' as const)
        .map(made => ({ default: null, identity: made, generated: null })),
      fc
        .record({ expression, storage: fc.constantFrom('stored' as const, 'virtual' as const) })
        .map(made => ({ default: null, identity: null, generated: made })),
    ),
  })
  .map(({ value, ...made }) => ({ ...made, ...value }))

const key: fc.Arbitrary<KeyConstraint> = fc
  .record({
    ...{ kind: fc.constantFrom('unique' as const, 'primary key' as const), columns: names },
    ...{ nullsDistinct: fc.boolean(), withoutOverlaps: fc.boolean(), timing, span },
  })
  .map(made => (made.kind === 'unique' ? made : { ...made, nullsDistinct: true }))

const foreignKey: fc.Arbitrary<ForeignKeyDefinition> = names.chain(columns =>
  fc.record({
    ...{ kind: fc.constant('foreign key' as const), columns: fc.constant(columns) },
    ...{ references: reference(columns.length), span },
  }),
)

const exclusion: fc.Arbitrary<Exclusion> = fc.record({
  ...{ kind: fc.constant('exclusion' as const), method: fc.option(nameText), elements },
  ...{ where: fc.option(expression), timing, span },
})

const partition: fc.Arbitrary<PartitionDefinition> = fc.record({
  ...{ kind: fc.constant('partition' as const), strategy: nameText, elements, span },
})

const table: fc.Arbitrary<TableDefinition> = fc.record({
  ...{ kind: fc.constant('table definition' as const), name: tableName, columns: fc.array(column, { maxLength: 4 }) },
  ...{ keys: fc.array(key, { maxLength: 2 }), foreignKeys: fc.array(foreignKey, { maxLength: 2 }) },
  ...{ checks: fc.array(check, { maxLength: 2 }), exclusions: fc.array(exclusion, { maxLength: 1 }) },
  ...{ partition: fc.option(partition), rowSecurity: fc.record({ enabled: fc.boolean(), forced: fc.boolean() }), span },
})

const index: fc.Arbitrary<IndexDefinition> = fc.record({
  ...{ kind: fc.constant('index definition' as const), name, table: tableName, unique: fc.boolean() },
  ...{ nullsDistinct: fc.boolean(), method: fc.option(nameText), elements, include: fc.array(name, { maxLength: 2 }) },
  ...{ where: fc.option(expression), span },
})

const policy: fc.Arbitrary<PolicyDefinition> = fc.record({
  ...{ kind: fc.constant('policy' as const), name, table: tableName },
  operation: fc.constantFrom(
    'all' as const,
    'select' as const,
    'insert' as const,
    'update' as const,
    'delete' as const,
  ),
  roles: fc.array(
    name.filter(made => made.text !== 'public'),
    { maxLength: 3 },
  ),
  ...{ restrictive: fc.boolean(), using: fc.option(query), withCheck: fc.option(query), span },
})

const argument: fc.Arbitrary<FunctionArgument> = fc.record({
  ...{ kind: fc.constant('argument' as const), name: fc.option(nameText), type, default: fc.option(expression), span },
  mode: fc.constantFrom('in' as const, 'out' as const, 'inout' as const, 'variadic' as const),
})

const result: fc.Arbitrary<FunctionResultDefinition> = fc.oneof(
  fc.record({ kind: fc.constantFrom('value' as const, 'set' as const), type, span }),
  fc.record({
    kind: fc.constant('table' as const),
    columns: fc.array(fc.record({ kind: fc.constant('result column' as const), name, type, span }), { maxLength: 2 }),
    span,
  }),
)

const routine: fc.Arbitrary<FunctionDefinition> = fc.record({
  ...{
    kind: fc.constant('function' as const),
    name: tableName,
    arguments: fc.array(argument, { maxLength: 3 }),
    returns: result,
  },
  ...{ language: nameText, volatility: fc.constantFrom('immutable' as const, 'stable' as const, 'volatile' as const) },
  ...{ securityDefiner: fc.boolean(), strict: fc.boolean(), body, span },
})

const target: fc.Arbitrary<CommentTarget> = fc.oneof(
  fc.record({ kind: fc.constant('relation' as const), name: tableName, span }),
  fc.record({ kind: fc.constant('column' as const), table: tableName, column: name, span }),
  fc.record({ kind: fc.constant('type name' as const), name: tableName, span }),
  fc.record({
    ...{ kind: fc.constant('function name' as const), name: tableName },
    ...{ arguments: fc.array(type, { maxLength: 2 }), span },
  }),
)

const documents: fc.Arbitrary<SchemaDocument> = fc.record({
  kind: fc.constant('document' as const),
  extensions: fc.array(name, { maxLength: 2 }),
  enums: fc.array(
    fc.record({
      ...{ kind: fc.constant('enum' as const), name: tableName, span },
      labels: fc.array(fc.record({ kind: fc.constant('name' as const), text, span }), { maxLength: 3 }),
    }),
    { maxLength: 2 },
  ),
  domains: fc.array(
    fc.record({
      ...{ kind: fc.constant('domain' as const), name: tableName, type, notNull: fc.boolean() },
      ...{ default: fc.option(expression), checks: fc.array(check, { maxLength: 2 }), span },
    }),
    { maxLength: 2 },
  ),
  tables: fc.array(table, { maxLength: 3 }),
  indexes: fc.array(index, { maxLength: 2 }),
  views: fc.array(
    fc
      .record({
        ...{ kind: fc.constant('view' as const), name: tableName, materialized: fc.boolean() },
        ...{ securityInvoker: fc.boolean(), query, span },
      })
      .map(made => (made.materialized ? { ...made, securityInvoker: false } : made)),
    { maxLength: 2 },
  ),
  functions: fc.array(routine, { maxLength: 2 }),
  policies: fc.array(policy, { maxLength: 2 }),
  comments: fc.array(fc.record({ kind: fc.constant('comment' as const), on: target, text, span }), { maxLength: 2 }),
  span,
})

/** The tree without positions. */
function bare(document: SchemaDocument): unknown {
  return JSON.parse(JSON.stringify(document), (key, value) => (key === 'span' ? undefined : value))
}

describe('any document', () => {
  test('printed text is parsed to the same tree and printed identically', () => {
    fc.assert(
      fc.property(documents, document => {
        const printed = printSchema(document)
        const parsed = parseSchema(printed)
        expect(bare(parsed)).toEqual(bare(document))
        expect(printSchema(parsed)).toBe(printed)
      }),
      { numRuns: 400 },
    )
  })

  test('the span of a part contains exactly its text', () => {
    fc.assert(
      fc.property(documents, document => {
        const printed = printSchema(document)
        const parsed = parseSchema(printed)
        for (const part of [
          ...parsed.tables,
          ...parsed.indexes,
          ...parsed.policies,
          ...parsed.functions,
          ...parsed.comments,
        ]) {
          const alone = parseSchema(printed.slice(part.span.start, part.span.end))
          const found = [...alone.tables, ...alone.indexes, ...alone.policies, ...alone.functions, ...alone.comments]
          expect(JSON.parse(JSON.stringify(found), withoutSpan)).toEqual([
            JSON.parse(JSON.stringify(part), withoutSpan),
          ])
        }
      }),
      { numRuns: 100 },
    )
  })
})

function withoutSpan(key: string, value: unknown): unknown {
  return key === 'span' ? undefined : value
}

describe('canonical text', () => {
  test('parts are ordered by kind, with a column per line', () => {
    const text = `comment on users 'People' policy own on users for select to app using $$ id = me() $$
      table users { id uuid primary_key default ( gen_random_uuid() ), email string not_null unique, "x" }`
    expect(() => parseSchema(text)).toThrow('a column in back-ticks: `name`')
    expect(printSchema(parseSchema(text.replace(', "x"', '')))).toBe(
      [
        'table users {',
        '  id uuid primary_key default gen_random_uuid()',
        '  email text not_null unique',
        '}',
        '',
        'policy own on users for select to app',
        '  using $$ id = me() $$',
        '',
        "comment on users 'People'",
        '',
      ].join('\n'),
    )
  })

  test('an empty document is an empty text', () => {
    expect(printSchema(parseSchema('  # only a comment'))).toBe('')
  })

  test('a default that would end too early or contains a comma is printed in parentheses', () => {
    const printed = (value: string) =>
      /default (.*)/.exec(printSchema(parseSchema(`table t { a int default ${value} }`)))?.[1]
    expect(printed("'a, b'")).toBe("'a, b'")
    expect(printed("now() + (interval '1 day')")).toBe("now() + (interval '1 day')")
    expect(printed('((1))')).toBe('1')
    expect(printed('(1, 2)')).toBe('(1, 2)')
    expect(printed('(select 1)')).toBe('(select 1)')
    expect(printed('(a # b)')).toBe('(a # b)')
    expect(printed('(identity(3))')).toBe('(identity(3))')
    expect(printed('(case\n  when a then 1 -- one\n  else 2 end)')).toBe('case when a then 1 else 2 end')
    expect(printed("('a'\n'b')")).toBe("('a'")
  })

  test('a body that contains dollar signs is quoted with a tag', () => {
    const printed = (body: string) =>
      printSchema({
        ...parseSchema('function f() returns void language sql $$$$'),
        functions: parseSchema(`function f() returns void language sql $x$${body}$x$`).functions,
      })
    expect(printed('select 1')).toContain('$$select 1$$')
    expect(printed('select $$1$$')).toContain('$q1$select $$1$$$q1$')
    expect(printed('$q1$ $$ $q1$')).toContain('$q2$$q1$ $$ $q1$$q2$')
  })

  test('a tree that no document can express is rejected', () => {
    const document = parseSchema('table t { a int check (a > 0) }')
    const [one] = document.tables
    if (one === undefined) throw new Error('no table')
    const [column] = one.columns
    if (column === undefined) throw new Error('no column')
    const withCheck = (expression: string) => ({
      ...document,
      tables: [{ ...one, columns: [{ ...column, checks: [{ kind: 'check' as const, expression, span: NOWHERE }] }] }],
    })
    expect(printSchema(withCheck('a > (1)'))).toContain('check (a > (1))')
    for (const expression of ['a) ; drop table t; --', "'", '', '(', 'a; b', '{']) {
      expect(() => printSchema(withCheck(expression)), expression).toThrow(LanguageError)
    }
    const long = 'n'.repeat(64)
    expect(() => printSchema({ ...document, extensions: [{ kind: 'name', text: long, span: NOWHERE }] })).toThrow(
      '64 bytes',
    )
  })
})

/**
 * src/language/README.md#promises: a statement that cannot be printed in full is rejected with a reason,
 * never printed in part.
 */
import { describe, expect, test } from 'vitest'
import { parse } from '../syntax/parse.ts'
import type {
  Add,
  Del,
  Expression,
  Get,
  Index,
  Join,
  Make,
  Merge,
  MergeWhen,
  Set as SetStatement,
  Statement,
} from '../tree/ast.ts'
import { NOWHERE } from '../tree/ast.ts'
import {
  and,
  call,
  cast,
  column,
  compare,
  field,
  get,
  integer,
  inValues,
  literal,
  named,
  nest,
  not,
  or,
  position,
  star,
  tableName,
  text,
} from '../tree/build.ts'
import { LanguageError } from '../tree/error.ts'
import { NESTING_MAX } from '../tree/nesting.ts'
import { printSql } from './print.ts'

const users = { schema: null, name: 'users' }
const table = tableName(users)
const plain = get({ table: users })
const where = (condition: Expression): Get => get({ table: users, where: condition })
const name = (value: string) => ({ kind: 'name', text: value, span: NOWHERE }) as const
const one = integer('1')
const count = call('count', [], { star: true })
const derived = { kind: 'query source', query: plain, alias: 'x', span: NOWHERE } as const
const join: Join = { kind: 'join', type: 'left', lateral: false, source: { ...plain.source }, on: null, span: NOWHERE }
const set: SetStatement = {
  kind: 'set',
  with: null,
  table,
  alias: null,
  joins: [],
  assignments: [{ kind: 'assignment', column: name('a'), value: one, span: NOWHERE }],
  where: 'all',
  returning: null,
  span: NOWHERE,
}
const del: Del = {
  kind: 'del',
  with: null,
  table,
  alias: null,
  joins: [],
  where: 'all',
  returning: null,
  span: NOWHERE,
}
const add: Add = {
  kind: 'add',
  with: null,
  table,
  columns: [],
  rows: { kind: 'defaults', span: NOWHERE },
  conflict: null,
  returning: null,
  span: NOWHERE,
}
const lock = { kind: 'lock', strength: 'update', wait: null, span: NOWHERE } as const
const distinct = { kind: 'distinct', on: [], span: NOWHERE } as const
const posts = nest({ many: true, table: { schema: null, name: 'posts' } })
const merge = (match: MergeWhen['match'], action: MergeWhen['action']): Merge => ({
  kind: 'merge',
  with: null,
  table,
  alias: null,
  using: derived,
  on: literal('boolean', 'true'),
  whens: [{ kind: 'when', match, and: null, action, span: NOWHERE }],
  span: NOWHERE,
})
const make = (columns: Make['columns']): Make => ({ kind: 'make', table, columns, constraints: [], span: NOWHERE })
const id: Make['columns'][number] = {
  kind: 'column definition',
  name: name('id'),
  type: { kind: 'type', schema: null, name: 'int8', modifiers: [], dimensions: 0, span: NOWHERE },
  primaryKey: true,
  unique: false,
  nullable: false,
  default: null,
  check: null,
  references: null,
  span: NOWHERE,
}
const index: Index = {
  kind: 'index',
  name: name('i'),
  table,
  columns: [name('a')],
  unique: false,
  where: null,
  span: NOWHERE,
}
const withWrite = {
  kind: 'with',
  recursive: false,
  tables: [{ kind: 'cte', name: name('x'), columns: [], statement: del, span: NOWHERE }],
  span: NOWHERE,
} as const

test.each<[string, Statement, string]>([
  ['count with a limit', { ...plain, purpose: 'count', limit: one }, 'count takes no limit'],
  ['count with a nest', { ...plain, purpose: 'count', nests: [posts] }, 'count takes no nest'],
  ['a limit with decimals', { ...plain, limit: literal('decimal', '1.5') }, 'limit takes a whole number'],
  [
    'a negative offset',
    { ...plain, offset: integer('-1') },
    'offset takes a whole number that is not negative, or a parameter; it got -1',
  ],
  ['in ()', where(inValues(column('a'), [])), 'in () has no values'],
  [
    '* beside an aggregate',
    get({ table: users, fields: [star(), field(count)] }),
    '* cannot be combined with an aggregate',
  ],
  ['nests under distinct', { ...plain, nests: [posts], distinct }, 'distinct cannot compare nested rows'],
  [
    'nests under union',
    {
      ...plain,
      nests: [posts],
      compounds: [{ kind: 'compound', operator: 'union', all: false, query: plain, span: NOWHERE }],
    },
    'union cannot compare nested rows',
  ],
  [
    'a lock after distinct',
    { ...plain, distinct, lock },
    '"for update" locks the rows of a table; it cannot follow distinct',
  ],
  [
    'a lock after an aggregate',
    { ...get({ table: users, fields: [field(count)] }), lock },
    'it cannot follow an aggregate',
  ],
  [
    'a lock in a part of a compound',
    {
      ...plain,
      compounds: [{ kind: 'compound', operator: 'union', all: true, query: { ...plain, lock }, span: NOWHERE }],
    },
    'locks the rows of a single get',
  ],
  [
    'nest one with a limit',
    { ...plain, nests: [{ ...posts, many: false, limit: integer('2') }] },
    'nest posts is one row; write "nest many" for more',
  ],
  [
    'cross join with on',
    { ...plain, joins: [{ ...join, type: 'cross', on: literal('boolean', 'true') }] },
    'cross join takes no "on"',
  ],
  ['a lateral join of a table', { ...plain, joins: [{ ...join, lateral: true }] }, 'join lateral takes a query'],
  [
    'a derived table without on',
    { ...plain, joins: [{ ...join, source: derived }] },
    'the join of the query x needs "on"',
  ],
  [
    'a left join of the table that is set',
    { ...set, joins: [join] },
    'set cannot left join its table; write inner join',
  ],
  [
    'a left join on the table that is deleted from',
    {
      ...del,
      joins: [
        { ...join, type: 'inner' },
        { ...join, on: compare('=', column(del.table.name, 'id'), integer('1')) },
      ],
    },
    `del cannot left join on its own table "${del.table.name}"`,
  ],
  [
    'a full join in del',
    {
      ...del,
      joins: [
        { ...join, type: 'inner' },
        { ...join, type: 'full' },
      ],
    },
    'del cannot full join its table',
  ],
  ['set without assignments', { ...set, assignments: [] }, 'set has no assignments'],
  ['add without rows', { ...add, rows: { kind: 'values', rows: [], span: NOWHERE } }, 'add has no rows'],
  [
    'rows of different width',
    { ...add, columns: [name('a'), name('b')], rows: { kind: 'values', rows: [[one, one], [one]], span: NOWHERE } },
    'row 2 of add has 1 values; expected 2',
  ],
  ['defaults with fields', { ...add, columns: [name('a')] }, 'add with "defaults" takes no "fields"'],
  [
    'conflict update without a key',
    {
      ...add,
      conflict: { kind: 'conflict', target: [], update: { assignments: set.assignments, where: null }, span: NOWHERE },
    },
    'conflict … update needs the columns of the unique key',
  ],
  [
    'merge without when',
    { ...merge('matched', { kind: 'merge delete', span: NOWHERE }), whens: [] },
    'merge has no "when"',
  ],
  [
    'merge that deletes what is not there',
    merge('not matched', { kind: 'merge delete', span: NOWHERE }),
    '"when not matched" can only insert or nothing',
  ],
  [
    'merge that inserts what is there',
    merge('matched', { kind: 'merge insert', columns: [], values: [one], span: NOWHERE }),
    '"when matched" can only update, delete or nothing',
  ],
  [
    'merge with too few values',
    merge('not matched', { kind: 'merge insert', columns: [name('a'), name('b')], values: [one], span: NOWHERE }),
    'merge inserts 1 values into 2 columns',
  ],
  ['make without columns', make([]), 'make has no columns'],
  ['two primary keys', make([id, { ...id, name: name('b') }]), 'write primary key (id, b)'],
  ['a nullable primary key', make([{ ...id, nullable: true }]), 'is a primary key and cannot be nullable'],
  ['a parameter in a definition', make([{ ...id, default: named('x') }]), 'make takes no parameters'],
  ['a parameter in an index', { ...index, where: position(1) }, 'index takes no parameters'],
  ['an index on nothing', { ...index, columns: [] }, 'index i has no columns'],
  [
    'explain of a definition',
    { kind: 'explain', statement: index, span: NOWHERE },
    'explain takes get, add, set, del or merge; it got index',
  ],
  [
    'a definition in with',
    { ...plain, with: { ...withWrite, tables: [{ ...withWrite.tables[0], statement: index }] } },
    'takes get, add, set, del or merge; it got index',
  ],
  [
    'a write in an inner with',
    { ...plain, source: { ...derived, query: { ...plain, with: withWrite } } },
    '"with x" changes data; that is possible only at the top level of the query',
  ],
  [
    'an unknown field of extract',
    get({ table: users, fields: [field(call('extract', [text("day'"), column('a')]))] }),
    'unknown field "',
  ],
  [
    'extract of nothing',
    get({ table: users, fields: [field(call('extract', []))] }),
    'extract is written extract(field from expression)',
  ],
  [
    'coalesce of nothing',
    get({ table: users, fields: [field(call('coalesce', []))] }),
    'coalesce takes at least 1 argument; it got 0',
  ],
  [
    'coalesce as an aggregate',
    get({ table: users, fields: [field(call('coalesce', [one], { distinct: true }))] }),
    'coalesce is not an aggregate',
  ],
  [
    'count(*) of something',
    get({ table: users, fields: [field(call('count', [one], { star: true }))] }),
    'takes neither arguments',
  ],
  [
    'a case without when',
    where({ kind: 'case', operand: null, whens: [], else: null, span: NOWHERE }),
    'a case has no "when"',
  ],
  ['a duration of no unit', where(literal('duration', '24x')), 'invalid duration "24x"'],
  ['an invalid number', where(literal('integer', '1; drop table users')), 'is not a number'],
  ['an invalid decimal', where(literal('decimal', '1e')), 'is not a number'],
  ['an invalid boolean', where(literal('boolean', 'yes')), 'neither true nor false'],
  ['a text with NUL', where(compare('=', column('a'), text('\0'))), 'contains a NUL character'],
  ['a column without a name', where({ kind: 'column', path: [], span: NOWHERE }), 'a column has no name'],
  [
    'a type with a strange modifier',
    where({ ...cast(one, 'numeric'), type: { ...id.type, modifiers: [Number.NaN] } }),
    'modifiers are whole numbers',
  ],
  ['a name that would be cut off', get({ table: users, fields: [field(one, 'x'.repeat(64))] }), 'has 64 bytes'],
])('a statement that cannot be printed is rejected: %s', (_, statement, message) => {
  expect(() => printSql(statement, { parameters: 'keep' })).toThrow(message)
  expect(() => printSql(statement, { parameters: 'all' })).toThrow(LanguageError)
})

describe('nesting', () => {
  const deep = (levels: number, leaf: Expression = column('a')): Expression =>
    levels === 0 ? leaf : not(deep(levels - 1, leaf))

  test('nested expressions are printed up to the limit', () => {
    // The get itself counts as a level, and so would one more "not".
    expect(printSql(where(deep(NESTING_MAX - 1))).text.match(/NOT/g)).toHaveLength(NESTING_MAX - 1)
    expect(() => printSql(where(deep(NESTING_MAX)))).toThrow(`nested more than ${NESTING_MAX} levels deep`)
  })

  test('nested queries count as levels', () => {
    let query = plain
    for (let level = 0; level < NESTING_MAX - 1; level += 1) query = { ...plain, source: { ...derived, query } }
    expect(printSql(query).text.match(/SELECT/g)).toHaveLength(NESTING_MAX)
    expect(() => printSql({ ...plain, source: { ...derived, query } })).toThrow(LanguageError)
  })

  test('a tree that would overflow the stack is rejected like any other', () => {
    let expression: Expression = column('a')
    for (let level = 0; level < 200_000; level += 1) expression = { kind: 'not', operand: expression, span: NOWHERE }
    expect(() => printSql(where(expression))).toThrow(LanguageError)
  })

  test('long lists do not count as nesting', () => {
    const many = Array.from({ length: 5_000 }, (_, n) => compare('=', column('a'), integer(String(n))))
    expect(printSql(where(or(...many))).text).toHaveLength(
      'SELECT * FROM users WHERE '.length + many.map((_, n) => `a = ${n}`).join(' OR ').length,
    )
    expect(printSql(where(and(...many)), { parameters: 'all' }).parameters).toHaveLength(5_000)
  })
})

test('an error has the span in the text, if there is a text', () => {
  const span = { start: 10, end: 14 }
  expect(() => printSql({ ...plain, limit: { ...integer('-1'), span } })).toThrow(
    expect.objectContaining({ name: 'LanguageError', span }),
  )
  expect(() => printSql({ ...plain, limit: integer('-1') })).toThrow(expect.objectContaining({ span: null }))
})

describe('repeated expressions', () => {
  const times = (count: number, text: string, separator: string): string =>
    Array.from({ length: count }, () => text).join(separator)
  const inside = (levels: number, query: string, around: (query: string) => string): string =>
    Array.from({ length: levels }).reduce<string>(inner => around(inner), query)
  const refused = 'would repeat parts of it more than 64 times'

  test.each(['keep', 'all'] as const)('the number of repetitions is limited, with parameters %s', parameters => {
    const print = (query: string) => () => printSql(parse(query), { parameters })
    const having = (mentions: number) => `get users fields max(id) as m having ${times(mentions, 'm > 1', ' or ')}`
    expect(print(having(64))).not.toThrow()
    expect(print(having(65))).toThrow(refused)
    // Six levels of ten mentions add up to sixty, but the innermost expression would be printed a million
    // times.
    const max = 'get users fields max(id) as m'
    expect(
      print(inside(6, max, query => `get users fields (${query}) as m having ${times(10, 'm > 1', ' or ')}`)),
    ).toThrow(refused)
    // Each of these is grouped by the query inside it.
    const sum = (levels: number) => inside(levels, max, query => `get users fields (${query}) + count(*) as m`)
    expect(print(sum(5))).not.toThrow()
    expect(print(sum(40))).toThrow(refused)
  })

  test.each(['keep', 'all'] as const)('the length of repetitions is limited, with parameters %s', parameters => {
    const having = (mentions: number) =>
      `get users fields concat(${times(4_000, 'id', ', ')}) as x having ${times(mentions, "x = 'a'", ' or ')}`
    expect(() => printSql(parse(having(4)), { parameters })).not.toThrow()
    expect(() => printSql(parse(having(5)), { parameters })).toThrow(
      'would repeat parts of it more than 65536 characters',
    )
  })

  test('the limit on the length of repetitions can be changed or disabled', () => {
    const query = parse(
      `get users fields concat(${times(400, 'id', ', ')}) as x having ${times(50, "x = 'a'", ' or ')}`,
    )
    const print = (repeatedCharactersMax: number) => () =>
      printSql(query, { parameters: 'all', repeatedCharactersMax }).text.length
    expect(print(10_000)).toThrow('would repeat parts of it more than 10000 characters')
    expect(print(100_000)).not.toThrow()
    expect(print(0)()).toBe(print(100_000)())
  })

  test('repetitions that cannot multiply are not counted', () => {
    const columns = Array.from({ length: 100 }, (_, index) => `lower(c${index})`)
    expect(printSql(parse(`get users fields ${columns.join(', ')}, count(*)`)).text).toContain('GROUP BY LOWER(c0), ')
  })
})

test('a lifted number keeps its type in a text comparison, so that PostgreSQL rejects both forms alike', () => {
  const query = parse(
    "get t where meta.n > 5 and 5 <= meta ->> 'n' and meta.n between 1 and 2 and a > 5 and meta.n = 5",
  )
  expect(printSql(query, { parameters: 'all' }).text).toBe(
    "SELECT * FROM t WHERE meta->>'n' > $1::int4 AND $2::int4 <= meta ->> $3 AND meta->>'n' BETWEEN " +
      "$4::int4 AND $5::int4 AND a > $6 AND meta->>'n' = $7",
  )
})

test('a lifted text beside null has a cast, because null has no type', () => {
  const query = parse("get t where 'a' is distinct from null and null is not distinct from 'b'")
  expect(printSql(query, { parameters: 'all' }).text).toBe(
    'SELECT * FROM t WHERE $1::text IS DISTINCT FROM NULL AND NULL IS NOT DISTINCT FROM $2::text',
  )
})

import { describe, expect, test } from 'vitest'
import { arrayOf, baseType, catalogOf, domainOver, tableOf } from '../../test/support/model.ts'
import { printSql } from '../language/sql/print.ts'
import type { Expression, Get } from '../language/tree/ast.ts'
import {
  arithmetic,
  cast,
  column,
  compare,
  exists,
  field,
  get,
  inSet,
  isDistinct,
  isNull,
  jsonStep,
  like,
  nest,
  order,
  position,
  row,
  star,
  text,
} from '../language/tree/build.ts'
import { checkRead } from './check.ts'
import { EVERYTHING, type Rights } from './rights.ts'

const status = { ...baseType('status'), schema: 'public', kind: 'enum' as const }

const catalog = catalogOf(
  tableOf('orders', {
    id: 'int8',
    status,
    state: domainOver('state', status),
    place: { ...baseType('address'), schema: 'public', kind: 'composite' },
    raw: 'json',
    raws: arrayOf(domainOver('raw', baseType('json'))),
    spot: 'point',
    total: domainOver('money', baseType('numeric')),
    tags: arrayOf(baseType('text')),
    marks: arrayOf(domainOver('mark', baseType('int4'))),
    meta: 'jsonb',
    note: 'text',
    flag: 'char',
    words: 'tsvector',
    customer_id: 'int8',
  }),
  tableOf('customers', { id: 'int8', name: 'text' }),
  tableOf('targets', { id: 'int4' }, { schema: 'sales' }),
)

const orders = { schema: null, name: 'orders' }

function sql(query: Get): string {
  return printSql(checkRead(query, { catalog, rights: EVERYTHING, searchLanguage: 'english' }).query, {
    parameters: 'keep',
  }).text
}

/** The SQL of the condition in a read of `id` alone. */
function condition(where: Expression): string {
  return sql(get({ table: orders, alias: 't', fields: [field(column('id'))], where })).replace(
    'SELECT t.id FROM public.orders AS t WHERE ',
    '',
  )
}

describe('names', () => {
  test('tables carry their schema, columns their alias, and * is expanded', () => {
    expect(sql(get({ table: { schema: null, name: 'customers' } }))).toBe(
      'SELECT customers.id, customers.name FROM public.customers',
    )
    expect(sql(get({ table: { schema: 'sales', name: 'targets' } }))).toBe('SELECT targets.id FROM sales.targets')
    expect(sql(get({ table: { schema: null, name: 'customers' }, fields: [star(), field(column('id'), 'key')] }))).toBe(
      'SELECT customers.id, customers.name, customers.id AS key FROM public.customers',
    )
  })
  test('a column listed in addition to * appears once', () => {
    expect(sql(get({ table: { schema: null, name: 'customers' }, fields: [field(column('name')), star()] }))).toBe(
      'SELECT customers.name, customers.id FROM public.customers',
    )
  })
  test.each<[string, Get, string]>([
    ['table', get({ table: { schema: null, name: 'ordres' } }), 'there is no table "ordres"; did you mean "orders"?'],
    ['schema', get({ table: { schema: 'pg_catalog', name: 'pg_class' } }), 'there is no table "pg_catalog.pg_class"'],
    ['field', get({ table: orders, fields: [field(column('totl'))] }), 'has no column "totl"; did you mean "total"?'],
    ['filter', get({ table: orders, where: compare('=', column('x'), position(1)) }), 'has no column "x"'],
    ['sort', get({ table: orders, orderBy: [order(column('x'))] }), 'has no column "x"'],
    [
      'alias',
      get({ table: orders, where: compare('=', column('y', 'id'), position(1)) }),
      '"y.id" begins with "y", which is neither a table',
    ],
    ['system column', get({ table: orders, fields: [field(column('xmin'))] }), 'has no column "xmin"'],
    ['prototype', get({ table: orders, fields: [field(column('__proto__'))] }), 'has no column "__proto__"'],
    [
      'in a subquery',
      get({
        table: orders,
        where: exists(
          get({ table: { schema: null, name: 'customers' }, where: compare('=', column('nope'), text('')) }),
        ),
      }),
      'table "customers" has no column "nope"',
    ],
    [
      'in a nest',
      get({
        table: orders,
        nests: [
          nest({ many: false, table: { schema: null, name: 'customers' }, on: compare('=', column('nope'), text('')) }),
        ],
      }),
      'has no column "nope"',
    ],
  ])('unknown %s', (_, query, message) => {
    expect(() => sql(query)).toThrow(message)
  })
  test('a nest sees its own columns first, then those around it', () => {
    const customer = nest({
      many: false,
      table: { schema: null, name: 'customers' },
      alias: 't1',
      name: 'customer',
      on: compare('=', column('id'), column('customer_id')),
    })
    expect(sql(get({ table: orders, alias: 't', fields: [field(column('id'))], nests: [customer] }))).toContain(
      'WHERE t1.id = t.customer_id',
    )
  })
  test('a relation named like a column is rejected', () => {
    const clash = nest({
      many: false,
      table: { schema: null, name: 'customers' },
      name: 'note',
      on: compare('=', column('t', 'id'), column('id')),
    })
    expect(() => sql(get({ table: orders, alias: 't', nests: [clash] }))).toThrow(
      '"note" is both a column and an expanded relation',
    )
  })
})

describe('a parameter takes the type of the column that it is compared with', () => {
  test.each<[string, Expression, string]>([
    ['integer', compare('=', column('id'), position(1)), 't.id = $1::int8'],
    ['on the left', compare('<', position(1), column('id')), '$1::int8 < t.id'],
    ['enum', compare('=', column('status'), position(1)), 't.status = $1::public.status'],
    ['domain', compare('>', column('total'), position(1)), 't.total > $1::numeric'],
    ['domain over an enum', compare('=', column('state'), position(1)), 't.state::public.status = $1::public.status'],
    ['two of them', compare('=', column('state'), column('state')), 't.state::public.status = t.state::public.status'],
    ['list for one', inSet(column('state'), position(1)), 't.state::public.status = ANY($1::public.status[])'],
    ['array', compare('@>', column('tags'), position(1)), 't.tags @> $1::text[]'],
    ['array of a domain', compare('@>', column('marks'), position(1)), 't.marks @> $1::public.mark[]'],
    ['"char"', compare('=', column('flag'), position(1)), 't.flag = $1::pg_catalog.char'],
    ['list', inSet(column('id'), position(1)), 't.id = ANY($1::int8[])'],
    ['negated list', inSet(column('id'), position(1), 'negated'), 't.id <> ALL($1::int8[])'],
    ['pattern on text', like('like', column('note'), position(1)), 't.note LIKE $1::text'],
    ['pattern on a value that is not a text', like('ilike', column('id'), position(1)), 't.id::text ILIKE $1::text'],
    ['regular expression on text', compare('regex', column('note'), position(1)), 't.note ~ $1::text'],
    [
      'regular expression on a value that is not a text',
      compare('~*', column('id'), position(1)),
      't.id::text ~* $1::text',
    ],
    [
      'path as text',
      compare('=', jsonStep('->>', column('meta'), cast(position(1), 'text')), position(2)),
      't.meta ->> $1::text = $2::text',
    ],
    [
      'path as json',
      compare('=', jsonStep('->', column('meta'), cast(position(1), 'int4')), position(2)),
      't.meta -> $1::int4 = $2::jsonb',
    ],
    [
      'row',
      compare('>', row([column('note'), column('id')]), row([position(1), position(2)])),
      '(t.note, t.id) > ($1::text, $2::int8)',
    ],
    [
      'search',
      compare('@@', column('note'), position(1)),
      `to_tsvector('english'::regconfig, COALESCE(t.note, '')) @@ websearch_to_tsquery('english'::regconfig, $1::text)`,
    ],
    [
      'search in a tsvector',
      compare('@@', column('words'), position(1)),
      `t.words @@ websearch_to_tsquery('english'::regconfig, $1::text)`,
    ],
    [
      'search in JSON',
      compare('@@', column('meta'), position(1)),
      `to_tsvector('english'::regconfig, t.meta) @@ websearch_to_tsquery('english'::regconfig, $1::text)`,
    ],
  ])('%s', (_, where, expected) => {
    expect(condition(where)).toBe(expected)
  })
  test('the use of each parameter is recorded for messages', () => {
    const { parameters } = checkRead(get({ table: orders, where: inSet(column('total'), position(1)) }), {
      catalog,
      rights: EVERYTHING,
      searchLanguage: 'english',
    })
    expect([...parameters]).toEqual([
      [
        1,
        { typeName: 'money', type: expect.objectContaining({ name: 'money' }), subject: 'column "total"', list: true },
      ],
    ])
  })
  test('a path into a value that is not JSON is rejected', () => {
    expect(() => condition(compare('=', jsonStep('->>', column('note'), text('a')), position(1)))).toThrow(
      'column "note" is text; -> and ->> take json and jsonb only',
    )
  })
})

test('a row of only NULLs is not NULL', () => {
  expect(condition(isNull(column('place')))).toBe('t.place IS NOT DISTINCT FROM NULL')
  expect(condition(isNull(column('place'), 'negated'))).toBe('t.place IS DISTINCT FROM NULL')
  expect(condition(isNull(column('note')))).toBe('t.note IS NULL')
})

describe('an operator that a type lacks is rejected with the column’s name', () => {
  const path = (operator: '->' | '->>') => jsonStep(operator, column('raw'), cast(position(1), 'text'))
  test.each<[string, Expression, string]>([
    [
      'json',
      compare('=', column('raw'), position(1)),
      'column "raw" is json, whose values cannot be compared; use a text inside it, such as raw->>key',
    ],
    [
      'json from json',
      compare('<>', path('->'), position(2)),
      'the path into column "raw" is json, whose values cannot be compared',
    ],
    [
      'array of json',
      isDistinct(column('raws'), position(1)),
      'column "raws" is _raw, whose values cannot be compared; use another column',
    ],
    ['point', inSet(column('spot'), position(1)), 'column "spot" is point, whose values cannot be compared'],
    [
      'text',
      compare('@>', column('note'), position(1)),
      'column "note" is text, and contains, contained and overlaps compare arrays',
    ],
    [
      'number',
      compare('&&', column('total'), position(1)),
      'column "total" is money, and contains, contained and overlaps',
    ],
    [
      'enum',
      compare('<@', column('state'), position(1)),
      'column "state" is state, and contains, contained and overlaps',
    ],
    ['text from json', compare('@>', path('->>'), position(2)), 'the path into column "raw" is text, and contains'],
    [
      'words in a number',
      compare('@@', column('id'), position(1)),
      'column "id" is int8, and fts searches text, JSON and tsvector',
    ],
    [
      'an array in a list',
      inSet(column('tags'), position(1)),
      'column "tags" is _text, and a list holds single values',
    ],
    ['words in an array', compare('@@', column('tags'), position(1)), 'column "tags" is _text, and fts searches'],
  ])('%s', (_, where, message) => {
    expect(() => condition(where)).toThrow(message)
  })
  test.each<[string, Expression]>([
    ['json', column('raw')],
    ['json from json', path('->')],
    ['array of json', column('raws')],
    ['point', column('spot')],
  ])('sort by %s', (_, expression) => {
    expect(() => sql(get({ table: orders, orderBy: [order(expression)] }))).toThrow('whose values have no order')
  })
  test('a text extracted from JSON has all text operators', () => {
    expect(condition(compare('>', path('->>'), position(2)))).toBe('t.raw ->> $1::text > $2::text')
    expect(sql(get({ table: orders, orderBy: [order(path('->>'))] }))).toMatch(/ORDER BY orders.raw ->> \$1::text$/)
  })
})

test('expressions are checked in every clause', () => {
  const hidden = arithmetic('||', column('note'), column('secret'))
  const places: Get[] = [
    get({ table: orders, fields: [field(hidden)] }),
    get({ table: orders, where: compare('=', hidden, text('')) }),
    get({ table: orders, orderBy: [order(hidden)] }),
    { ...get({ table: orders }), groupBy: [hidden] },
    { ...get({ table: orders }), having: compare('=', hidden, text('')) },
    { ...get({ table: orders }), distinct: { kind: 'distinct', on: [hidden], span: hidden.span } },
  ]
  for (const place of places) expect(() => sql(place)).toThrow('has no column "secret"')
})

test('an operator that can fail is not evaluated on rows that a policy hides', () => {
  const rows = { read: compare('<>', column('note'), text('hidden')), create: null, update: null, delete: null }
  const rights: Rights = { key: 'some rows', of: table => ({ ...EVERYTHING.of(table), rows }) }
  const inner = (where: Expression) =>
    printSql(checkRead(get({ table: orders, where }), { catalog, rights, searchLanguage: 'english' }).query).text
  // Without such an operator PostgreSQL can merge the rows into the statement around them (PostgreSQL
  // manual, 39.5).
  expect(inner(compare('=', column('note'), position(1)))).not.toContain('OFFSET 0')
  expect(inner(compare('~', column('note'), position(1)))).not.toContain('OFFSET 0')
  for (const operator of ['regex', '~*'] as const) {
    expect(inner(compare(operator, column('note'), position(1)))).toContain("note <> 'hidden' OFFSET 0")
  }
})

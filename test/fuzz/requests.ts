/**
 * Random requests to the shop's tables (`test/features/shop.ts`): usually valid, made from few words so that
 * shapes repeat.
 */
import fc from 'fast-check'
import { TRICKY_COLUMNS } from './world.ts'

const COLUMNS: Readonly<Record<string, readonly string[]>> = {
  users: ['id', 'name', 'boss_id'],
  customers: [
    'id',
    'name',
    'mail',
    'zip',
    'tags',
    'meta',
    'born',
    'vip',
    'meta->a',
    'meta->>theme',
    'meta->a->1->>b',
    'meta->0',
    'meta->"0"',
  ],
  orders: ['id', 'customer_id', 'approved_by', 'status', 'total', 'placed_at', 'note', 'open'],
  products: ['id', 'name', 'description', 'words'],
  order_items: ['order_id', 'line', 'product_id', 'quantity'],
  labels: ['id', 'name'],
  codes: ['part', 'sub', 'title'],
  journal: ['at', 'what'],
}

/** Columns of one more table, which does not exist in the shop. */
const ALL_COLUMNS: typeof COLUMNS = { ...COLUMNS, tricky: TRICKY_COLUMNS.map(name => `"${name}"`) }

const RELATIONS: Readonly<Record<string, readonly string[]>> = {
  users: ['boss', 'nested:users', 'nested:orders!approved_by', 'o:nested:orders!created_by'],
  customers: ['nested:orders', 'nested:orders.nested:order_items', 'x:nested:orders'],
  orders: ['customers', 'customer', 'users!approved_by', 'by:users!created_by', 'nested:order_items.products', 'users'],
  products: ['nested:labels', 'nested:order_items', 'nested:product_labels.labels'],
  order_items: ['products', 'product', 'orders.customers'],
  labels: ['nested:products'],
  codes: ['nope'],
  journal: ['users'],
}

/** Values of `expand` with columns, and parameters about the rows of a relation. */
const RELATED: Readonly<Record<string, readonly string[]>> = {
  customers: [
    'expand=nested:orders(id,status)&orders.status=paid&orders.limit=2',
    'expand=nested:orders(id,status)&orders.status=draft&orders.limit=1',
    'expand=nested:orders(id,status)&orders.limit=103&orders.offset=1',
    'expand=nested:orders(id,status)&orders.limit=104&orders.offset=2',
    'expand=nested:orders(id,nested:order_items(line))&orders.order_items.quantity=gt.1&orders.sort=-total',
    'expand=nested:orders(id,nested:order_items(line))&orders.sort=-total&orders.order_items.quantity=gt.2',
    'expand=nested:orders(nested:order_items)&orders.or=(status.eq.paid,total.gt.5)',
    'expand=x:nested:orders(*,at:placed_at)&x.not.and=(note.is_null,id.eq.1)&name=Acme',
  ],
  orders: [
    'expand=customer(id,theme:meta->>theme)&customer.meta->>a=1',
    'expand=customer(id,theme:meta->>theme)&customer.meta->>b=2',
    'expand=nested:order_items(line,product)&order_items.product.name=Cup&order_items.sort=line:desc',
    'expand=nested:order_items(line,product)&order_items.line=1',
    'expand=nested:order_items(line),customer&customer.name=Acme&order_items.line=1',
    'expand=nested:order_items(line),customer&order_items.line=2&customer.name=Bolt',
    'expand=customer&customer.limit=1',
    'expand=nested:order_items(product(name))',
  ],
}

const CHILDREN: Readonly<Record<string, readonly string[]>> = {
  users: ['users', 'orders!approved_by', 'orders'],
  customers: ['orders'],
  orders: ['order_items', 'customers'],
  products: ['labels', 'order_items'],
}

export const IDS: readonly string[] = [
  '1',
  '2',
  '9',
  '99',
  'x',
  '-1',
  '9223372036854775807',
  '9223372036854775808',
  '1,1',
  'a%252Cb,c',
  'x,y',
]

const VALUES = [
  '1',
  '2',
  '99',
  'paid',
  'draft',
  'Acme',
  '7.50',
  '2026-01-02',
  'true',
  '{old}',
  '(old,big)',
  '[1,5)',
  '{"theme":"dark"}',
  '"x"',
  '*i*',
  'bicycle',
  'null',
  '',
  "'",
  '\\',
  '9223372036854775808',
]

const OPERATORS = [
  ...['eq', 'ne', 'gt', 'gte', 'lt', 'lte', 'like', 'ilike', 'not_like', 'is_distinct', 'contains', 'contained'],
  ...['overlaps', 'match', 'imatch', 'fts', 'not.eq', 'not.like'],
]

export const pick = <T>(items: readonly T[]): fc.Arbitrary<T> => fc.constantFrom(...items)

/** Usually the first value; one time in `n` the second. */
export const mostly = <T>(n: number, usual: fc.Arbitrary<T>, odd: fc.Arbitrary<T>): fc.Arbitrary<T> =>
  fc.oneof({ weight: n - 1, arbitrary: usual }, { weight: 1, arbitrary: odd })

export const joined = (items: fc.Arbitrary<string>, maxLength: number): fc.Arbitrary<string> =>
  fc.uniqueArray(items, { minLength: 1, maxLength }).map(list => list.join(','))

export function columnOf(table: string): fc.Arbitrary<string> {
  return mostly(
    40,
    pick(ALL_COLUMNS[table] ?? []),
    pick(['nope', 'tenant_id', '"id"', '__proto__', 'id->a', 't', 'r.*']),
  )
}

function condition(table: string): fc.Arbitrary<readonly [column: string, operator: string, value: string]> {
  const list = joined(pick(['1', '2', 'paid', '"x,y"', '']), 3).map(items => `(${items})`)
  return fc.oneof(
    { weight: 6, arbitrary: fc.tuple(columnOf(table), pick(OPERATORS), pick(VALUES)) },
    { weight: 2, arbitrary: fc.tuple(columnOf(table), pick(['in', 'not_in', 'not.in']), list) },
    { weight: 2, arbitrary: fc.tuple(columnOf(table), pick(['is_null', 'is_not_null']), pick(['', 'true', 'false'])) },
  )
}

export function group(table: string): fc.Arbitrary<string> {
  const one = condition(table).map(([column, operator, value]) => `${column}.${operator}.${groupValue(value)}`)
  // The same few conditions repeat, so requests differ in how these are grouped.
  const [first = ''] = ALL_COLUMNS[table] ?? []
  const item = fc.oneof(one, pick([`${first}.is_null`, `${first}.eq.1`]))
  const inner = fc.tuple(pick(['and', 'or', 'not.or']), fc.array(item, { minLength: 1, maxLength: 2 }))
  return fc
    .tuple(pick(['or', 'and', 'not.and']), fc.array(item, { minLength: 1, maxLength: 3 }), fc.option(inner))
    .map(([name, items, nested]) => {
      const all = nested === null ? items : [...items, `${nested[0]}(${nested[1].join(',')})`]
      return `${name}=${encodeURIComponent(`(${all.join(',')})`)}`
    })
}

function groupValue(value: string): string {
  const isList = value.startsWith('(')
  return isList || /^[\w.*-]*$/.test(value) ? value : `"${value.replace(/["\\]/g, '\\$&')}"`
}

export function filter(table: string): fc.Arbitrary<string> {
  return fc.tuple(condition(table), fc.boolean()).map(([[column, operator, value], isKeyStyle]) => {
    const key = encodeURIComponent(column)
    return isKeyStyle
      ? `${key}.${operator}=${encodeURIComponent(value)}`
      : `${key}=${operator}${value === '' ? '' : `.${encodeURIComponent(value)}`}`
  })
}

/** Columns, JSON paths, aliases or everything, as in `select` and `returning`. */
export function selection(column: fc.Arbitrary<string>): fc.Arbitrary<string> {
  const item = fc.oneof(
    { weight: 5, arbitrary: column },
    column.map(name => `a:${name}`),
    fc.constant('*'),
  )
  return joined(item, 3)
}

export function sorting(column: fc.Arbitrary<string>): fc.Arbitrary<string> {
  const item = fc.tuple(pick(['', '', '-']), column, pick(['', '', ':desc', ':asc.nullsfirst']))
  return joined(
    item.map(parts => parts.join('')),
    2,
  )
}

/** The query string as sent. */
export function withQuery(path: string, parameters: readonly string[]): string {
  return parameters.length === 0 ? path : `${path}?${parameters.join('&')}`
}

function listParameters(table: string): fc.Arbitrary<readonly string[]> {
  const column = columnOf(table)
  const named: readonly fc.Arbitrary<string>[] = [
    selection(column).map(text => `select=${encodeURIComponent(text)}`),
    sorting(column).map(text => `sort=${encodeURIComponent(text)}`),
    fc.oneof(
      { weight: 2, arbitrary: joined(pick(RELATIONS[table] ?? ['nope']), 2).map(text => `expand=${text}`) },
      { weight: 1, arbitrary: pick(RELATED[table] ?? ['expand=nope(id)']) },
    ),
    pick(['limit=0', 'limit=1', 'limit=2', 'limit=50', 'limit=51', 'limit=52', 'limit=101', 'limit=150']),
    pick(['offset=0', 'offset=1', 'offset=7', 'offset=-1']),
    pick(['stream=true', 'stream=true', 'stream=false', 'stream=1']),
    mostly(3, column, pick(['id', 'name'])).map(name => `distinct=${encodeURIComponent(name)}`),
    pick([
      'search=bicycle',
      'search=',
      'search=%27',
      'search=bicycle&search_columns=name',
      'search=x&search_columns=description',
    ]),
    pick(['cursor=x', 'cursor=WyJ4IiwiMSJd', 'cursor=WyJ4IixudWxsXQ', 'cursor=']),
  ]
  // Rare enough that most requests are valid.
  const weights = [5, 5, 4, 5, 2, 3, 1, 1, 1]
  const parameter = fc.oneof(...named.map((arbitrary, index) => ({ weight: weights[index] ?? 1, arbitrary })))
  return fc
    .tuple(
      fc.array(fc.oneof({ weight: 5, arbitrary: filter(table) }, group(table)), { maxLength: 2 }),
      fc.uniqueArray(parameter, { maxLength: 3, selector: text => text.slice(0, text.indexOf('=')) }),
    )
    .map(([filters, others]) => [...filters, ...others])
}

/** Path and query string as sent. */
export const request: fc.Arbitrary<string> = pick(Object.keys(COLUMNS)).chain(table => {
  const list = listParameters(table)
  const children = CHILDREN[table] ?? ['orders']
  const one = fc.uniqueArray(
    fc.oneof(
      joined(columnOf(table), 2).map(text => `select=${encodeURIComponent(text)}`),
      pick(RELATIONS[table] ?? ['nope']).map(text => `expand=${text}`),
    ),
    { maxLength: 2, selector: text => text.slice(0, 6) },
  )
  return fc.oneof(
    { weight: 8, arbitrary: list.map(parameters => withQuery(`/api/${table}`, parameters)) },
    {
      weight: 2,
      arbitrary: fc.tuple(pick(IDS), one).map(([id, parameters]) => withQuery(`/api/${table}/${id}`, parameters)),
    },
    {
      weight: 2,
      arbitrary: fc
        .tuple(
          pick(IDS),
          pick(children).chain(child => fc.tuple(fc.constant(child), listOf(child))),
        )
        .map(([id, [child, parameters]]) => withQuery(`/api/${table}/${id}/${child}`, parameters)),
    },
  )
})

function listOf(child: string): fc.Arbitrary<readonly string[]> {
  return listParameters(child.split('!')[0] ?? child)
}

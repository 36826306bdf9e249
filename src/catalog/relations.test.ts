/** docs/reference/reading.md#related-rows: the relations between tables, and their names. */
import { describe, expect, test } from 'vitest'
import type { ForeignKey, Relation } from './model.ts'
import { type KeyedTable, relate } from './relations.ts'

describe('forward and reverse', () => {
  test('every foreign key is one forward and one reverse relation', () => {
    const relations = relate([
      table('customers', ['id']),
      table('orders', ['id'], key('customer_id', 'customers', 'id')),
    ])
    expect(told(relations, 'orders')).toEqual(['one customers (customer): customer_id = customers.id'])
    expect(told(relations, 'customers')).toEqual(['many orders: id = orders.customer_id'])
  })

  test('a unique foreign key still has a reverse relation with many rows', () => {
    const profile = { ...table('profiles', ['id'], key('user_id', 'users', 'id')), unique: [['user_id']] }
    expect(told(relate([table('users', ['id']), profile]), 'users')).toEqual(['many profiles: id = profiles.user_id'])
  })

  test('two foreign keys to one table are two relations of one name, with different constraints', () => {
    const orders = table('orders', ['id'], key('approved_by', 'users', 'id'), key('created_by', 'users', 'id'))
    const relations = relate([table('users', ['id']), orders])
    expect(told(relations, 'orders')).toEqual(['one users: approved_by = users.id', 'one users: created_by = users.id'])
    expect(relations.get('users')?.map(one => one.constraints)).toEqual([['approved_by_fkey'], ['created_by_fkey']])
  })

  test('a table that refers to itself has both relations', () => {
    const employees = table('employees', ['id'], key('manager_id', 'employees', 'id'))
    expect(told(relate([employees]), 'employees')).toEqual([
      'one employees (manager): manager_id = employees.id',
      'many employees: id = employees.manager_id',
    ])
  })

  test('composite keys pair their columns and have no short name', () => {
    const items = table('items', ['tenant_id', 'id'], key('tenant_id,order_id', 'orders', 'tenant_id,id'))
    const relations = relate([table('orders', ['tenant_id', 'id']), items])
    expect(told(relations, 'items')).toEqual(['one orders: tenant_id,order_id = orders.tenant_id,id'])
    expect(told(relations, 'orders')).toEqual(['many items: tenant_id,id = items.tenant_id,order_id'])
  })

  test.each([
    ['customer_id', 'customer'],
    ['customer_id_id', 'customer_id'],
    ['_id', null],
    ['customer', null],
    ['CUSTOMER_ID', null],
    ['customerid', null],
    ['__proto___id', '__proto__'],
  ])('the short name of a key in %s is %s', (column, shortName) => {
    const relations = relate([table('a', ['id']), table('b', ['id'], key(column, 'a', 'id'))])
    expect(relations.get('b')?.[0]?.shortName).toBe(shortName)
  })

  test('two identical constraints are one relation, and either name selects it', () => {
    const twice = table(
      'orders',
      ['id'],
      { ...key('user_id', 'users', 'id'), name: 'first' },
      { ...key('user_id', 'users', 'id'), name: 'second' },
    )
    const relations = relate([table('users', ['id']), twice])
    expect(relations.get('orders')?.map(one => one.constraints)).toEqual([['first', 'second']])
    expect(relations.get('users')?.map(one => one.constraints)).toEqual([['first', 'second']])
  })

  test('a foreign key to a missing table is not a relation', () => {
    expect(told(relate([table('orders', ['id'], key('user_id', 'auth.users', 'id'))]), 'orders')).toEqual([])
  })

  test('the relation has the unqualified name of the table and refers to the resource', () => {
    const back = { ...table('users', ['id']), resource: 'back.users' }
    const relations = relate([back, table('notes', ['id'], key('user_id', 'back.users', 'id'))])
    expect(relations.get('notes')).toMatchObject([{ name: 'users', table: 'back.users' }])
    expect(relations.get('back.users')).toMatchObject([{ name: 'notes', table: 'notes' }])
  })

  test('tables named like Object.prototype members are ordinary tables', () => {
    const relations = relate([
      table('__proto__', ['id']),
      table('constructor', ['id'], key('valueOf', '__proto__', 'id')),
    ])
    expect(told(relations, 'constructor')).toEqual(['one __proto__: valueOf = __proto__.id'])
    expect(told(relations, '__proto__')).toEqual(['many constructor: id = constructor.valueOf'])
  })
})

describe('relations through a junction', () => {
  const posts = table('posts', ['id'])
  const tags = table('tags', ['id'])
  const links = [key('post_id', 'posts', 'id'), key('tag_id', 'tags', 'id')] as const

  test('exist in both directions if its primary key is its two foreign keys', () => {
    const relations = relate([posts, tags, table('post_tags', ['post_id', 'tag_id'], ...links)])
    expect(told(relations, 'posts')).toEqual([
      'many post_tags: id = post_tags.post_id',
      'many tags: id = post_tags.post_id, post_tags.tag_id = tags.id',
    ])
    expect(told(relations, 'tags')).toEqual([
      'many post_tags: id = post_tags.tag_id',
      'many posts: id = post_tags.tag_id, post_tags.post_id = posts.id',
    ])
    expect(relations.get('tags')?.[1]?.constraints).toEqual(['tag_id_fkey', 'post_id_fkey'])
  })

  test('are found in any column order, and if a unique key contains both foreign keys', () => {
    expect(throughOf(relate([posts, tags, table('x', ['tag_id', 'post_id'], ...links)]), 'posts')).toEqual(['tags'])
    const surrogate = { ...table('x', ['id'], ...links), unique: [['note'], ['tag_id', 'post_id']] }
    expect(throughOf(relate([posts, tags, surrogate]), 'posts')).toEqual(['tags'])
  })

  test.each([
    ['the pair is not a key', table('x', ['id'], ...links)],
    ['the key has another column', table('x', ['post_id', 'tag_id', 'at'], ...links)],
    ['one foreign key alone is the key', table('x', ['post_id'], ...links)],
    ['there is no key', table('x', [], ...links)],
  ])('do not exist if %s', (_why, junction) => {
    expect(throughOf(relate([posts, tags, junction]), 'posts')).toEqual([])
  })

  test('do not exist if one foreign key’s columns contain the other’s', () => {
    const shipments = table(
      'shipments',
      ['order_id', 'line'],
      key('order_id,line', 'lines', 'order_id,line'),
      key('order_id', 'orders', 'id'),
    )
    const relations = relate([table('orders', ['id']), table('lines', ['order_id', 'line']), shipments])
    expect(throughOf(relations, 'orders')).toEqual([])
    expect(throughOf(relations, 'lines')).toEqual([])
  })

  test('exist if the two foreign keys share a column, such as the tenant', () => {
    const junction = table(
      'post_tags',
      ['tenant_id', 'post_id', 'tag_id'],
      key('tenant_id,post_id', 'posts', 'tenant_id,id'),
      key('tenant_id,tag_id', 'tags', 'tenant_id,id'),
      key('tenant_id', 'tenants', 'id'),
    )
    const keyed = [
      table('posts', ['tenant_id', 'id']),
      table('tags', ['tenant_id', 'id']),
      table('tenants', ['id']),
      junction,
    ]
    const relations = relate(keyed)
    expect(throughOf(relations, 'posts')).toEqual(['tags'])
    expect(throughOf(relations, 'tenants')).toEqual([])
    expect(told(relations, 'posts')).toContain(
      'many tags: tenant_id,id = post_tags.tenant_id,post_id, post_tags.tenant_id,tag_id = tags.tenant_id,id',
    )
  })

  test('of a table with itself exist in both directions', () => {
    const follows = table(
      'follows',
      ['follower_id', 'followed_id'],
      key('follower_id', 'users', 'id'),
      key('followed_id', 'users', 'id'),
    )
    const ways = relate([table('users', ['id']), follows])
      .get('users')
      ?.filter(one => one.junction !== null)
    expect(ways).toMatchObject([
      {
        name: 'users',
        junction: { from: ['follower_id'], to: ['followed_id'] },
        constraints: ['follower_id_fkey', 'followed_id_fkey'],
      },
      {
        name: 'users',
        junction: { from: ['followed_id'], to: ['follower_id'] },
        constraints: ['followed_id_fkey', 'follower_id_fkey'],
      },
    ])
  })
})

function table(name: string, primaryKey: readonly string[], ...foreignKeys: readonly ForeignKey[]): KeyedTable {
  return { name, resource: name, primaryKey, unique: [], foreignKeys }
}

/** Column names, separated by commas. */
function key(columns: string, to: string, referenced: string): ForeignKey {
  return { name: `${columns}_fkey`, columns: columns.split(','), table: to, referencedColumns: referenced.split(',') }
}

type Relations = ReadonlyMap<string, readonly Relation[]>

function told(relations: Relations, resource: string): string[] | undefined {
  return relations
    .get(resource)
    ?.map(({ name, shortName, cardinality, columns, targetColumns, table: to, junction }) => {
      const short = shortName === null ? '' : ` (${shortName})`
      const target = `${to}.${targetColumns}`
      const via =
        junction === null ? target : `${junction.table}.${junction.from}, ${junction.table}.${junction.to} = ${target}`
      return `${cardinality} ${name}${short}: ${columns} = ${via}`
    })
}

function throughOf(relations: Relations, resource: string): string[] | undefined {
  return relations
    .get(resource)
    ?.filter(one => one.junction !== null)
    .map(one => one.table)
}

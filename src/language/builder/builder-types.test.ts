/**
 * docs/guides/builder.md#checked-by-the-compiler: with a schema, the compiler checks names and values.
 * Statements that must not compile are marked, and `tsc` checks the marks.
 */
import { expect, test } from 'vitest'
import {
  add,
  aliased,
  and,
  as,
  type Builder,
  between,
  builder,
  col,
  compare,
  compute,
  count,
  countAll,
  desc,
  eq,
  excluded,
  exists,
  fn,
  get,
  gt,
  isIn,
  isNull,
  not,
  or,
  param,
  set,
  unchecked,
  value,
} from './builder.ts'

interface Schema {
  users: {
    columns: {
      id: number | bigint
      email: string
      name: string | null
      age: number
      active: boolean
      role: 'admin' | 'owner'
      tags: string[]
      meta: unknown
      created_at: Date | string
    }
  }
  posts: { columns: { id: number; user_id: number; title: string } }
  'sales.orders': { columns: { id: number; total: number } }
}

const db: Builder<Schema> = builder<Schema>()

test('statements that match the schema compile', () => {
  const query = db
    .get('users')
    .fields('id', 'users.email', '*', 'users.*', as('age', 'years'), fn('lower', 'email'), as(countAll(), 'n'))
    .where(and(eq('active', true), gt('age', 18), or(isNull('name'), eq('name', 'x'), eq('role', 'admin'))))
    .having(gt('n', 5))
    .orderBy(desc('created_at'), 'id', 'n', desc('years'))
    .limit(10)
  expect(query.toText()).toContain('order by created_at desc, id, n, years desc')
  db.get('users')
    .where(eq('id', 10n))
    .where(eq('id', param('id')))
    .where(isIn('id', [1, 2n]))
    .where(isIn('role', ['admin']))
  db.get('users')
    .where(eq('tags', ['a', 'b']))
    .where(compare('meta', '@>', { a: [1, { b: null }] }))
  db.get('users')
    .join('posts', eq('users.id', col('posts.user_id')))
    .where(eq('title', 'x'))
    .orderBy('posts.title')
  db.get(aliased('users', 'u'))
    .join(aliased('posts', 'p'), eq('u.id', col('p.user_id')))
    .where(eq('p.title', 'x'))
  db.get('users').nestMany('posts', n =>
    n
      .fields('id')
      .on(eq('user_id', col('users.id')))
      .where(eq('title', 'x'))
      .limit(3),
  )
  db.get('users').where(exists(db.get('posts').where(eq('user_id', unchecked('users.id')))))
  db.get('users')
    .where(between('age', 1, 2))
    .where(eq(fn('lower', 'email'), 'x'))
    .where(not(eq('age', compute('age', '+', 1))))
  db.get('sales.orders').where(eq('orders.total', 1))
  db.add('users')
    .values({ email: 'x', name: null, id: param('id') })
    .conflict(['email'], { name: excluded('name') })
    .returning('id')
  db.set('users')
    .values({ age: compute('age', '+', 1) })
    .where(eq('id', 1))
    .returning('*')
  db.set(aliased('users', 'u')).values({ age: 3 }).innerJoin('posts').where(eq('posts.title', 'x'))
})

test('statements that do not match the schema do not compile', () => {
  // @ts-expect-error table
  db.get('nope')
  // @ts-expect-error column
  db.get('users').fields('nope')
  // @ts-expect-error column
  db.get('users').where(eq('nope', 1))
  // @ts-expect-error value
  db.get('users').where(eq('age', 'x'))
  // @ts-expect-error value
  db.get('users').where(eq('role', 'zzz'))
  // @ts-expect-error inside and
  db.get('users').where(and(eq('age', 1), eq('nope', 1)))
  // @ts-expect-error inside or not
  db.get('users').where(or(eq('age', 1), not(gt('active', 1))))
  // @ts-expect-error fn
  db.get('users').where(eq(fn('lower', 'nope'), 'x'))
  // @ts-expect-error col on the right
  db.get('users').where(eq('age', col('nope')))
  // @ts-expect-error isIn
  db.get('users').where(isIn('age', ['x']))
  // @ts-expect-error order
  db.get('users').orderBy(desc('nope'))
  // @ts-expect-error order
  db.get('users').orderBy('nope')
  // @ts-expect-error alias not in where
  db.get('users').fields(as('age', 'years')).where(eq('years', 1))
  // @ts-expect-error joined table
  db.get('users').join('nope')
  // @ts-expect-error not joined
  db.get('users').where(eq('posts.title', 'x'))
  // @ts-expect-error joined on
  db.get('users').join('posts', eq('users.id', col('posts.nope')))
  // @ts-expect-error nest
  db.get('users').nest('posts', n => n.fields('nope'))
  // @ts-expect-error alias replaces
  db.get(aliased('users', 'u')).where(eq('users.id', 1))
  // @ts-expect-error values
  db.add('users').values({ nope: 1 })
  // @ts-expect-error values
  db.add('users').values({ age: 'x' })
  // @ts-expect-error conflict
  db.add('users').conflict(['nope'], 'nothing')
  // @ts-expect-error set
  db.set('users').values({ age: null })
  // @ts-expect-error set
  db.set('users').values({ age: compute('nope', '+', 1) })
  // @ts-expect-error returning
  db.del('users').where(eq('id', 1)).returning('nope')
  // @ts-expect-error null
  expect(() => db.get('users').where(eq('age', null))).toThrow('isNull')
})

test('every name compiles without a schema', () => {
  expect<unknown>(db.get).toBe(get)
  get('x')
    .fields('a', as('b', 'c'))
    .where(and(eq('q', 1), isIn('z', ['x'])))
    .orderBy('c', desc('d'))
    .join('y', eq('a.b', col('c.d')))
    .nest('z', n => n.fields('k').where(eq('p', 1)))
  add('x').values({ a: 1, b: 'c' }).conflict(['a'], 'nothing').returning('id')
  const name: string = 'x'
  get(name).fields(name).where(eq(name, name)).orderBy(desc(name))
  set('x')
    .values({ a: value('x') })
    .where(eq('a', 1))
  count('x').where(gt('a', new Date()))
})

/**
 * Visiting reports every table and column with the meaning of its name; rewriting can replace any part of a
 * tree.
 */
import { describe, expect, test } from 'vitest'
import { printSql } from '../sql/print.ts'
import type { Add, CommonTable, Expression, Get, Statement } from './ast.ts'
import { NOWHERE } from './ast.ts'
import {
  and,
  call,
  column,
  compare,
  exists,
  field,
  get,
  inQuery,
  integer,
  nest,
  order,
  position,
  tableName,
  text,
} from './build.ts'
import { LanguageError } from './error.ts'
import { resolveColumn } from './scope.ts'
import { rewrite, type Visitor, visit } from './walk.ts'

const from = (name: string) => ({ schema: null, name })
const name = (value: string) => ({ kind: 'name', text: value, span: NOWHERE }) as const

/** Everything the visitor reports, in order. */
function seen(statement: Statement): readonly string[] {
  const lines: string[] = []
  const visitor: Visitor = {
    table: (table, use) => lines.push(`${use} ${table.name}`),
    column: ({ path }, clause, scope) => {
      const { relation, column: own, steps } = resolveColumn(path, scope)
      lines.push(
        `${clause}: ${relation === null ? '' : `${relation.name}.`}${own}${steps.map(step => `->${step}`).join('')}`,
      )
    },
    star: (star, clause) =>
      lines.push(`${clause}: ${star?.of === undefined || star.of === null ? '' : `${star.of}.`}*`),
    name: (column, use, table) => lines.push(`${use} ${table.name}.${column}`),
    parameter: parameter => lines.push(parameter.kind === 'position' ? `$${parameter.n}` : `:${parameter.name}`),
    call: call => lines.push(`call ${call.kind === 'function' ? call.name : call.function.name}`),
  }
  visit(statement, visitor)
  return lines
}

function commonTable(of: string, statement: Statement): CommonTable {
  return { kind: 'cte', name: name(of), columns: [], statement, span: NOWHERE }
}

describe('visit', () => {
  test('visit reports every part of a read', () => {
    const query: Get = {
      ...get({
        table: from('orders'),
        alias: 'o',
        fields: [
          field(column('o', 'id')),
          field(
            call('sum', [column('total')], {
              filter: column('paid'),
              over: {
                kind: 'window',
                base: null,
                partitionBy: [column('p')],
                orderBy: [order(column('q'))],
                frame: null,
                span: NOWHERE,
              },
            }),
          ),
        ],
        nests: [
          nest({
            many: true,
            table: from('items'),
            on: compare('=', column('items', 'order_id'), column('o', 'id')),
            nests: [
              nest({
                many: false,
                table: from('products'),
                alias: 'p',
                on: compare('=', column('p', 'id'), column('items', 'product_id')),
                fields: [field(column('o', 'meta', 'a', 'b'))],
              }),
            ],
            fields: [field(column('items', 'n'))],
            where: compare('>', column('n'), position(1)),
            orderBy: [order(column('items', 'at'))],
            limit: position(2),
          }),
        ],
        where: exists(
          get({ table: from('users'), where: compare('=', column('users', 'id'), column('o', 'user_id')) }),
        ),
        orderBy: [order(column('created_at'))],
        limit: position(3),
      }),
      joins: [
        {
          kind: 'join',
          type: 'inner',
          lateral: false,
          source: {
            kind: 'table source',
            table: tableName(from('shops')),
            alias: null,
            condition: column('shops', 'open'),
            span: NOWHERE,
          },
          on: compare('=', column('shops', 'id'), column('o', 'shop_id')),
          span: NOWHERE,
        },
      ],
      groupBy: [column('g')],
      having: column('h'),
      distinct: { kind: 'distinct', on: [column('d')], span: NOWHERE },
      windows: [
        {
          kind: 'named window',
          name: name('w'),
          body: {
            kind: 'window',
            base: null,
            partitionBy: [column('w')],
            orderBy: [],
            frame: {
              kind: 'frame',
              unit: 'rows',
              start: { kind: 'preceding', offset: position(4), span: NOWHERE },
              end: null,
              span: NOWHERE,
            },
            span: NOWHERE,
          },
          span: NOWHERE,
        },
      ],
      compounds: [
        { kind: 'compound', operator: 'union', all: true, query: get({ table: from('old_orders') }), span: NOWHERE },
      ],
    }
    expect(seen(query)).toEqual([
      'distinct: d',
      'fields: o.id',
      'fields: total',
      'fields: paid',
      'fields: p',
      'fields: q',
      'call sum',
      'read items',
      'on: items.order_id',
      'on: o.id',
      'fields: items.n',
      'read products',
      'on: p.id',
      'on: items.product_id',
      'fields: o.meta->a->b',
      'where: n',
      '$1',
      'order by: items.at',
      '$2',
      'read orders',
      'read shops',
      'where: shops.open',
      'on: shops.id',
      'on: o.shop_id',
      'fields: *',
      'read users',
      'where: users.id',
      'where: o.user_id',
      'group by: g',
      'having: h',
      'window: w',
      '$4',
      'fields: *',
      'read old_orders',
      'order by: created_at',
      '$3',
    ])
  })

  test('visit reports the tables and columns of writes', () => {
    const add: Add = {
      kind: 'add',
      with: null,
      table: tableName(from('users')),
      columns: [name('id'), name('email')],
      rows: {
        kind: 'from',
        query: get({ table: from('imports'), fields: [field(column('imports', 'email'))] }),
        span: NOWHERE,
      },
      conflict: {
        kind: 'conflict',
        target: [name('email')],
        update: {
          assignments: [{ kind: 'assignment', column: name('seen'), value: column('excluded', 'seen'), span: NOWHERE }],
          where: column('users', 'active'),
        },
        span: NOWHERE,
      },
      returning: null,
      span: NOWHERE,
    }
    expect(seen(add)).toEqual([
      'add users',
      'add users.id',
      'add users.email',
      'returning: *',
      'fields: imports.email',
      'read imports',
      'conflict users.email',
      'set users.seen',
      'assignment: excluded.seen',
      'where: users.active',
    ])
    expect(
      seen({
        kind: 'merge',
        with: null,
        table: tableName(from('users')),
        alias: 'u',
        using: { kind: 'query source', query: get({ table: from('imports') }), alias: 'i', span: NOWHERE },
        on: compare('=', column('u', 'id'), column('i', 'id')),
        whens: [
          {
            kind: 'when',
            match: 'matched',
            and: column('i', 'ok'),
            action: {
              kind: 'merge update',
              assignments: [{ kind: 'assignment', column: name('seen'), value: position(1), span: NOWHERE }],
              span: NOWHERE,
            },
            span: NOWHERE,
          },
          {
            kind: 'when',
            match: 'not matched',
            and: null,
            action: { kind: 'merge insert', columns: [name('id')], values: [column('i', 'id')], span: NOWHERE },
            span: NOWHERE,
          },
        ],
        span: NOWHERE,
      }),
    ).toEqual([
      'merge users',
      'fields: *',
      'read imports',
      'on: u.id',
      'on: i.id',
      'when: i.ok',
      'set users.seen',
      '$1',
      'add users.id',
      'values: i.id',
    ])
  })

  test('visit does not report a common table as a table after its definition', () => {
    const outer: Get = {
      ...get({ table: from('users'), where: inQuery(column('id'), get({ table: from('b') })) }),
      with: {
        kind: 'with',
        recursive: false,
        tables: [commonTable('users', get({ table: from('users') })), commonTable('b', get({ table: from('users') }))],
        span: NOWHERE,
      },
    }
    const tables = (query: Get): readonly string[] => seen(query).filter(line => line.startsWith('read'))
    // The only table is the one inside the common table of the same name; all other uses refer to the common
    // table.
    expect(tables(outer)).toEqual(['read users'])
    expect(tables({ ...outer, with: outer.with && { ...outer.with, recursive: true } })).toEqual([])
    expect(tables({ ...get({ table: { schema: 'public', name: 'users' } }), with: outer.with })).toEqual([
      'read users',
      'read users',
    ])
  })

  test('a lateral join sees the sources to its left; other derived tables do not', () => {
    const inner = get({ table: from('posts'), where: compare('=', column('posts', 'user_id'), column('users', 'id')) })
    const joined = (lateral: boolean): Get => ({
      ...get({ table: from('users') }),
      joins: [
        {
          kind: 'join',
          type: 'cross',
          lateral,
          source: { kind: 'query source', query: inner, alias: 'p', span: NOWHERE },
          on: null,
          span: NOWHERE,
        },
      ],
    })
    expect(seen(joined(true))).toContain('where: users.id')
    expect(seen(joined(false))).toContain('where: users->id')
  })

  test('a tree that is too deep is rejected', () => {
    let expression: Expression = column('a')
    for (let level = 0; level < 10_000; level += 1) expression = { kind: 'not', operand: expression, span: NOWHERE }
    expect(() => visit(get({ table: from('t'), where: expression }), {})).toThrow(LanguageError)
  })
})

describe('rewrite', () => {
  const query = get({
    table: from('orders'),
    fields: [field(call('lower', [column('name')]))],
    where: and(
      compare('=', column('a'), integer('1')),
      inQuery(
        column('b'),
        get({ table: from('users'), fields: [field(column('id'))], where: compare('=', column('c'), text('x')) }),
      ),
    ),
    nests: [nest({ many: true, table: from('items'), where: compare('=', column('d'), integer('2')) })],
  })

  test('rewrite returns the same object if nothing changes', () => {
    expect(
      rewrite(query, { expression: expression => expression, get: one => one, nest: one => one, join: one => one }),
    ).toBe(query)
  })

  test('rewrite replaces expressions in every clause', () => {
    const upper = rewrite(query, {
      expression: expression =>
        expression.kind === 'column'
          ? { ...expression, path: expression.path.map(part => part.toUpperCase()) }
          : expression,
    })
    expect(printSql(upper).text).toBe(
      `SELECT LOWER("NAME"), (SELECT COALESCE(json_agg(row_to_json(n.*)), '[]') FROM (SELECT * FROM items ` +
        `WHERE items.order_id = orders.id AND "D" = 2) AS n) AS items FROM orders WHERE "A" = 1 AND "B" IN ` +
        `(SELECT "ID" FROM users WHERE "C" = 'x')`,
    )
    expect(upper.source).toBe(query.source)
  })

  test('rewrite narrows queries and nests, as a policy does', () => {
    const narrowed = rewrite(query, {
      get: (one, scope) => ({
        ...one,
        where: and(
          ...(one.where === null ? [] : [one.where]),
          compare('=', column(scope.relations[0]?.name ?? '', 'tenant'), position(1)),
        ),
      }),
      nest: one => ({ ...one, limit: integer('10') }),
    })
    expect(printSql(narrowed).text).toBe(
      "SELECT LOWER(name), (SELECT COALESCE(json_agg(row_to_json(n.*)), '[]') FROM (SELECT * FROM items " +
        'WHERE items.order_id = orders.id AND d = 2 LIMIT 10) AS n) AS items FROM orders WHERE a = 1 AND b IN ' +
        "(SELECT id FROM users WHERE c = 'x' AND users.tenant = $1) AND orders.tenant = $1",
    )
  })
})

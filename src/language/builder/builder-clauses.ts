/** Converts the arguments of builder methods to nodes of the tree. */

import type {
  Assignment,
  Count,
  Expression,
  Field,
  Get,
  Join,
  JoinType,
  Name,
  Order,
  Source,
  TableName,
  With,
} from '../tree/ast.ts'
import { NOWHERE } from '../tree/ast.ts'
import * as build from '../tree/build.ts'
import { LanguageError } from '../tree/error.ts'
import { type Built, columnPath, leftOf, Ordering, Output, rightOf, Term } from './builder-term.ts'
import { Aliased } from './builder-types.ts'
import { literalOf } from './builder-value.ts'

const span = NOWHERE

/** `users`, `sales.orders`. */
export function tableNameNode(name: string): TableName {
  const path = columnPath(name)
  if (path.length > 2)
    throw new LanguageError(`the table name ${JSON.stringify(name)} has more than a schema and a name`)
  return build.tableName({ schema: path.length > 1 ? path[0] : null, name: path.at(-1) as string })
}

/** The table that a statement is about. */
export interface BuilderTarget {
  readonly table: TableName
  readonly alias: string | null
}

/** The target of a write. */
export function writeTarget(source: unknown): BuilderTarget {
  return source instanceof Aliased
    ? { table: tableNameNode(source.of as string), alias: source.alias }
    : { table: tableNameNode(source as string), alias: null }
}

/** The source for a table name, an aliased table or an aliased query. */
export function sourceNode(source: unknown): Source {
  return source instanceof Aliased && typeof source.of !== 'string'
    ? { kind: 'query source', query: (source.of as Built<Get>).toTree(), alias: source.alias, span }
    : { kind: 'table source', ...writeTarget(source), condition: null, span }
}

/** A join of a source. */
export function joinOf(type: JoinType, source: unknown, on: Term | undefined): Join {
  return { kind: 'join', type, lateral: false, source: sourceNode(source), on: on?.expression ?? null, span }
}

/** Adds a common table to a `with` clause. */
export function withTable(clause: With | null, name: string, built: Built, recursive: boolean): With {
  const table = { kind: 'cte', name: nameNode(name), columns: [], statement: built.toTree(), span } as const
  return {
    kind: 'with',
    recursive: recursive || clause?.recursive === true,
    tables: [...(clause?.tables ?? []), table],
    span,
  }
}

/** A name without source text. */
export function nameNode(text: string): Name {
  return { kind: 'name', text, span }
}

/** The members of `fields` and `returning`. */
export function fieldNodes(items: readonly unknown[]): readonly Field[] {
  return items.map(item => {
    if (item instanceof Output) return build.field(item.expression, item.alias)
    if (item === '*') return build.star()
    if (typeof item === 'string' && item.endsWith('.*')) return build.star(item.slice(0, -2))
    return build.field(leftOf(item as string | Term))
  })
}

/** The members of `orderBy`. */
export function ordersOf(items: readonly unknown[]): readonly Order[] {
  return items.map(item => (item instanceof Ordering ? item.order : build.order(leftOf(item as string | Term))))
}

/**
 * The operand of `limit` and `offset`.
 *
 * @throws LanguageError if it is not a whole number or a parameter.
 */
export function countOf(count: unknown): Count {
  const node = rightOf(count)
  if (node.kind === 'position' || node.kind === 'named' || (node.kind === 'literal' && /^[0-9]+$/.test(node.value)))
    return node
  throw new LanguageError('limit and offset take a whole number that is not negative, or a parameter')
}

/** Combines the conditions of several `where` calls with `and`. */
export function alsoWhere(before: Expression | null, condition: Term): Expression {
  return before === null ? condition.expression : build.and(before, condition.expression)
}

/** The assignments of `set` and of a conflict. */
export function assignmentsOf(values: object): readonly Assignment[] {
  return Object.entries(values).map(([name, item]) => ({
    kind: 'assignment',
    column: nameNode(name),
    value: item instanceof Term ? item.expression : literalOf(item),
    span,
  }))
}

/** The columns that a read filters and sorts by, which advice on an expensive read can name. */
import type { Expression, Get, Order } from '../language/tree/ast.ts'
import { type NameScope, resolveColumn } from '../language/tree/scope.ts'
import { rewrite } from '../language/tree/walk.ts'

/** A column of a table that the caller's own query compares or sorts by first. */
export interface Mention {
  readonly schema: string
  readonly table: string
  readonly column: string
  readonly use: 'filter' | 'sort'
}

/** Limit on the columns collected; more would not be useful in advice. */
const MENTIONS_MAX = 16

/**
 * The columns that the caller names. An execution plan also contains the conditions of row-level security,
 * and the tree those of access policies, which must not be revealed. Columns inside a function or path are
 * skipped, because an index on the column would not help.
 */
export function mentionsOf(query: Get): readonly Mention[] {
  const mentions = new Map<string, Mention>()
  const mention = (expression: Expression, use: Mention['use'], scope: NameScope): void => {
    if (expression.kind !== 'column' || expression.implied === true || mentions.size >= MENTIONS_MAX) return
    const { relation, column, steps } = resolveColumn(expression.path, scope)
    const table = relation?.table ?? null
    if (relation === null || relation.query !== null || table === null || table.schema === null) return
    if (steps.length > 0) return
    const found: Mention = { schema: table.schema, table: table.name, column, use }
    mentions.set(JSON.stringify([found.schema, found.table, column, use]), found)
  }
  const filter = (condition: Expression | null, scope: NameScope): void => {
    for (const expression of comparedIn(condition)) mention(expression, 'filter', scope)
  }
  const sort = ([first]: readonly Order[], scope: NameScope): void => {
    if (first !== undefined) mention(first.expression, 'sort', scope)
  }
  // The tree is returned unchanged; the rewriter only visits it.
  rewrite(query, {
    get(get, scope) {
      filter(get.where, scope)
      sort(get.orderBy, scope)
      return get
    },
    nest(nest, scope) {
      filter(nest.on, scope)
      filter(nest.where, scope)
      return nest
    },
    join(join, scope) {
      filter(join.on, scope)
      return join
    },
  })
  return [...mentions.values()]
}

/** The expressions that a condition compares. The access check limits the depth. */
function comparedIn(condition: Expression | null): readonly Expression[] {
  switch (condition?.kind) {
    case 'and':
    case 'or':
      return condition.operands.flatMap(comparedIn)
    case 'not':
      return comparedIn(condition.operand)
    case 'comparison':
    case 'distinct from':
      return [condition.left, condition.right]
    case 'pattern':
    case 'is':
    case 'between':
    case 'in':
      return [condition.operand]
    default:
      return []
  }
}

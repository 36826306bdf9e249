/** Which columns a read filters and sorts by: what the advice on a read that is too expensive may name. */
import type { Expression, Get, Order } from '../language/tree/ast.ts'
import { resolveColumn, type Scope } from '../language/tree/scope.ts'
import { rewrite } from '../language/tree/walk.ts'

/** A column of a table that the caller's own query compares, or sorts by first. */
export interface Mention {
  readonly schema: string
  readonly table: string
  readonly column: string
  readonly use: 'filter' | 'sort'
}

/** More than anybody follows up. */
const MENTIONS_MAX = 16

/**
 * Only what the caller asks for: a plan also shows the conditions of row-level security, the tree those of a policy, and nobody is to learn of those. A column inside a
 * function or a path is left out, for an index on the column would not help it.
 */
export function mentionsOf(query: Get): readonly Mention[] {
  const mentions = new Map<string, Mention>()
  const mention = (expression: Expression, use: Mention['use'], scope: Scope): void => {
    if (expression.kind !== 'column' || expression.implied === true || mentions.size >= MENTIONS_MAX) return
    const { relation, column, steps } = resolveColumn(expression.path, scope)
    const table = relation?.table ?? null
    if (relation === null || relation.query !== null || table === null || table.schema === null) return
    if (steps.length > 0) return
    const found: Mention = { schema: table.schema, table: table.name, column, use }
    mentions.set(JSON.stringify([found.schema, found.table, column, use]), found)
  }
  const filter = (condition: Expression | null, scope: Scope): void => {
    for (const expression of comparedIn(condition)) mention(expression, 'filter', scope)
  }
  const sort = ([first]: readonly Order[], scope: Scope): void => {
    if (first !== undefined) mention(first.expression, 'sort', scope)
  }
  // The same tree comes back: nothing is replaced.
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

/** What a condition compares with something; depth is bounded by the check of the tree. */
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

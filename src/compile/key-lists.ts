/** Lists of keys that a read looks up: `id = ANY ($1)`, where `id` alone is unique. */
import { type ParameterKey, parameterKeyOf } from '../access/parameters.ts'
import { type Catalog, resourceName } from '../catalog/model.ts'
import type { Expression, Get, In } from '../language/tree/ast.ts'
import { type NameScope, resolveColumn } from '../language/tree/scope.ts'
import { rewrite } from '../language/tree/walk.ts'

/**
 * The parameters that are lists of keys: every row of the read has one of them. The number of rows is limited
 * by that of the keys, whichever keys they are, so one execution plan is right for all of them. A read of
 * joined tables is not included, because the best order of its joins can depend on other values.
 */
export function keyListsOf(query: Get, catalog: Catalog): ReadonlySet<ParameterKey> {
  const found = new Set<ParameterKey>()
  // The tree is returned unchanged; the rewriter only visits it.
  rewrite(query, {
    get(get, scope) {
      if (get.joins.length > 0) return get
      for (const condition of requiredBy(get.where)) {
        if (condition.kind !== 'in' || condition.negated || !isUnique(condition.operand, scope, catalog)) continue
        const key = listOf(condition)
        if (key !== null) found.add(key)
      }
      return get
    },
  })
  return found
}

/** The conditions that each row must satisfy. */
function requiredBy(condition: Expression | null): readonly Expression[] {
  if (condition === null) return []
  return condition.kind === 'and' ? condition.operands.flatMap(requiredBy) : [condition]
}

function isUnique(expression: Expression, scope: NameScope, catalog: Catalog): boolean {
  if (expression.kind !== 'column') return false
  const { relation, column, steps } = resolveColumn(expression.path, scope)
  const name = relation?.table ?? null
  if (relation?.query !== null || name === null || name.schema === null || steps.length > 0) return false
  const table = catalog.tables.get(resourceName(name, catalog.schemas))
  if (table === undefined || table.schema !== name.schema || table.name !== name.name) return false
  // The elements of an array of arrays are not the keys.
  const type = table.columnByName.get(column)?.type
  if (type === undefined || type.kind === 'array' || type.of?.kind === 'array') return false
  return [table.primaryKey, ...table.unique].some(key => key.length === 1 && key[0] === column)
}

/** The parameter that is the list; null if its values are written in the query. */
function listOf({ set }: In): ParameterKey | null {
  const value = set.kind === 'cast' ? set.operand : set
  return value.kind === 'position' || value.kind === 'named' ? parameterKeyOf(value) : null
}

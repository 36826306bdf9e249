/** Lists of keys that a read looks up: `id = ANY ($1)`, where `id` is unique, alone or with equal columns. */
import { type ParameterKey, parameterKeyOf } from '../access/parameters.ts'
import { type Catalog, resourceName, type Table } from '../catalog/model.ts'
import type { Expression, Get, In, Join } from '../language/tree/ast.ts'
import { findInScope, type NamedSource, type NameScope, resolveColumn, sourceName } from '../language/tree/scope.ts'
import { rewrite } from '../language/tree/walk.ts'

/**
 * The parameters that are lists of keys: every row of the read has one of them. The number of rows is limited
 * by that of the keys, whichever keys they are, so one execution plan is right for all of them. Of a key of
 * several columns, the others must be equal to one value. A read of joined tables is included if each join
 * finds at most one row, by a key of the joined table; other joins may best begin with another table,
 * depending on other values.
 */
export function keyListsOf(query: Get, catalog: Catalog): ReadonlySet<ParameterKey> {
  const found = new Set<ParameterKey>()
  // The tree is returned unchanged; the rewriter only visits it.
  rewrite(query, {
    get(get, scope) {
      if (!get.joins.every(join => findsOneRow(join, scope, catalog))) return get
      const conditions = requiredBy(get.where)
      for (const condition of conditions) {
        if (condition.kind !== 'in' || condition.negated) continue
        const key = listOf(condition)
        if (key === null) continue
        const column = columnOf(condition.operand, scope, catalog)
        if (column === null) continue
        const equal = equalTo(conditions, isValue, scope, catalog)
        const columns = [column, ...equal.filter(({ relation }) => relation === column.relation)]
        if (keysAmong(column.table, columns).some(key => key.includes(column.name))) found.add(key)
      }
      return get
    },
  })
  return found
}

/** A column of a relation in scope. */
interface ScopedColumn {
  readonly relation: NamedSource
  readonly table: Table
  readonly name: string
}

/** The conditions that each row must satisfy. */
function requiredBy(condition: Expression | null): readonly Expression[] {
  if (condition === null) return []
  return condition.kind === 'and' ? condition.operands.flatMap(requiredBy) : [condition]
}

/** True if every row to the left of the join has at most one row of the joined table. */
function findsOneRow({ type, lateral, source, on }: Join, scope: NameScope, catalog: Catalog): boolean {
  if (lateral || source.kind !== 'table source' || (type !== 'inner' && type !== 'left')) return false
  const joined = findInScope(sourceName(source), scope)
  const isElsewhere = (other: Expression) => {
    if (isValue(other)) return true
    const column = columnOf(other, scope, catalog)
    return column !== null && column.relation !== joined
  }
  const columns = equalTo(requiredBy(on), isElsewhere, scope, catalog).filter(({ relation }) => relation === joined)
  const [first] = columns
  return first !== undefined && keysAmong(first.table, columns).length > 0
}

/** The columns that the conditions require to be equal to something else. */
function equalTo(
  conditions: readonly Expression[],
  isOther: (expression: Expression) => boolean,
  scope: NameScope,
  catalog: Catalog,
): readonly ScopedColumn[] {
  return conditions.flatMap(condition => {
    if (condition.kind !== 'comparison' || condition.operator !== '=') return []
    const { left, right } = condition
    return [
      isOther(right) ? columnOf(left, scope, catalog) : null,
      isOther(left) ? columnOf(right, scope, catalog) : null,
    ].filter(column => column !== null)
  })
}

/** The keys of a table all of whose columns are among the names. */
function keysAmong(table: Table, columns: readonly ScopedColumn[]): readonly (readonly string[])[] {
  const names = new Set(columns.map(({ name }) => name))
  return [table.primaryKey, ...table.unique].filter(key => key.length > 0 && key.every(name => names.has(name)))
}

/** A value that is the same for all rows. */
function isValue(expression: Expression): boolean {
  if (expression.kind === 'cast') return isValue(expression.operand)
  return expression.kind === 'literal' || expression.kind === 'position' || expression.kind === 'named'
}

/** The column of a table that an expression is; null for anything else, and for arrays. */
function columnOf(expression: Expression, scope: NameScope, catalog: Catalog): ScopedColumn | null {
  if (expression.kind !== 'column') return null
  const { relation, column, steps } = resolveColumn(expression.path, scope)
  const name = relation?.table ?? null
  if (relation === null || relation.query !== null || name === null || name.schema === null || steps.length > 0)
    return null
  const table = catalog.tables.get(resourceName(name, catalog.schemas))
  if (table === undefined || table.schema !== name.schema || table.name !== name.name) return null
  // The elements of an array of arrays are not the keys.
  const type = table.columnByName.get(column)?.type
  if (type === undefined || type.kind === 'array' || type.of?.kind === 'array') return null
  return { relation, table, name: column }
}

/** The parameter that is the list; null if its values are written in the query. */
function listOf({ set }: In): ParameterKey | null {
  const value = set.kind === 'cast' ? set.operand : set
  return value.kind === 'position' || value.kind === 'named' ? parameterKeyOf(value) : null
}

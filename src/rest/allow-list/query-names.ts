/**
 * Checks whether the schema has the names in a query text of the allow-list. The text has placeholders for
 * values, so anything that depends on values is checked when a query is executed.
 */
import { callableName } from '../../access/functions.ts'
import { unknownTableColumn } from '../../access/refusals.ts'
import { tableOf } from '../../access/resources.ts'
import { EVERYTHING } from '../../access/rights.ts'
import type { Catalog, Table } from '../../catalog/model.ts'
import type { ColumnReference, Statement, TableName } from '../../language/tree/ast.ts'
import { LanguageError } from '../../language/tree/error.ts'
import { type NamedSource, type NameScope, resolveColumn } from '../../language/tree/scope.ts'
import { visit } from '../../language/tree/walk.ts'
import { shorten } from '../../text/shorten.ts'

/**
 * Checks the names in a query.
 * @throws {GatewayError} for a name that the schema does not have.
 * @throws {LanguageError} for a column that no table of the query has.
 */
export function assertNamesInText(statement: Statement, catalog: Catalog): void {
  const tableNamed = (name: TableName) => tableOf(name, catalog, EVERYTHING)
  visit(statement, {
    table: name => void tableNamed(name),
    name(name, _, table) {
      const of = tableNamed(table)
      if (!of.columnByName.has(name)) throw unknownTableColumn(name, of, EVERYTHING)
    },
    column: (column, _, scope) => assertColumn(column, scope, tableNamed),
    call(call) {
      // The list of functions is checked separately.
      if (call.kind === 'function') callableName(call, catalog, () => true)
    },
  })
}

function assertColumn({ path }: ColumnReference, scope: NameScope, tableNamed: (name: TableName) => Table): void {
  const { relation, column } = resolveColumn(path, scope)
  if (relation !== null) {
    const table = tableBehind(relation, tableNamed)
    if (table !== null && !table.columnByName.has(column)) throw unknownTableColumn(column, table, EVERYTHING)
    return
  }
  const isAlias = scope.fields.some(field => field.kind === 'field' && field.alias === column)
  const relations = relationsAround(scope)
  // The name of a relation can be used as its whole row.
  if (isAlias || relations.length === 0 || relations.some(({ name }) => name === column)) return
  const tables = relations.map(each => tableBehind(each, tableNamed))
  // Only the access check knows the columns of subqueries and functions.
  const known = tables.filter(table => table !== null)
  if (known.length < tables.length || known.some(table => table.columnByName.has(column))) return
  const [first, second] = known
  if (first !== undefined && second === undefined) throw unknownTableColumn(column, first, EVERYTHING)
  throw new LanguageError(`no table of the query has a column "${shorten(column)}"`)
}

function relationsAround(scope: NameScope): readonly NamedSource[] {
  const found: NamedSource[] = []
  for (let at: NameScope | null = scope; at !== null; at = at.parent) found.push(...at.relations)
  return found
}

function tableBehind({ table, query }: NamedSource, tableNamed: (name: TableName) => Table): Table | null {
  return table === null || query !== null ? null : tableNamed(table)
}

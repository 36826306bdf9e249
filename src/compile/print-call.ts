/** Prints calls of functions, with a limit on the rows that they return. */
import type { CheckedQuery } from '../access/check.ts'
import type { Sql } from '../language/sql/printer.ts'
import { quoteLiteral } from '../language/sql/quote.ts'
import type { Get, Parameter } from '../language/tree/ast.ts'
import { type PrintLimits, printed, statement } from './print.ts'
import { TOO_MANY_ROWS, withRowsMax } from './print-write.ts'
import type { CallStatement } from './statement.ts'
import { tableDependenciesOf } from './table-dependencies.ts'

/**
 * Prints a call. With more than `rowsMax` rows, the statement fails and the transaction is rolled back.
 */
export function printCall(
  checked: CheckedQuery,
  print: (query: Get, bounds: PrintLimits) => Sql,
  rowsMax: Parameter | null,
): CallStatement {
  const bounding = { ...checked, parameters: withRowsMax(checked.parameters, rowsMax) }
  const text = (bounds: PrintLimits) => {
    const called = print(checked.query, bounds)
    return rowsMax === null ? called : bounded(called, rowsMax)
  }
  return statement<CallStatement>({
    kind: 'call',
    ...printed(bounding, text),
    dependencies: tableDependenciesOf(checked.query),
  })
}

/** PostgreSQL executes a common table once, even if it is read twice (PostgreSQL manual, 7.8.3). */
function bounded({ text, parameters }: Sql, rowsMax: Parameter): Sql {
  const max = `$${parameters.length + 1}::int8`
  const fails = `(${quoteLiteral(TOO_MANY_ROWS)} || COUNT(*))::int4 = 0`
  const condition = `(SELECT CASE WHEN COUNT(*) > ${max} THEN ${fails} ELSE true END FROM called)`
  return {
    text: `WITH called AS MATERIALIZED (${text}) SELECT * FROM called WHERE ${condition}`,
    parameters: [...parameters, rowsMax.kind === 'position' ? rowsMax : { kind: 'name', name: rowsMax.name }],
  }
}

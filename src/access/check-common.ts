/** Common tables (`with`): statements whose results the statements after them read by name. */
import { GatewayError } from '../errors.ts'
import type { CommonTable, Get, Statement, With } from '../language/tree/ast.ts'
import type { Answering, Checking, Write } from './checking.ts'
import { type AccessScope, type Rowset, type RowsetColumn, rowset } from './scope.ts'

/** The checked clause, and the scope of the statement that contains it. */
export function commonTablesIn(
  checking: Checking,
  clause: With | null,
  outside: AccessScope,
): { readonly clause: With | null; readonly outer: AccessScope } {
  if (clause === null) return { clause, outer: outside }
  // One map that grows: each statement sees the common tables before it, and no scope outlives its
  // statement.
  const commonTables = new Map(outside.commonTables)
  const outer = { ...outside, commonTables }
  const tables = clause.tables.map(table => {
    const { statement, outputs } = statementIn(checking, table.statement, outer, clause.recursive ? table : null)
    commonTables.set(table.name.text, commonTable(table, outputs))
    return { ...table, statement }
  })
  return { clause: { ...clause, tables }, outer }
}

function statementIn(
  checking: Checking,
  statement: Statement,
  outer: AccessScope,
  itself: CommonTable | null,
): Answering<Get | Write> {
  switch (statement.kind) {
    case 'get':
      return checking.read(statement, outer, itself)
    case 'add':
    case 'set':
    case 'del': {
      const { check, ...written } = checking.write(statement, outer)
      if (check === null) return written
      throw new GatewayError(
        'FORBIDDEN',
        `the policy on "${statement.table.name}" checks the rows after they are written, which ` +
          '"with" cannot do; send the write as a separate statement',
        { span: statement.span },
      )
    }
    default:
      throw new GatewayError('FORBIDDEN', `"with" takes get, add, set and del here, not ${statement.kind}`, {
        span: statement.span,
      })
  }
}

/** `known`: the columns of its statement, which the column list of the common table can rename. */
export function commonTable({ name, columns }: CommonTable, known: readonly RowsetColumn[]): Rowset {
  const renamed = known.map((column, index) => ({ ...column, name: columns[index]?.text ?? column.name }))
  return rowset(`"${name.text}"`, renamed)
}

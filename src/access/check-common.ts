/** Common tables: statements before a statement, by whose names it and those after them read the answers. */
import { GatewayError } from '../errors.ts'
import type { CommonTable, Get, Statement, With } from '../language/tree/ast.ts'
import type { Answering, Checking, Write } from './checking.ts'
import { type Rowset, type RowsetColumn, rowset, type Scope } from './scope.ts'

/** The clause, and the scope of the statement that has it. */
export function commonTablesIn(
  checking: Checking,
  clause: With | null,
  outside: Scope,
): { readonly clause: With | null; readonly outer: Scope } {
  if (clause === null) return { clause, outer: outside }
  // One map that grows: what is checked sees the tables before it, and no scope outlives its statement.
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
  outer: Scope,
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
        `the policy on "${statement.table.name}" looks at the rows as they were written, which ` +
          '"with" cannot do; write them in a statement of their own',
        { span: statement.span },
      )
    }
    default:
      throw new GatewayError('FORBIDDEN', `"with" takes get, add, set and del here, no ${statement.kind}`, {
        span: statement.span,
      })
  }
}

/** `known`: the columns of its statement, which it may call otherwise. */
export function commonTable({ name, columns }: CommonTable, known: readonly RowsetColumn[]): Rowset {
  const renamed = known.map((column, index) => ({ ...column, name: columns[index]?.text ?? column.name }))
  return rowset(`"${name.text}"`, renamed)
}

/** Prints `make` and `index`. They cannot have parameters, so literals stay in the text in both modes. */

import type { ColumnDefinition, Index, Make, TableConstraint } from '../tree/ast.ts'
import { LanguageError } from '../tree/error.ts'
import { type NameScope, OUTERMOST, writeScope } from '../tree/scope.ts'
import { LEVEL } from './precedence.ts'
import { printTableName } from './print-source.ts'
import { printType } from './print-type.ts'
import type { Printer } from './printer.ts'
import { quoteIdentifier } from './quote.ts'

/** Prints a `make` statement. */
export function printMake(make: Make, printer: Printer): string {
  if (make.columns.length === 0) throw new LanguageError('make has no columns', make.span)
  const inside: Printer = { ...printer, definition: 'make' }
  const scope = writeScope(OUTERMOST, { table: make.table, alias: null })
  refuseTwoPrimaryKeys(make)
  const parts = [
    ...make.columns.map(column => printColumnDefinition(column, scope, inside)),
    ...make.constraints.map(printConstraint),
  ]
  return `CREATE TABLE ${printTableName(make.table)} (${parts.join(', ')})`
}

function printColumnDefinition(column: ColumnDefinition, scope: NameScope, printer: Printer): string {
  if (column.primaryKey && column.nullable) {
    throw new LanguageError(`the column ${column.name.text} is a primary key and cannot be nullable`, column.span)
  }
  const name = quoteIdentifier(column.name.text)
  // Before some types, these names would start other syntax: NULLS FIRST, WITHOUT TIME, FORMAT JSON.
  const parts = [/^(format|nulls|without)$/.test(name) ? `"${name}"` : name, printType(column.type)]
  if (column.primaryKey) parts.push('PRIMARY KEY')
  else if (!column.nullable) parts.push('NOT NULL')
  if (column.unique) parts.push('UNIQUE')
  if (column.default !== null) parts.push(`DEFAULT ${printer.expression(column.default, scope, LEVEL.operator)}`)
  if (column.check !== null) parts.push(`CHECK (${printer.expression(column.check, scope, LEVEL.any)})`)
  if (column.references !== null) {
    parts.push(`REFERENCES ${printTableName(column.references.table)} (${quoteIdentifier(column.references.column)})`)
  }
  return parts.join(' ')
}

function printConstraint(constraint: TableConstraint): string {
  if (constraint.columns.length === 0) throw new LanguageError(`${constraint.kind} has no columns`, constraint.span)
  return `${constraint.kind.toUpperCase()} (${constraint.columns.map(name => quoteIdentifier(name.text)).join(', ')})`
}

function refuseTwoPrimaryKeys(make: Make): void {
  const marked = make.columns.filter(column => column.primaryKey)
  const listed = make.constraints.filter(constraint => constraint.kind === 'primary key')
  if (marked.length + listed.length > 1) {
    const names = marked.map(column => column.name.text).join(', ')
    throw new LanguageError(
      `a table has one primary key; for one of several columns write primary key (${names || 'a, b'})`,
      make.span,
    )
  }
}

/** Prints an `index` statement. */
export function printIndex(index: Index, printer: Printer): string {
  if (index.columns.length === 0) throw new LanguageError(`index ${index.name.text} has no columns`, index.span)
  const inside: Printer = { ...printer, definition: 'index' }
  const scope = writeScope(OUTERMOST, { table: index.table, alias: null })
  const columns = index.columns.map(name => quoteIdentifier(name.text)).join(', ')
  const where = index.where === null ? '' : ` WHERE ${inside.expression(index.where, scope, LEVEL.any)}`
  const head = `CREATE ${index.unique ? 'UNIQUE ' : ''}INDEX ${quoteIdentifier(index.name.text)}`
  return `${head} ON ${printTableName(index.table)} (${columns})${where}`
}

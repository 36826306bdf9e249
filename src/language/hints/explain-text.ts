/**
 * Formats parts of a tree as canonical text in one line, for explanations. Parts without a text form throw a
 * `LanguageError`.
 */

import { renderFlat } from '../format/document.ts'
import { formatAnyName, formatName } from '../format/format-name.ts'
import { formatField, formatNest, formatTable } from '../format/format-query.ts'
import { FORMATTER, statementDocument } from '../format/format-statement.ts'
import type { Assignment, Expression, Field, Name, Nest, Source, Statement, TableName } from '../tree/ast.ts'

/** `a + 1`. */
export function expressionText(expression: Expression): string {
  return renderFlat(FORMATTER.expression(expression))
}

/** `a, b`. */
export function expressionsText(expressions: readonly Expression[]): string {
  return expressions.map(expressionText).join(', ')
}

/** `count(*) as n`. */
export function fieldText(field: Field): string {
  return renderFlat(formatField(field, FORMATTER))
}

/** The statement in one line. */
export function statementText(statement: Statement): string {
  return renderFlat(statementDocument(statement))
}

/** `nest many posts {…}`. */
export function nestText(nest: Nest): string {
  return renderFlat(formatNest(nest, FORMATTER))
}

/** `id`. */
export function nameText(name: Name): string {
  return formatName(name.text)
}

/** `n = n + 1`. */
export function assignmentsText(assignments: readonly Assignment[]): string {
  return assignments.map(({ column, value }) => `${nameText(column)} = ${expressionText(value)}`).join(', ')
}

/** The name of a source in the statement. */
export function sourceText(source: Source): string {
  if (source.kind !== 'table source') return formatAnyName(source.alias)
  return targetText(source.table, source.alias)
}

/** `users`, `sales.orders as o`. */
export function targetText(table: TableName, alias: string | null): string {
  return alias === null ? formatTable(table) : formatAnyName(alias)
}

/** `a and b and c` → `a`, `b`, `c`. */
export function conditionTexts(condition: Expression): readonly string[] {
  return condition.kind === 'and' ? condition.operands.flatMap(conditionTexts) : [expressionText(condition)]
}

/**
 * Parts of a tree as they stand in canonical text, each in one line: what an explanation is made of. What has
 * no text form is a `LanguageError`.
 */

import { renderFlat } from '../format/document.ts'
import { formatAnyName, formatName } from '../format/format-name.ts'
import { formatField, formatNest, formatTable } from '../format/format-query.ts'
import { documentOf, FORMATTER } from '../format/format-statement.ts'
import type { Assignment, Expression, Field, Name, Nest, Source, Statement, TableName } from '../tree/ast.ts'

export function expressionText(expression: Expression): string {
  return renderFlat(FORMATTER.expression(expression))
}

export function expressionsText(expressions: readonly Expression[]): string {
  return expressions.map(expressionText).join(', ')
}

/** `count(*) as n`. */
export function fieldText(field: Field): string {
  return renderFlat(formatField(field, FORMATTER))
}

export function statementText(statement: Statement): string {
  return renderFlat(documentOf(statement))
}

export function nestText(nest: Nest): string {
  return renderFlat(formatNest(nest, FORMATTER))
}

export function nameText(name: Name): string {
  return formatName(name.text)
}

/** `n = n + 1`. */
export function assignmentsText(assignments: readonly Assignment[]): string {
  return assignments.map(({ column, value }) => `${nameText(column)} = ${expressionText(value)}`).join(', ')
}

/** What a source is called in the statement. */
export function sourceText(source: Source): string {
  if (source.kind !== 'table source') return formatAnyName(source.alias)
  return targetText(source.table, source.alias)
}

export function targetText(table: TableName, alias: string | null): string {
  return alias === null ? formatTable(table) : formatAnyName(alias)
}

/** `a and b and c` → `a`, `b`, `c`. */
export function conditionTexts(condition: Expression): readonly string[] {
  return condition.kind === 'and' ? condition.operands.flatMap(conditionTexts) : [expressionText(condition)]
}

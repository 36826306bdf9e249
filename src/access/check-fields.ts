/** What rows are made of: the fields that a read or a write answers, with every `*` written out. */
import { GatewayError } from '../errors.ts'
import type { ExpressionField, Field } from '../language/ast.ts'
import { outputName } from '../language/output-name.ts'
import type { Checking } from './checking.ts'
import { countColumns, everyColumn, type RowsetColumn, type Scope, type TypedField, unknownColumn } from './scope.ts'

/** No fields stand for every column, written out; so does `*` among others. */
export function fieldsIn(checking: Checking, fields: readonly Field[], scope: Scope): readonly TypedField[] {
  if (fields.length === 0) return everyColumnIn(checking, scope, null)
  const written = new Set(fields.flatMap(item => (item.kind === 'field' ? (outputName(item) ?? []) : [])))
  return fields.flatMap((item): readonly TypedField[] => {
    if (item.kind === 'field') return [fieldIn(checking, item, scope)]
    if (item.of !== null && !scope.sources.some(source => source.alias === item.of)) {
      throw unknownColumn(`${item.of}.*`, scope, item.span)
    }
    // A column that is also listed by itself appears there, once.
    return everyColumnIn(checking, scope, item.of).filter(({ field }) => !written.has(outputName(field) ?? ''))
  })
}

export function everyColumnIn(checking: Checking, scope: Scope, alias: string | null): readonly TypedField[] {
  const count = countColumns(scope, alias)
  checking.countWritten(count)
  if (count === 0) refuseNothing(scope)
  return everyColumn(scope, alias)
}

/** No fields would stand for every column again. */
function refuseNothing({ sources }: Scope): void {
  const hidden = sources.find(({ rowset }) => (rowset.table?.columns.length ?? 0) > 0)
  if (hidden === undefined) return
  throw new GatewayError('FORBIDDEN', `you may read no column of ${hidden.rowset.label}`)
}

/** What is read out of JSON by a dotted path is called by its last step. */
function fieldIn({ expressions }: Checking, item: ExpressionField, scope: Scope): TypedField {
  const { expression, type, typeName } = expressions.typed(item.expression, scope)
  const isPath = expression.kind === 'column' && expression.path.length > 2
  const alias = isPath ? (item.alias ?? expression.path.at(-1) ?? null) : item.alias
  return { field: { ...item, alias, expression }, type, typeText: typeName }
}

export function aliasesOf(fields: readonly ExpressionField[]): ReadonlySet<string> {
  return new Set(fields.flatMap(({ alias }) => alias ?? []))
}

export function outputsOf(fields: readonly TypedField[]): readonly RowsetColumn[] {
  return fields.map(({ field, type, typeText }) => ({ name: outputName(field) ?? '', type, typeText }))
}

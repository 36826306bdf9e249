/** What rows are made of: the fields that a read or a write answers, with every `*` written out. */
import { GatewayError } from '../errors.ts'
import type { ExpressionField, Field } from '../language/tree/ast.ts'
import { outputName } from '../language/tree/output-name.ts'
import { shorten } from '../text/shorten.ts'
import type { Checking } from './checking.ts'
import { countColumns, everyColumn, type RowsetColumn, type Scope, type TypedField, unknownColumn } from './scope.ts'

/** No fields stand for every column, written out; so does `*` among others. */
export function fieldsIn(checking: Checking, fields: readonly Field[], scope: Scope): readonly TypedField[] {
  if (fields.length === 0) return everyColumnIn(checking, scope, null)
  const listed = fields.map(item => (item.kind === 'field' ? fieldIn(checking, item, scope) : null))
  const written = new Set(listed.map(item => item && signOf(item.field)))
  const all = fields.flatMap((item, index): readonly TypedField[] => {
    const one = listed[index] ?? null
    if (item.kind === 'field') return one === null ? [] : [one]
    if (item.of !== null && !scope.sources.some(source => source.alias === item.of)) {
      throw unknownColumn(`${item.of}.*`, scope, item.span)
    }
    // A column that is also listed by itself appears there, once; so does what has taken its name.
    return everyColumnIn(checking, scope, item.of).filter(
      ({ field }) => !written.has(signOf({ ...field, alias: null })) && !written.has(outputName(field) ?? ''),
    )
  })
  return apart(all)
}

/**
 * A column by its source, so that another one of the same name is another column; everything else by what it
 * is called.
 */
function signOf({ expression, alias }: ExpressionField): string {
  return expression.kind === 'column' && alias === null
    ? JSON.stringify(expression.path)
    : (outputName({ kind: 'field', expression, alias, span: expression.span }) ?? '')
}

/**
 * Columns of several sources that have one name are told apart as `*` does it: the first keeps the name,
 * others have that of their source before it.
 */
function apart(fields: readonly TypedField[]): readonly TypedField[] {
  const seen = new Set<string>()
  return fields.map(typed => {
    const { field } = typed
    const name = outputName(field)
    const { expression } = field
    const isTaken = name !== null && seen.has(name)
    if (name !== null) seen.add(name)
    if (!isTaken || field.alias !== null || expression.kind !== 'column') return typed
    return { ...typed, field: { ...field, alias: expression.path.join('.') } }
  })
}

/** Two keys of one name in a JSON object: one of them would be lost to most readers. */
export function refuseSameNames(fields: readonly Field[]): void {
  const seen = new Set<string>()
  for (const item of fields) {
    const name = outputName(item)
    if (name === null) continue
    if (seen.has(name)) {
      throw new GatewayError(
        'PARSE_ERROR',
        `two fields of the answer are called "${shorten(name)}"; give one of them a name of its own: … as name`,
        { span: item.span },
      )
    }
    seen.add(name)
  }
}

export function everyColumnIn(checking: Checking, scope: Scope, alias: string | null): readonly TypedField[] {
  const count = countColumns(scope, alias)
  checking.countWritten(count)
  if (count === 0) refuseNothing(scope)
  const fields = everyColumn(scope, alias)
  for (const { growth } of fields) if (growth != null) checking.tally.add(growth)
  return fields
}

/** No fields would stand for every column again. */
function refuseNothing({ sources }: Scope): void {
  const hidden = sources.find(({ rowset }) => (rowset.table?.columns.length ?? 0) > 0)
  if (hidden === undefined) return
  throw new GatewayError('FORBIDDEN', `you may read no column of ${hidden.rowset.label}`)
}

/** What is read out of JSON by a dotted path is called by its last step. */
function fieldIn({ expressions, tally }: Checking, item: ExpressionField, scope: Scope): TypedField {
  const before = tally.mark()
  const { expression, type, typeName } = expressions.typed(item.expression, scope)
  const isPath = expression.kind === 'column' && expression.path.length > 2
  const alias = isPath ? (item.alias ?? expression.path.at(-1) ?? null) : item.alias
  return { field: { ...item, alias, expression }, type, typeText: typeName, growth: tally.since(before) }
}

export function aliasesOf(fields: readonly ExpressionField[]): ReadonlySet<string> {
  return new Set(fields.flatMap(({ alias }) => alias ?? []))
}

export function outputsOf(fields: readonly TypedField[]): readonly RowsetColumn[] {
  return fields.map(({ field, type, typeText, growth = null }) => ({
    name: outputName(field) ?? '',
    type,
    typeText,
    growth,
  }))
}

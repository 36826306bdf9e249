/** The fields that a read or a write returns, with every `*` expanded. */
import { GatewayError } from '../errors.ts'
import type { ExpressionField, Field } from '../language/tree/ast.ts'
import { outputName } from '../language/tree/output-name.ts'
import { shorten } from '../text/shorten.ts'
import type { Checking } from './checking.ts'
import { countRepeated } from './copies.ts'
import {
  type AccessScope,
  countColumns,
  everyColumn,
  type RowsetColumn,
  type TypedField,
  unknownColumn,
} from './scope.ts'

/** An empty field list is expanded to every column; so is `*` among other fields. */
export function fieldsIn(checking: Checking, fields: readonly Field[], scope: AccessScope): readonly TypedField[] {
  if (fields.length === 0) return everyColumnIn(checking, scope, null)
  const listed = fields.map(item => (item.kind === 'field' ? fieldIn(checking, item, scope) : null))
  countRepeated(listed, checking.tally)
  const written = new Set(listed.map(item => item && signOf(item.field)))
  const all = fields.flatMap((item, index): readonly TypedField[] => {
    const one = listed[index] ?? null
    if (item.kind === 'field') return one === null ? [] : [one]
    if (item.of !== null && !scope.sources.some(source => source.alias === item.of)) {
      throw unknownColumn(`${item.of}.*`, scope, item.span)
    }
    // A column that is also listed explicitly appears once, in its listed position; so does a field whose
    // alias is a column's name.
    return everyColumnIn(checking, scope, item.of).filter(
      ({ field }) => !written.has(signOf({ ...field, alias: null })) && !written.has(outputName(field) ?? ''),
    )
  })
  return apart(all)
}

/**
 * Identifies a column by its source, so that columns with the same name in two sources differ. Every other
 * field is identified by its name.
 */
function signOf({ expression, alias }: ExpressionField): string {
  return expression.kind === 'column' && alias === null
    ? JSON.stringify(expression.path)
    : (outputName({ kind: 'field', expression, alias, span: expression.span }) ?? '')
}

/**
 * Renames columns that several sources share, as `*` does: the first keeps its name, the others get the
 * name of their source as a prefix.
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

/** Rejects duplicate keys of a JSON object: most readers would lose one of the two. */
export function refuseSameNames(fields: readonly Field[]): void {
  const seen = new Set<string>()
  for (const item of fields) {
    const name = outputName(item)
    if (name === null || (item.kind === 'field' && item.repeats === true)) continue
    if (seen.has(name)) {
      throw new GatewayError(
        'PARSE_ERROR',
        `two fields of the result are named "${shorten(name)}"; rename one of them: … as name`,
        { span: item.span },
      )
    }
    seen.add(name)
  }
}

/** Every column of the sources, or of `alias` alone, that the caller can read. */
export function everyColumnIn(checking: Checking, scope: AccessScope, alias: string | null): readonly TypedField[] {
  const count = countColumns(scope, alias)
  checking.countWritten(count)
  if (count === 0) refuseNothing(scope)
  const fields = everyColumn(scope, alias)
  for (const { growth } of fields) if (growth != null) checking.tally.add(growth)
  return fields
}

/** Rejects a read whose tables have no readable column: an empty field list would mean every column again. */
function refuseNothing({ sources }: AccessScope): void {
  const hidden = sources.find(({ rowset }) => (rowset.table?.columns.length ?? 0) > 0)
  if (hidden === undefined) return
  throw new GatewayError('FORBIDDEN', `permission denied: cannot read any column of ${hidden.rowset.label}`)
}

/** A JSON value reached by a dotted path is named after its last step. */
function fieldIn({ expressions, tally }: Checking, item: ExpressionField, scope: AccessScope): TypedField {
  const before = tally.mark()
  const { expression, type, typeName } = expressions.typed(item.expression, scope)
  const isPath = expression.kind === 'column' && expression.path.length > 2
  const alias = isPath ? (item.alias ?? expression.path.at(-1) ?? null) : item.alias
  return { field: { ...item, alias, expression }, type, typeText: typeName, growth: tally.since(before) }
}

/** The aliases that the statement's own fields have. */
export function aliasesOf(fields: readonly ExpressionField[]): ReadonlySet<string> {
  return new Set(fields.flatMap(({ alias }) => alias ?? []))
}

/** The columns that the fields form for a query around the statement. */
export function outputsOf(fields: readonly TypedField[]): readonly RowsetColumn[] {
  return fields.map(({ field, type, typeText, growth = null }) => ({
    name: outputName(field) ?? '',
    type,
    typeText,
    growth,
  }))
}

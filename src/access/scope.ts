/**
 * The names in scope while a statement is checked: its own sources, then those of the statements around it.
 */
import type { Column, DataType, Table } from '../catalog/model.ts'
import { GatewayError } from '../errors.ts'
import type { ColumnReference, ExpressionField, Span, TableName, WholeRow } from '../language/tree/ast.ts'
import { column as columnReference, field } from '../language/tree/build.ts'
import { nearest } from '../text/nearest.ts'
import { shorten } from '../text/shorten.ts'
import { forbiddenColumn } from './refusals.ts'
import { allows, type ColumnSet } from './rights.ts'
import type { Growth } from './tally.ts'
import { type Typed, untyped } from './typed.ts'
import { isJson } from './types.ts'

/** Anything with columns: a table, a function's result, the fields of a body, a derived table. */
export interface Rowset {
  /** The name in messages, e.g. `table "orders"`. */
  readonly label: string
  readonly column: (name: string) => RowsetColumn | undefined
  /** True if an existing column can be read; a mention of any other column is rejected. */
  readonly isReadable: (name: string) => boolean
  /** The columns that `*` means, and that a suggestion can offer. */
  readonly readable: readonly RowsetColumn[]
  /** The table itself, whose foreign keys a join can follow; null if the rows are not those of a table. */
  readonly table: Table | null
}

/** A column of a rowset. */
export interface RowsetColumn {
  /** The name; empty for the field of a query without an alias, which cannot be mentioned. */
  readonly name: string
  /** The type; null if it is unknown and left to PostgreSQL. */
  readonly type: DataType | null
  readonly typeText: string | null
  /** The size of the expression that computes it, if a query does; null or omitted for stored values. */
  readonly growth?: Growth | null
}

/** A source of a statement under the alias by which the statement mentions it. */
export interface ScopeSource {
  readonly alias: string
  /**
   * A second name, valid if no other source has it: a policy uses its table's name, whatever alias the
   * statement gives the table.
   */
  readonly otherwise?: string
  /**
   * The name that an alias would have hidden: `schema.table.column` means a column of this source; null if
   * it is not a table.
   */
  readonly name: TableName | null
  readonly rowset: Rowset
}

/** The sources and names that a mention can refer to. */
export interface AccessScope {
  readonly sources: readonly ScopeSource[]
  readonly outer: AccessScope | null
  /** The names of the statement's own fields, for `order by`, `group by` and `having`. */
  readonly outputs: ReadonlySet<string>
  /** The same names in places that cannot use them, for a hint in the error. */
  readonly unusableOutputs?: ReadonlySet<string>
  /** Common tables by name, including those of the statements around this one. */
  readonly commonTables: ReadonlyMap<string, Rowset>
}

/** PostgreSQL's number of the transaction that wrote the row (PostgreSQL manual, 5.6). */
export const ROW_VERSION = 'xmin'

/** The scope around the outermost statement. */
export const NOTHING: AccessScope = { sources: [], outer: null, outputs: new Set(), commonTables: new Map() }

/** A scope with these sources inside another scope. */
export function scopeWithin(
  outer: AccessScope,
  sources: readonly ScopeSource[],
  outputs: ReadonlySet<string> = new Set(),
): AccessScope {
  return { sources, outer, outputs, commonTables: outer.commonTables }
}

/** The rowset of a table. `columns`: the columns that can be mentioned. */
export function tableRowset(table: Table, columns: ColumnSet): Rowset {
  const isReadable = (name: string): boolean => allows(columns, name)
  return {
    label: `table "${table.resource}"`,
    column: (name): Column | undefined => table.columnByName.get(name),
    isReadable,
    readable: columns === 'any' ? table.columns : table.columns.filter(({ name }) => isReadable(name)),
    table,
  }
}

/** A rowset of columns that can all be read. */
export function rowset(label: string, columns: readonly RowsetColumn[]): Rowset {
  const byName = new Map(columns.filter(({ name }) => name !== '').map(column => [column.name, column]))
  return { label, column: name => byName.get(name), isReadable: () => true, readable: columns, table: null }
}

/** A source without a qualified name. */
export function sourceOf(alias: string, columns: Rowset): ScopeSource {
  return { alias, name: null, rowset: columns }
}

// ---- names
// -------------------------------------------------------------------------------------------------

/**
 * The meaning of a dotted name by the rules of the language: `alias.column` if the scope has that alias,
 * `schema.table.column`, else a column of the nearest source that has it. Further parts are a path into its
 * JSON.
 */
export function resolveName(reference: ColumnReference, scope: AccessScope): Typed {
  const { path, span } = reference
  const [first = '', second, third] = path
  if (second !== undefined) {
    const source = sourceNamed(first, scope)
    if (source !== null) {
      if (isRowVersion(reference, source)) return untyped({ ...columnReference(source.alias, second), span })
      if (reference.implied !== true) assertReadable(source, second, span)
      return columnOf(source, second, path.slice(2), span)
    }
  }
  if (second !== undefined && third !== undefined) {
    const source = tableNamed(first, second, scope)
    if (source !== null) {
      refuseHidden(source, third, scope, span)
      assertReadable(source, third, span)
      return columnOf(source, third, path.slice(3), span)
    }
  }
  for (let at: AccessScope | null = scope; at !== null; at = at.outer) {
    const having = sourcesWith(first, at)
    if (having.length > 1) throw ambiguous(first, having, span)
    const [only] = having
    if (only !== undefined) {
      if (at !== scope) refuseHidden(only, first, scope, span)
      assertReadable(only, first, span)
      return columnOf(only, first, path.slice(1), span)
    }
  }
  throw second === undefined ? unknownColumn(first, scope, span) : unknownName(path, scope, span)
}

/** True if the gateway mentions the version of a row, which is not in the catalog. No request can. */
function isRowVersion({ implied, path }: ColumnReference, { rowset }: ScopeSource): boolean {
  return implied === true && path.length === 2 && path[1] === ROW_VERSION && rowset.table !== null
}

/**
 * The sources with a column of this name. Sources where it is not readable count only if no other has it,
 * so a name never refers to something that its author cannot know about.
 */
function sourcesWith(name: string, { sources }: AccessScope): readonly ScopeSource[] {
  const having = sources.filter(({ rowset }) => rowset.column(name) !== undefined)
  const readable = having.filter(({ rowset }) => rowset.isReadable(name))
  return readable.length > 0 ? readable : having.slice(0, 1)
}

function assertReadable({ rowset }: ScopeSource, name: string, span: Span): void {
  if (rowset.table === null || rowset.column(name) === undefined || rowset.isReadable(name)) return
  throw forbiddenColumn(name, rowset.table, 'read', span)
}

/** A column of the write's target. The check of the write decides whether it can be written. */
export function resolveTarget(name: string, target: ScopeSource, span: Span): Typed {
  return columnOf(target, name, [], span)
}

/** Requires every column of the row of a source, which must be a row of a table. */
export function assertWholeRow({ of, table: type, span }: WholeRow, scope: AccessScope): void {
  const source = sourceNamed(of, scope)
  const table = source?.rowset.table ?? null
  if (source === null || table?.name !== type.name || table.schema !== type.schema) {
    throw unknownName([of], scope, span)
  }
  for (const { name } of table.columns) assertReadable(source, name, span)
}

function sourceNamed(alias: string, scope: AccessScope): ScopeSource | null {
  for (let at: AccessScope | null = scope; at !== null; at = at.outer) {
    const found =
      at.sources.find(source => source.alias === alias) ?? at.sources.find(source => source.otherwise === alias)
    if (found !== undefined) return found
  }
  return null
}

function tableNamed(schema: string, name: string, scope: AccessScope): ScopeSource | null {
  for (let at: AccessScope | null = scope; at !== null; at = at.outer) {
    const found = at.sources.find(source => source.name?.schema === schema && source.name.name === name)
    if (found !== undefined) return found
  }
  return null
}

/** The result is written as `alias.column`, so the alias must mean the same source at that place. */
function refuseHidden(source: ScopeSource, name: string, scope: AccessScope, span: Span): void {
  if (sourceNamed(source.alias, scope) === source) return
  throw new GatewayError(
    'PARSE_ERROR',
    `"${shorten(name)}" is a column of an outer source "${source.alias}", which another source named ` +
      `"${source.alias}" hides here; give one of them an alias`,
    { span },
  )
}

function columnOf(source: ScopeSource, name: string, steps: readonly string[], span: Span): Typed {
  const column = source.rowset.column(name)
  if (column === undefined) throw unknownColumn(name, { ...NOTHING, sources: [source] }, span)
  const { type, typeText, growth = null } = column
  const expression: ColumnReference = { ...columnReference(source.alias, name, ...steps), span }
  if (steps.length === 0) return { expression, type, typeName: typeText, column: name, growth }
  if (type !== null && !isJson(type)) {
    throw new GatewayError(
      'PARSE_ERROR',
      `column "${name}" is ${typeText ?? type.name}, and only json and jsonb columns have paths`,
      { span },
    )
  }
  return { expression, type: null, typeName: 'text', column: name, growth }
}

/** A field with its type, for the query around it. */
export interface TypedField extends Pick<RowsetColumn, 'type' | 'typeText' | 'growth'> {
  readonly field: ExpressionField
}

/**
 * The columns that `*` or `alias.*` expands to: every column that the caller can read. If several sources
 * have a column of the same name, it is prefixed with its source.
 */
export function everyColumn(scope: AccessScope, alias: string | null): readonly TypedField[] {
  const columns = sourcesOf(scope, alias).flatMap(source => source.rowset.readable.map(column => ({ source, column })))
  const unnamed = columns.find(({ column }) => column.name === '')
  if (unnamed !== undefined) {
    throw new GatewayError(
      'PARSE_ERROR',
      `${unnamed.source.rowset.label} has a field without a name, which * cannot return; write "expression as name"`,
    )
  }
  const seen = new Set<string>()
  return columns.map(({ source, column: { name, type, typeText, growth = null } }) => {
    const isTaken = seen.has(name)
    seen.add(name)
    return {
      field: field(columnReference(source.alias, name), isTaken ? `${source.alias}.${name}` : null),
      type,
      typeText,
      growth,
    }
  })
}

/** How many columns `*` or `alias.*` expands to, without expanding it. */
export function countColumns(scope: AccessScope, alias: string | null): number {
  return sourcesOf(scope, alias).reduce((sum, { rowset }) => sum + rowset.readable.length, 0)
}

function sourcesOf({ sources }: AccessScope, alias: string | null): readonly ScopeSource[] {
  return alias === null ? sources : sources.filter(source => source.alias === alias)
}

// ---- refusals
// ----------------------------------------------------------------------------------------------

const OUTPUT_HINT =
  '; a field has this name, but only "having" can use field names, and "order by" and ' +
  '"group by" only as a bare name: repeat its expression'

function callOf(name: string): string {
  return CALLED_BARE.has(name.toLowerCase()) ? `; to call the function, write ${name.toLowerCase()}()` : ''
}

/** Functions that SQL writes like a column, or that are often written so. */
const CALLED_BARE: ReadonlySet<string> = new Set([
  ...['current_date', 'current_time', 'current_timestamp', 'localtime', 'localtimestamp', 'now'],
])

/** The error for a column that no source has. */
export function unknownColumn(name: string, { sources, unusableOutputs }: AccessScope, span: Span): GatewayError {
  const near = nearest(
    name,
    sources.flatMap(({ rowset }) => rowset.readable.map(column => column.name)),
  )
  const hint =
    unusableOutputs?.has(name) === true ? OUTPUT_HINT : near === null ? callOf(name) : `; did you mean "${near}"?`
  const labels = sources.map(({ rowset }) => rowset.label)
  const [only] = labels
  const what = `column "${shorten(name)}"`
  const message =
    only === undefined
      ? `there is no ${what} here`
      : labels.length === 1
        ? `${only} has no ${what}`
        : `neither ${labels.join(' nor ')} has a ${what}`
  return new GatewayError('PARSE_ERROR', message + hint, { span })
}

/** The error for a dotted name whose first part is unknown. */
function unknownName(path: readonly string[], scope: AccessScope, span: Span): GatewayError {
  const [first = ''] = path
  const renamed = scope.sources.find(({ rowset }) => rowset.table?.name === first)
  const names = scope.sources.flatMap(({ alias, rowset }) => [alias, ...rowset.readable.map(column => column.name)])
  const near = renamed?.alias ?? nearest(first, names)
  const hint = near === null ? '' : `; did you mean "${near}"?`
  return new GatewayError(
    'PARSE_ERROR',
    `"${shorten(path.join('.'))}" begins with "${shorten(first)}", which is neither a table nor a column here${hint}`,
    { span },
  )
}

function ambiguous(name: string, having: readonly ScopeSource[], span: Span): GatewayError {
  const choices = having.map(({ alias }) => `${alias}.${name}`).join(', ')
  return new GatewayError('PARSE_ERROR', `"${name}" is ambiguous; write one of: ${choices}`, { span })
}

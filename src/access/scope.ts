/**
 * The names that a statement can mean while it is checked: its sources, then those of the statements around
 * it.
 */
import type { Column, DataType, Table } from '../catalog/model.ts'
import { GatewayError } from '../errors.ts'
import type { ColumnReference, ExpressionField, Span, TableName } from '../language/tree/ast.ts'
import { column as columnReference, field } from '../language/tree/build.ts'
import { nearest } from '../text/nearest.ts'
import { shorten } from '../text/shorten.ts'
import { forbiddenColumn } from './refusals.ts'
import { allows, type Columns } from './rights.ts'
import type { Growth } from './tally.ts'
import type { Typed } from './typed.ts'
import { isJson } from './types.ts'

/** Something that has columns: a table, what a function answers, the fields of a body, a derived table. */
export interface Rowset {
  /** For messages, e.g. `table "orders"`. */
  readonly label: string
  readonly column: (name: string) => RowsetColumn | undefined
  /** Of columns that are there; a mention of another one is refused. */
  readonly isReadable: (name: string) => boolean
  /** What `*` means here, and what a suggestion may offer. */
  readonly readable: readonly RowsetColumn[]
  /** The table itself, whose foreign keys a join may follow. */
  readonly table: Table | null
}

export interface RowsetColumn {
  /** Empty: it has none, as the field of a query that was given no alias. Nobody can mention it. */
  readonly name: string
  /** Null: not known, and then left to PostgreSQL. */
  readonly type: DataType | null
  readonly typeText: string | null
  /** What it stands for, where a query computes it; null or left out for stored values. */
  readonly growth?: Growth | null
}

export interface ScopeSource {
  readonly alias: string
  /**
   * Another name that it has where no source is called so: a policy names its table, whatever the statement
   * calls it.
   */
  readonly otherwise?: string
  /** The name that an alias would have hidden: `schema.table.column` means a column of this one. */
  readonly name: TableName | null
  readonly rowset: Rowset
}

export interface Scope {
  readonly sources: readonly ScopeSource[]
  readonly outer: Scope | null
  /** What the statement's own fields are called, for `order by`, `group by` and `having`. */
  readonly outputs: ReadonlySet<string>
  /** The same where they cannot be used, for whoever tries. */
  readonly unheard?: ReadonlySet<string>
  /** Common tables by name, those of the statements around included. */
  readonly commonTables: ReadonlyMap<string, Rowset>
}

/** Around the outermost statement. */
export const NOTHING: Scope = { sources: [], outer: null, outputs: new Set(), commonTables: new Map() }

/** A scope with these sources inside of another. */
export function within(outer: Scope, sources: readonly ScopeSource[], outputs: ReadonlySet<string> = new Set()): Scope {
  return { sources, outer, outputs, commonTables: outer.commonTables }
}

/** `columns`: those of the table that may be mentioned. */
export function tableRowset(table: Table, columns: Columns): Rowset {
  const isReadable = (name: string): boolean => allows(columns, name)
  return {
    label: `table "${table.resource}"`,
    column: (name): Column | undefined => table.columnByName.get(name),
    isReadable,
    readable: columns === 'any' ? table.columns : table.columns.filter(({ name }) => isReadable(name)),
    table,
  }
}

export function rowset(label: string, columns: readonly RowsetColumn[]): Rowset {
  const byName = new Map(columns.filter(({ name }) => name !== '').map(column => [column.name, column]))
  return { label, column: name => byName.get(name), isReadable: () => true, readable: columns, table: null }
}

export function sourceOf(alias: string, columns: Rowset): ScopeSource {
  return { alias, name: null, rowset: columns }
}

// ---- names
// -------------------------------------------------------------------------------------------------

/**
 * What a dotted name means, by the rules of the language: `alias.column` where something in scope is called
 * so, `schema.table.column`, else a column of the nearest source that has it; what follows is a path into its
 * JSON.
 */
export function resolve(reference: ColumnReference, scope: Scope): Typed {
  const { path, span } = reference
  const [first = '', second, third] = path
  if (second !== undefined) {
    const source = sourceNamed(first, scope)
    if (source !== null) {
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
  for (let at: Scope | null = scope; at !== null; at = at.outer) {
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

/**
 * Those that may not be read only where no other one has the column: a name means nothing that its author
 * cannot know of.
 */
function sourcesWith(name: string, { sources }: Scope): readonly ScopeSource[] {
  const having = sources.filter(({ rowset }) => rowset.column(name) !== undefined)
  const readable = having.filter(({ rowset }) => rowset.isReadable(name))
  return readable.length > 0 ? readable : having.slice(0, 1)
}

function assertReadable({ rowset }: ScopeSource, name: string, span: Span): void {
  if (rowset.table === null || rowset.column(name) === undefined || rowset.isReadable(name)) return
  throw forbiddenColumn(name, rowset.table, 'read', span)
}

/** A target column, which is never anything else. Whether it may be written is for the check of the write. */
export function resolveTarget(name: string, target: ScopeSource, span: Span): Typed {
  return columnOf(target, name, [], span)
}

function sourceNamed(alias: string, scope: Scope): ScopeSource | null {
  for (let at: Scope | null = scope; at !== null; at = at.outer) {
    const found =
      at.sources.find(source => source.alias === alias) ?? at.sources.find(source => source.otherwise === alias)
    if (found !== undefined) return found
  }
  return null
}

function tableNamed(schema: string, name: string, scope: Scope): ScopeSource | null {
  for (let at: Scope | null = scope; at !== null; at = at.outer) {
    const found = at.sources.find(source => source.name?.schema === schema && source.name.name === name)
    if (found !== undefined) return found
  }
  return null
}

/** What is found is written `alias.column`, so the alias must mean the same source where it is written. */
function refuseHidden(source: ScopeSource, name: string, scope: Scope, span: Span): void {
  if (sourceNamed(source.alias, scope) === source) return
  throw new GatewayError(
    'PARSE_ERROR',
    `"${shorten(name)}" is a column of "${source.alias}" outside, which another source called ` +
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
      `column "${name}" is ${typeText ?? type.name}, and a path leads into json and jsonb only`,
      { span },
    )
  }
  return { expression, type: null, typeName: 'text', column: name, growth }
}

/** A field with what it was found to be, for whoever reads it from outside. */
export interface TypedField extends Pick<RowsetColumn, 'type' | 'typeText' | 'growth'> {
  readonly field: ExpressionField
}

/**
 * `*`, or `alias.*`: every column that the caller may read, written out. A name that several sources have is
 * told apart by its source.
 */
export function everyColumn(scope: Scope, alias: string | null): readonly TypedField[] {
  const columns = sourcesOf(scope, alias).flatMap(source => source.rowset.readable.map(column => ({ source, column })))
  const unnamed = columns.find(({ column }) => column.name === '')
  if (unnamed !== undefined) {
    throw new GatewayError(
      'PARSE_ERROR',
      `${unnamed.source.rowset.label} has a field without a name, which * cannot answer; write it "expression as name"`,
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

/** How many columns `*` or `alias.*` stands for, without writing them out. */
export function countColumns(scope: Scope, alias: string | null): number {
  return sourcesOf(scope, alias).reduce((sum, { rowset }) => sum + rowset.readable.length, 0)
}

function sourcesOf({ sources }: Scope, alias: string | null): readonly ScopeSource[] {
  return alias === null ? sources : sources.filter(source => source.alias === alias)
}

// ---- refusals
// ----------------------------------------------------------------------------------------------

const UNHEARD =
  '; a field is called so, but only "having" sees such names, and "order by" and ' +
  '"group by" one that stands alone: write its expression'

function callOf(name: string): string {
  return CALLED_BARE.has(name.toLowerCase()) ? `; the function is called ${name.toLowerCase()}()` : ''
}

/** What SQL writes like a column, or what is often written so. */
const CALLED_BARE: ReadonlySet<string> = new Set([
  ...['current_date', 'current_time', 'current_timestamp', 'localtime', 'localtimestamp', 'now'],
])

export function unknownColumn(name: string, { sources, unheard }: Scope, span: Span): GatewayError {
  const near = nearest(
    name,
    sources.flatMap(({ rowset }) => rowset.readable.map(column => column.name)),
  )
  const hint = unheard?.has(name) === true ? UNHEARD : near === null ? callOf(name) : `; did you mean "${near}"?`
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

/** A dotted name of which not even the beginning is known. */
function unknownName(path: readonly string[], scope: Scope, span: Span): GatewayError {
  const [first = ''] = path
  const renamed = scope.sources.find(({ rowset }) => rowset.table?.name === first)
  const names = scope.sources.flatMap(({ alias, rowset }) => [alias, ...rowset.readable.map(column => column.name)])
  const near = renamed?.alias ?? nearest(first, names)
  const hint = near === null ? '' : `; did you mean "${near}"?`
  return new GatewayError(
    'PARSE_ERROR',
    `"${shorten(path.join('.'))}" begins with "${shorten(first)}", which is no table and no column here${hint}`,
    { span },
  )
}

function ambiguous(name: string, having: readonly ScopeSource[], span: Span): GatewayError {
  const choices = having.map(({ alias }) => `${alias}.${name}`).join(', ')
  return new GatewayError('PARSE_ERROR', `"${name}" is ambiguous; write one of: ${choices}`, { span })
}

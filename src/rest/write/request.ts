/** Parses a write request: query string, headers, and the trees of the statements for its body. */
import type { ColumnSet } from '../../access/rights.ts'
import type { Relation, Table } from '../../catalog/model.ts'
import { GatewayError } from '../../errors.ts'
import type { Parameter } from '../../language/tree/ast.ts'
import { nearest } from '../../text/nearest.ts'
import { shorten } from '../../text/shorten.ts'
import { type Condition, type FilterLimits, parseFilters } from '../parameters/filters.ts'
import { parseNameList } from '../parameters/name-reader.ts'
import { parseCount } from '../parameters/page.ts'
import { partitionParameters, type RelatedParameter } from '../parameters/request-parameters.ts'
import { parseSelect, type SelectItem } from '../parameters/select.ts'
import type { ExpandedRelation } from '../read/expand.ts'
import { parametersIn, type WRITE_PARAMETERS, type WrittenRequest, writeParametersOf } from '../request.ts'
import type { Values } from '../values.ts'

interface OfTable {
  readonly table: Table
}

/** A body and the columns it contains, sorted. */
interface OfBody extends OfTable {
  readonly columns: readonly string[]
  readonly value: Parameter
}

interface Answering {
  /** The returned columns; empty if no rows are returned. */
  readonly returning: readonly SelectItem[]
}

/** The tree of an insert or upsert. */
export interface InsertTree extends OfBody, Answering {
  readonly kind: 'insert'
  readonly rows: 'one' | 'many'
  readonly upsert: ParsedUpsert | null
  /** The columns whose values are returned after each row. */
  readonly key: readonly string[]
}

/** The tree of an update. */
export interface SetTree extends OfBody, Answering {
  readonly kind: 'set'
  readonly target: WriteTarget
  /** Columns that are set to NULL. */
  readonly cleared?: readonly string[]
  /** Columns whose values are answered beside the row. */
  readonly key: readonly string[]
  /** How the columns change; omitted if the body has their new values. */
  readonly partial?: PartialChange
}

/** Changes that depend on the current row. */
export type PartialChange =
  /** The body has values to add to `increments`, and JSON Merge Patches of `merged`. */
  | { readonly kind: 'values'; readonly increments: readonly string[]; readonly merged: readonly string[] }
  /** The body is a list of operations on the columns `document` of the row. */
  | { readonly kind: 'operations'; readonly document: readonly string[] }

/** The tree of a delete. */
export interface DeleteTree extends OfTable, Answering {
  readonly kind: 'delete'
  readonly target: WriteTarget
}

/** The rows to write. */
export type WriteTarget =
  /** `version`: the values that this column may have, as one array; null: any. */
  | {
      readonly kind: 'row'
      readonly id: readonly Parameter[]
      readonly version: { readonly column: string; readonly values: Parameter } | null
    }
  /** The rows with the values of `by` in the array `rows`. The write fails unless it changes `count` rows. */
  | { readonly kind: 'matched'; readonly by: readonly string[]; readonly rows: Parameter; readonly count: Parameter }
  /** The rows that match at least one condition, and the limit on their number. */
  | { readonly kind: 'rows'; readonly filter: readonly Condition[]; readonly rowsMax: Parameter }

/** A query about the rows of a body: the values of their keys, or a key that several rows have. */
export interface BodyTree extends OfBody {
  readonly kind: 'keys' | 'repeated'
}

/** The rows of a table that have the values of `by` in the array `value`, in the order of the array. */
export interface FoundTree extends OfTable {
  readonly kind: 'found'
  readonly by: readonly string[]
  readonly value: Parameter
  /** Columns after the position in the array, or whole rows. */
  readonly answer:
    | { readonly columns: readonly string[] }
    | { readonly select: readonly SelectItem[]; readonly expand: readonly ExpandedRelation[] }
}

/**
 * The children of the rows in the array `parents`, with the position of their parent, and of the element of
 * `elements` that has their key.
 */
export interface ChildrenTree extends OfTable {
  readonly kind: 'existing children'
  readonly relation: Relation
  readonly parents: Parameter
  readonly elements: Parameter
  /** The columns by which an element names a child. */
  readonly key: readonly string[]
  /** The columns of a child that are answered. */
  readonly columns: readonly string[]
  readonly rowsMax: number
}

/** The tree of an insert or upsert whose values are one array of texts for each column. Returns nothing. */
export interface ImportTree extends OfTable {
  readonly kind: 'load'
  readonly columns: readonly string[]
  readonly values: readonly Parameter[]
  readonly upsert: ParsedUpsert | null
}

/** The tree of a write or of a query about its body. */
export type WriteTree = InsertTree | ImportTree | SetTree | DeleteTree | BodyTree | FoundTree | ChildrenTree

/** The rows that the response to a write contains, as requested. */
export interface Wanted {
  /** The text of `returning`, or undefined if it was not given. */
  readonly returning: string | undefined
  readonly returned: 'minimal' | 'representation' | null
  /** The text of `expand`, or undefined if it was not given. */
  readonly expand?: string | undefined
  /** The parameters about the rows of its relations. */
  readonly related?: readonly RelatedParameter[]
}

/** How to upsert. */
export interface ParsedUpsert {
  readonly target: readonly string[]
  /** The treatment of existing rows; `ignore` keeps them. */
  readonly existing: 'update' | 'ignore'
}

/**
 * Parses what to return. If `Prefer: return=minimal` and `returning` contradict each other, `returning` takes
 * precedence.
 */
export function parseWanted(written: WrittenRequest): Wanted {
  const names: readonly (typeof WRITE_PARAMETERS)[number][] = writeParametersOf(written.method)
  const { named, related } = partitionParameters(parametersIn(written), names)
  const expand = named.get('expand')
  const wanted = { returning: named.get('returning'), returned: written.headers.prefer.returned }
  return expand === undefined ? wanted : { ...wanted, expand, related }
}

/**
 * The columns to return; empty if no rows are returned. `fallback` applies if the request does not list
 * columns. `answerable` are the columns that can be returned, which is what `*` means.
 * @throws {GatewayError} `PARSE_ERROR` for a malformed list.
 */
export function parseReturning(
  wanted: Wanted,
  fallback: 'rows' | 'nothing',
  answerable: ColumnSet,
  values: Values,
): readonly SelectItem[] {
  if (wanted.returning !== undefined && wanted.returning !== '*') {
    return parseSelect(wanted.returning, values, 'returning')
  }
  const asked = wanted.returned === null ? fallback === 'rows' : wanted.returned === 'representation'
  const rows = (asked || wanted.returning === '*') && (answerable === 'any' || answerable.size > 0)
  return rows ? [{ kind: 'star' }] : []
}

/**
 * Rejects parameters other than those of all writes, for requests that do not accept filters.
 * @throws {GatewayError} `PARSE_ERROR`.
 */
export function refuseOthers({ parameters, method }: WrittenRequest, what: string): void {
  const names: readonly string[] = writeParametersOf(method)
  const other = parameters.find(({ kind, name }) => kind !== 'related' && !names.includes(name))
  if (other === undefined) return
  const near = nearest(other.name, names)
  const hint = near === null ? `it accepts only ${names.join(' and ')}` : `did you mean "${near}"?`
  throw new GatewayError('PARSE_ERROR', `${what} does not accept the parameter "${shorten(other.name)}"; ${hint}`)
}

// ---- upsert -----------------------------------------------------------------------------------------------

/**
 * Parses the upsert headers; null for a plain insert.
 * @throws {GatewayError} `PARSE_ERROR` for an invalid mode or a missing conflict target.
 */
export function parseUpsert({ headers }: WrittenRequest, table: Table): ParsedUpsert | null {
  const { upsert: mode, target } = headers
  if (mode === undefined || mode === 'false') {
    if (target === undefined) return null
    throw new GatewayError('PARSE_ERROR', 'X-On-Conflict applies only to an upsert; send X-Upsert: true with it')
  }
  if (mode !== 'true' && mode !== 'ignore') {
    throw new GatewayError('PARSE_ERROR', `X-Upsert "${shorten(mode)}" is not valid; use true, ignore or false`)
  }
  const names = target === undefined ? table.primaryKey : parseNameList(target, 'X-On-Conflict')
  if (names.length === 0) {
    throw new GatewayError(
      'PARSE_ERROR',
      `table "${table.resource}" has no primary key to upsert by; name the columns of a unique key in X-On-Conflict`,
    )
  }
  return { target: names, existing: mode === 'ignore' ? 'ignore' : 'update' }
}

// ---- bulk -------------------------------------------------------------------------------------------------

/** Limit on the rows that one filtered write changes unless `X-Max-Affected` sets another. */
const MAX_AFFECTED = 1_000

/**
 * Parameters of lists that a filtered write rejects; ignoring them would make it change more rows than
 * intended.
 */
const LIST_ONLY: ReadonlySet<string> = new Set([
  'sort',
  'limit',
  'offset',
  'cursor',
  'select',
  'distinct',
  'expand',
  'stream',
  'search',
  'search_columns',
])

/**
 * Parses the target of a filtered write.
 * @throws {GatewayError} `PARSE_ERROR` without a filter or with a parameter of lists.
 */
export function parseBulk(
  { parameters, headers }: WrittenRequest,
  table: Table,
  values: Values,
  limits: FilterLimits,
): WriteTarget {
  const filters = parameters.filter(({ name }) => name !== 'returning')
  const misplaced = filters.find(({ name }) => LIST_ONLY.has(name) && !table.columnByName.has(name))
  if (misplaced !== undefined) {
    throw new GatewayError(
      'PARSE_ERROR',
      `a filtered write takes filters and returning, not "${misplaced.name}"; ` +
        'it changes every row that the filters match',
    )
  }
  const filter = parseFilters(filters, values, limits)
  if (filter.length === 0) {
    throw new GatewayError(
      'PARSE_ERROR',
      `a write to all rows of "${table.resource}" is not possible; ` +
        'give at least one filter, or the id of a row in the path',
    )
  }
  return { kind: 'rows', filter, rowsMax: values.add(String(parseRowsMax(headers.rowsMax))) }
}

/**
 * Parses `X-Max-Affected`, the limit on the rows of a filtered write.
 * @throws {GatewayError} `PARSE_ERROR` if it is not a whole number.
 */
export function parseRowsMax(text: string | undefined): number {
  return parseCount(text, 'X-Max-Affected') ?? MAX_AFFECTED
}

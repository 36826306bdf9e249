/** A write request, parsed: query string and headers, and the trees of the statements that its body makes of it. */
import type { Columns } from '../../access/rights.ts'
import type { Table } from '../../catalog/model.ts'
import { GatewayError } from '../../errors.ts'
import type { Parameter } from '../../language/tree/ast.ts'
import { nearest } from '../../text/nearest.ts'
import { shorten } from '../../text/shorten.ts'
import { type Condition, type FilterLimits, parseFilters } from '../parameters/filters.ts'
import { parseNameList } from '../parameters/names.ts'
import { parseCount } from '../parameters/page.ts'
import { parseSelect, type Selected } from '../parameters/select.ts'
import { sortOut } from '../parameters/written.ts'
import { parametersIn, WRITE_PARAMETERS, type WrittenRequest } from '../request.ts'
import type { Values } from '../values.ts'

interface OfTable {
  readonly table: Table
}

/** Of the columns that a body gives, sorted: the body. */
interface OfBody extends OfTable {
  readonly columns: readonly string[]
  readonly value: Parameter
}

interface Answering {
  /** None: the rows are not answered. */
  readonly returning: readonly Selected[]
}

export interface InsertTree extends OfBody, Answering {
  readonly kind: 'insert'
  readonly rows: 'one' | 'many'
  readonly upsert: Upsert | null
  /** Columns whose values are answered beside the row. */
  readonly key: readonly string[]
}

export interface SetTree extends OfBody, Answering {
  readonly kind: 'set'
  readonly target: Target
}

export interface DeleteTree extends OfTable, Answering {
  readonly kind: 'delete'
  readonly target: Target
}

/** The rows that are written. */
export type Target =
  | { readonly kind: 'row'; readonly id: readonly Parameter[] }
  /** At least one condition, and how many rows may be written at most. */
  | { readonly kind: 'rows'; readonly filter: readonly Condition[]; readonly rowsMax: Parameter }

/** What is asked about the rows of a body: the values of their keys; a key that several of them have. */
export interface BodyTree extends OfBody {
  readonly kind: 'keys' | 'repeated'
}

export type WriteTree = InsertTree | SetTree | DeleteTree | BodyTree

/** What a write is asked to answer. */
export interface Wanted {
  /** The text of `returning`; undefined when nothing was said. */
  readonly returning: string | undefined
  readonly returned: 'minimal' | 'representation' | null
}

export interface Upsert {
  readonly target: readonly string[]
  /** `ignore`: existing rows stay as they are. */
  readonly existing: 'update' | 'ignore'
}

/** `Prefer: return=minimal` and `returning` contradict each other; the list of columns is the more exact wish. */
export function parseWanted(written: WrittenRequest): Wanted {
  const { named } = sortOut(parametersIn(written), WRITE_PARAMETERS)
  return { returning: named.get('returning'), returned: written.headers.prefer.returned }
}

/**
 * What to return; none where nothing is to be answered. `fallback`: what a request that says nothing gets. `answerable`: what may be answered at all,
 * which `*` means.
 */
export function parseReturning(
  wanted: Wanted,
  fallback: 'rows' | 'nothing',
  answerable: Columns,
  values: Values,
): readonly Selected[] {
  if (wanted.returning !== undefined && wanted.returning !== '*') {
    return parseSelect(wanted.returning, values, 'returning')
  }
  const asked = wanted.returned === null ? fallback === 'rows' : wanted.returned === 'representation'
  const rows = (asked || wanted.returning === '*') && (answerable === 'any' || answerable.size > 0)
  return rows ? [{ kind: 'star' }] : []
}

/** Requests about one row, and creations, take nothing else. */
export function refuseOthers({ parameters }: WrittenRequest, what: string): void {
  const other = parameters.find(({ name }) => name !== 'returning')
  if (other === undefined) return
  const near = nearest(other.name, ['returning'])
  const hint = near === null ? `${what} takes only returning` : `did you mean "${near}"?`
  throw new GatewayError('PARSE_ERROR', `${what} takes no parameter "${shorten(other.name)}"; ${hint}`)
}

// ---- upsert ------------------------------------------------------------------------------------------------

/** Null: a plain creation. */
export function parseUpsert({ headers }: WrittenRequest, table: Table): Upsert | null {
  const { upsert: mode, target } = headers
  if (mode === undefined || mode === 'false') {
    if (target === undefined) return null
    throw new GatewayError('PARSE_ERROR', 'X-On-Conflict says on what an upsert looks; send X-Upsert: true with it')
  }
  if (mode !== 'true' && mode !== 'ignore') {
    throw new GatewayError('PARSE_ERROR', `X-Upsert "${shorten(mode)}" is none of true, ignore, false`)
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

// ---- bulk --------------------------------------------------------------------------------------------------

/** Rows that one filtered write may change unless `X-Max-Affected` says otherwise. */
const MAX_AFFECTED = 1_000

/** Parameters of lists that a bulk write has no use for: silently left out, they would widen it. */
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

export function parseBulk(
  { parameters, headers }: WrittenRequest,
  table: Table,
  values: Values,
  limits: FilterLimits,
): Target {
  const filters = parameters.filter(({ name }) => name !== 'returning')
  const misplaced = filters.find(({ name }) => LIST_ONLY.has(name) && !table.columnByName.has(name))
  if (misplaced !== undefined) {
    throw new GatewayError(
      'PARSE_ERROR',
      `a filtered write takes filters and returning, no "${misplaced.name}"; ` +
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

/** How many rows a write may change that picks them by a condition. */
export function parseRowsMax(text: string | undefined): number {
  return parseCount(text, 'X-Max-Affected') ?? MAX_AFFECTED
}

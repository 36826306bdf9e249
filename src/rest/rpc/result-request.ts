/**
 * Parses the parameters for the rows of a function that returns a set: filters, sort, select, limit and
 * offset, as for lists (docs/reference/functions.md#results).
 */
import { resultColumns } from '../../access/columns.ts'
import type { Column, DatabaseFunction } from '../../catalog/model.ts'
import { GatewayError } from '../../errors.ts'
import { nearest } from '../../text/nearest.ts'
import { shorten } from '../../text/shorten.ts'
import { type Condition, type FilterLimits, parseFilters } from '../parameters/filters.ts'
import { parseSlice, type Slice } from '../parameters/page.ts'
import type { QueryParameter } from '../parameters/query-string.ts'
import { findMisspelt, partitionParameters, type WrittenParameter } from '../parameters/request-parameters.ts'
import { parseSelect, type SelectItem } from '../parameters/select.ts'
import { parseSort, type SortItem } from '../parameters/sort.ts'
import { RESULT_PARAMETERS } from '../request.ts'
import type { Values } from '../values.ts'
import { printSignature } from './signature.ts'

/** Limits on the result of a call. */
export interface ResultLimits extends FilterLimits {
  /** Limit on the rows of the result; 0 means no limit. */
  readonly maxResultRows: number
}

/** The part of the result that a call requests. */
export interface ResultRequest extends Slice {
  readonly filter: readonly Condition[]
  /** The selected columns; empty for every column, or for the bare value. */
  readonly select: readonly SelectItem[]
  readonly sort: readonly SortItem[]
}

/** A request for the whole result. */
export const WHOLE_RESULT: ResultRequest = { filter: [], select: [], sort: [], limit: null, offset: null }

/**
 * Parses the parameters that apply to the rows of the result.
 * @throws {GatewayError} `PARSE_ERROR` for an invalid parameter or an exceeded limit.
 */
export function parseResultRequest(
  parameters: readonly WrittenParameter[],
  values: Values,
  limits: ResultLimits,
): ResultRequest {
  const { named, others } = partitionParameters(parameters, RESULT_PARAMETERS)
  const filter = parseFilters(others, values, limits)
  const select = parseSelect(named.get('select'), values)
  const sort = parseSort(named.get('sort'), values)
  return { filter, select, sort, ...parseSlice(named, values, limits.maxResultRows) }
}

/**
 * Rejects parameters for a function that returns a single value or nothing, which has no rows to select from.
 * A remaining parameter is a misspelt argument.
 * @throws {GatewayError} `PARSE_ERROR`.
 */
export function refuseParameters(parameters: readonly QueryParameter[], of: DatabaseFunction, name: string): void {
  const [first] = parameters
  if (first === undefined) return
  refuseMisplaced(first.name, of, name)
  const near = nearest(first.name, inputNames(of))
  throw new GatewayError(
    'PARSE_ERROR',
    `${printSignature(of, name)} does not return a set, so it takes no parameter "${shorten(first.name)}"` +
      (near === null ? '' : `; did you mean "${near}"?`),
  )
}

/**
 * Rejects a name that is not a column, because it can be a misspelt parameter or argument, which the access
 * check does not know. `columns` are those that can be suggested.
 * @throws {GatewayError} `PARSE_ERROR`.
 */
export function refuseMisspeltCallParameter(
  parameters: readonly QueryParameter[],
  of: DatabaseFunction,
  columns: readonly Column[],
  name: string,
): void {
  const known: ReadonlySet<string> = new Set([...RESULT_PARAMETERS, ...resultColumns(of).map(column => column.name)])
  const unknown = findMisspelt(parameters, parameter => known.has(parameter))
  if (unknown === undefined) return
  refuseMisplaced(unknown, of, name)
  const offered = [...RESULT_PARAMETERS, ...columns.map(column => column.name), ...inputNames(of)]
  const near = nearest(unknown, offered)
  const hint = near === null ? 'its rows take filters, select, sort, limit and offset' : `did you mean "${near}"?`
  throw new GatewayError(
    'PARSE_ERROR',
    `"${shorten(unknown)}" is neither an argument of ${printSignature(of, name)} nor a column of its result; ${hint}`,
  )
}

/** Rejects arguments in the query string of a POST; they belong in the body. */
function refuseMisplaced(parameter: string, of: DatabaseFunction, name: string): void {
  if (!inputNames(of).includes(parameter)) return
  throw new GatewayError(
    'PARSE_ERROR',
    `"${shorten(parameter)}" is an argument of ${printSignature(of, name)}; a POST passes all of them in its body`,
  )
}

function inputNames({ inputs }: DatabaseFunction): readonly string[] {
  return inputs.flatMap(input => input.name ?? [])
}

/** What a request says about the rows of a function that returns a set: filters, sort, select, limit, offset, as in lists (decisions 5). */
import type { Column, DatabaseFunction } from '../../catalog/model.ts'
import { GatewayError } from '../../errors.ts'
import type { Expression, Field, Order, Parameter } from '../../language/ast.ts'
import { nearest } from '../../nearest.ts'
import { shorten } from '../../shorten.ts'
import { type FilterLimits, GROUP_PARAMETERS, parseFilters } from '../filters.ts'
import { effectiveLimit, isPlannedLimit, parseCount } from '../page.ts'
import type { QueryParameter } from '../query-string.ts'
import { sortOut } from '../request.ts'
import { parseSelect } from '../select.ts'
import type { Shape } from '../shape.ts'
import { parseSort } from '../sort.ts'
import { printSignature } from './signature.ts'

export interface ResultLimits extends FilterLimits {
  /** 0: no cap. */
  readonly maxResultRows: number
}

export interface ResultRequest {
  readonly filter: Expression | null
  /** None: every column, or the bare value. */
  readonly fields: readonly Field[]
  readonly sort: readonly Order[]
  /** Null: no limit at all. */
  readonly limit: number | Parameter | null
  readonly offset: Parameter | null
}

export const WHOLE_RESULT: ResultRequest = { filter: null, fields: [], sort: [], limit: null, offset: null }

const PARAMETERS = ['select', 'sort', 'limit', 'offset'] as const

export function parseResultRequest(
  parameters: readonly QueryParameter[],
  shape: Shape,
  limits: ResultLimits,
): ResultRequest {
  const { named, others } = sortOut(parameters, PARAMETERS)
  const filter = parseFilters(others, shape, limits)
  const fields = parseSelect(named.get('select'), shape)
  const sort = parseSort(named.get('sort'), shape)
  const wanted = parseCount(named.get('limit'), 'limit')
  const offset = parseCount(named.get('offset'), 'offset')
  shape.add(offset === undefined ? '' : 'offset')
  return {
    filter,
    fields,
    sort,
    limit: toLimit(wanted, limits.maxResultRows, shape),
    offset: offset === undefined ? null : shape.value(String(offset)),
  }
}

/** There is no next page to tell of, so without a limit all rows are answered, up to the cap. */
function toLimit(wanted: number | undefined, cap: number, shape: Shape): number | Parameter | null {
  if (wanted === undefined && cap === 0) return null
  const limit = effectiveLimit(wanted, cap, cap)
  if (limit !== wanted || isPlannedLimit(limit)) {
    shape.add(`limit ${limit}`)
    return limit
  }
  shape.add('limit')
  return shape.value(String(limit))
}

/** A function that answers one value, or nothing, has no rows to choose from; what is left over is a misspelt argument. */
export function refuseParameters(parameters: readonly QueryParameter[], of: DatabaseFunction, name: string): void {
  const [first] = parameters
  if (first === undefined) return
  const near = nearest(
    first.name,
    of.inputs.flatMap(input => input.name ?? []),
  )
  throw new GatewayError(
    'PARSE_ERROR',
    `${printSignature(of, name)} returns no set and so takes no parameter "${shorten(first.name)}"${near === null ? '' : `; did you mean "${near}"?`}`,
  )
}

/** As for lists: a plain name that is no column may be a misspelt parameter or argument, which the check does not know. */
export function refuseMisspelt(
  parameters: readonly QueryParameter[],
  of: DatabaseFunction,
  columns: readonly Column[],
  name: string,
): void {
  const known: ReadonlySet<string> = new Set([...PARAMETERS, ...columns.map(column => column.name)])
  for (const parameter of parameters) {
    if (known.has(parameter.name) || GROUP_PARAMETERS.has(parameter.name) || /[.>"]/.test(parameter.name)) continue
    const near = nearest(parameter.name, [...known, ...of.inputs.flatMap(input => input.name ?? [])])
    throw new GatewayError(
      'PARSE_ERROR',
      `"${shorten(parameter.name)}" is neither an argument of ${printSignature(of, name)} nor a column of its result; ${near === null ? 'its rows take filters, select, sort, limit and offset' : `did you mean "${near}"?`}`,
    )
  }
}

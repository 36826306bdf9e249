/**
 * The parameters of a query string, each read once, either as a named parameter or as a filter. An unreadable
 * filter is reported only where it is used, so that errors of the path take precedence.
 */
import { GatewayError } from '../../errors.ts'
import { type FilterTree, GROUP_PARAMETERS, readFilter } from './filter-notation.ts'
import type { QueryParameter } from './query-string.ts'
import { RELATED_PARAMETERS, splitterFor } from './related.ts'

/** A parameter about the requested table: named, a filter, or a filter that cannot be read. */
export type OwnParameter = QueryParameter &
  (
    | { readonly kind: 'named' }
    | { readonly kind: 'filter'; readonly filter: FilterTree }
    | { readonly kind: 'unreadable'; readonly mistake: GatewayError }
  )

/** A parameter about the rows of an expanded relation. */
export interface RelatedParameter extends QueryParameter {
  readonly kind: 'related'
  /** The names of the relations in the response, from the outermost. */
  readonly path: readonly string[]
  /** The parameter without the path. */
  readonly parameter: OwnParameter
}

/** A parameter of a request. */
export type WrittenParameter = OwnParameter | RelatedParameter

/** Reads each parameter; `names` are the parameters that are not filters. */
export function parseParameters(
  parameters: readonly QueryParameter[],
  names: readonly string[],
): readonly WrittenParameter[] {
  const expand = names.includes('expand') ? parameters.find(({ name }) => name === 'expand')?.value : undefined
  const split = splitterFor(expand)
  return parameters.map((parameter): WrittenParameter => {
    if (names.includes(parameter.name)) return { kind: 'named', ...parameter }
    const related = split(parameter.name)
    if (related === null) return filterIn(parameter)
    const { path, name } = related
    const own = { name, value: parameter.value }
    const inner: OwnParameter = RELATED_PARAMETERS.includes(name) ? { kind: 'named', ...own } : filterIn(own)
    return { kind: 'related', ...parameter, path, parameter: inner }
  })
}

function filterIn({ name, value }: QueryParameter): OwnParameter {
  try {
    return { kind: 'filter', name, value, filter: readFilter({ name, value }) }
  } catch (error) {
    if (error instanceof GatewayError) return { kind: 'unreadable', name, value, mistake: error }
    throw error
  }
}

/**
 * The filter of a parameter.
 * @throws {GatewayError} `PARSE_ERROR` if it cannot be read.
 */
export function filterOf(parameter: WrittenParameter): FilterTree {
  switch (parameter.kind) {
    case 'filter':
      return parameter.filter
    case 'unreadable':
      throw parameter.mistake
    case 'named':
      return readFilter(parameter)
    case 'related':
      throw new Error('a filter of a relation is not a filter of the table')
  }
}

/** Parameters split into named ones and filters. */
export interface PartitionedParameters<T extends string> {
  /** The value of each named parameter. */
  readonly named: ReadonlyMap<T, string>
  /** The remaining parameters, which are filters. */
  readonly others: readonly OwnParameter[]
  /** The parameters about the rows of expanded relations. */
  readonly related: readonly RelatedParameter[]
}

const NO_PARAMETERS = { named: new Map<never, string>(), others: [], related: [] } as const

/**
 * Separates the parameters with these names from all others.
 * @throws {GatewayError} `PARSE_ERROR` for a name that is given twice.
 */
export function partitionParameters<T extends string>(
  parameters: readonly WrittenParameter[],
  names: readonly T[],
): PartitionedParameters<T> {
  if (parameters.length === 0) return NO_PARAMETERS
  const named = new Map<T, string>()
  const others: OwnParameter[] = []
  const related: RelatedParameter[] = []
  for (const parameter of parameters) {
    const name = parameter.name as T
    if (parameter.kind === 'related') related.push(parameter)
    else if (!names.includes(name)) others.push(parameter)
    else if (named.has(name)) {
      throw new GatewayError('PARSE_ERROR', `parameter "${name}" is given twice; join its items with a comma`)
    } else named.set(name, parameter.value)
  }
  return { named, others, related }
}

/**
 * Finds the first parameter that could be a misspelt name. It looks like a filter on a column that does not
 * exist; the access check would report that, but it suggests columns only, while `limt=5` means `limit`.
 * Parameters in filter notation are left to the check.
 */
export function findMisspelt(
  parameters: readonly QueryParameter[],
  isKnown: (name: string) => boolean,
): string | undefined {
  return parameters.find(({ name }) => !isKnown(name) && !GROUP_PARAMETERS.has(name) && !/[.>"]/.test(name))?.name
}

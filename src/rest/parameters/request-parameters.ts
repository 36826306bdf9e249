/**
 * The parameters of a query string, each read once, either as a named parameter or as a filter. An unreadable
 * filter is reported only where it is used, so that errors of the path take precedence.
 */
import { GatewayError } from '../../errors.ts'
import { type Filter, GROUP_PARAMETERS, readFilter } from './filter-notation.ts'
import type { QueryParameter } from './query-string.ts'

/** A parameter of a request: named, a filter, or a filter that cannot be read. */
export type WrittenParameter = QueryParameter &
  (
    | { readonly kind: 'named' }
    | { readonly kind: 'filter'; readonly filter: Filter }
    | { readonly kind: 'unreadable'; readonly mistake: GatewayError }
  )

/** Reads each parameter; `names` are the parameters that are not filters. */
export function parseParameters(
  parameters: readonly QueryParameter[],
  names: readonly string[],
): readonly WrittenParameter[] {
  return parameters.map(({ name, value }) => {
    if (names.includes(name)) return { kind: 'named', name, value }
    try {
      return { kind: 'filter', name, value, filter: readFilter({ name, value }) }
    } catch (error) {
      if (error instanceof GatewayError) return { kind: 'unreadable', name, value, mistake: error }
      throw error
    }
  })
}

/**
 * The filter of a parameter.
 * @throws {GatewayError} `PARSE_ERROR` if it cannot be read.
 */
export function filterOf(parameter: WrittenParameter): Filter {
  switch (parameter.kind) {
    case 'filter':
      return parameter.filter
    case 'unreadable':
      throw parameter.mistake
    case 'named':
      return readFilter(parameter)
  }
}

/** Parameters split into named ones and filters. */
export interface PartitionedParameters<T extends string> {
  /** The value of each named parameter. */
  readonly named: ReadonlyMap<T, string>
  /** The remaining parameters, which are filters. */
  readonly others: readonly WrittenParameter[]
}

const NO_PARAMETERS = { named: new Map<never, string>(), others: [] } as const

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
  const others: WrittenParameter[] = []
  for (const parameter of parameters) {
    const name = parameter.name as T
    if (!names.includes(name)) others.push(parameter)
    else if (named.has(name)) {
      throw new GatewayError('PARSE_ERROR', `parameter "${name}" is given twice; join its items with a comma`)
    } else named.set(name, parameter.value)
  }
  return { named, others }
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

/**
 * The parameters of a query string as they are written, each read once: by name, or as a filter. A filter that cannot be read is an error where it is used: what
 * the path names is judged first.
 */
import { GatewayError } from '../../errors.ts'
import { type Filter, GROUP_PARAMETERS, readFilter } from './filter-notation.ts'
import type { QueryParameter } from './query-string.ts'

export type WrittenParameter = QueryParameter &
  (
    | { readonly kind: 'named' }
    | { readonly kind: 'filter'; readonly filter: Filter }
    | { readonly kind: 'unreadable'; readonly mistake: GatewayError }
  )

/** `names`: of the parameters that are no filters. */
export function readParameters(
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

export interface Sorted<T extends string> {
  /** Each at most once. */
  readonly named: ReadonlyMap<T, string>
  /** Filters. */
  readonly others: readonly WrittenParameter[]
}

const NO_PARAMETERS = { named: new Map<never, string>(), others: [] } as const

/** Tells the parameters of these names apart from the others. */
export function sortOut<T extends string>(parameters: readonly WrittenParameter[], names: readonly T[]): Sorted<T> {
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
 * A parameter that is misspelt reads like a filter on a column that does not exist. The check would say so, but it only knows columns to
 * suggest: `limt=5` means `limit`. What is written in the notation of filters is left to the check.
 */
export function misspelt(
  parameters: readonly QueryParameter[],
  isKnown: (name: string) => boolean,
): string | undefined {
  return parameters.find(({ name }) => !isKnown(name) && !GROUP_PARAMETERS.has(name) && !/[.>"]/.test(name))?.name
}

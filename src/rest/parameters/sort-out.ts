/** The parameters of a query string that are ours, told apart from filters. */
import { GatewayError } from '../../errors.ts'
import { GROUP_PARAMETERS } from './filter-notation.ts'
import type { QueryParameter } from './query-string.ts'

export interface Sorted<T extends string> {
  /** Each at most once. */
  readonly named: ReadonlyMap<T, string>
  /** Filters. */
  readonly others: readonly QueryParameter[]
}

export function sortOut<T extends string>(parameters: readonly QueryParameter[], known: readonly T[]): Sorted<T> {
  const named = new Map<T, string>()
  const others: QueryParameter[] = []
  for (const parameter of parameters) {
    const name = parameter.name as T
    if (!known.includes(name)) others.push(parameter)
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

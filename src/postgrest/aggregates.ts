/**
 * Aggregates of `select`. An aggregate in a spread relation is computed over the groups of the row around it:
 * from the values of a to-one relation, or from the partial results of a to-many relation.
 */
import type { Expression } from '../language/tree/ast.ts'
import { arithmetic, call, cast, integer } from '../language/tree/build.ts'
import type { BoundField } from './bind.ts'

/** An aggregate over values that are not aggregated yet. */
export interface Aggregated {
  readonly values: readonly Expression[]
  /** The aggregate of these values. */
  readonly combine: (values: readonly Expression[]) => Expression
  /** The functions whose results, for a part of the rows, can be merged. */
  readonly partials: readonly string[]
  readonly merge: (values: readonly Expression[]) => Expression
  readonly cast: string | null
}

/** An aggregate of one value for each row. */
export function aggregateOf({ name, cast: type }: NonNullable<BoundField['aggregate']>, value: Expression): Aggregated {
  const first = (values: readonly Expression[]): Expression => values[0] ?? value
  return {
    values: [value],
    combine: values => call(name, [first(values)]),
    partials: name === 'avg' ? ['sum', 'count'] : [name],
    merge: values => mergeOf(name, values),
    cast: type,
  }
}

function mergeOf(name: string, [first, second]: readonly Expression[]): Expression {
  const value = first ?? integer('0')
  switch (name) {
    case 'count':
      return cast(call('coalesce', [call('sum', [value]), integer('0')]), 'int8')
    case 'avg': {
      const rows = call('nullif', [call('sum', [second ?? value]), integer('0')])
      return arithmetic('/', call('sum', [value]), rows)
    }
    default:
      return call(name, [value])
  }
}

/** The partial results of an aggregate; `fold` applies a function to the value of each row. */
export function partialsOf(
  { values, partials }: Aggregated,
  fold: (name: string, value: Expression) => Expression,
): readonly Expression[] {
  return values.flatMap((value, index) => {
    // Values that are partial results already are folded by the function that merges them.
    if (values.length > 1) return [fold('sum', value)]
    return index === 0 ? partials.map(name => fold(name, value)) : []
  })
}

/** The aggregate over partial results. */
export function merged(aggregate: Aggregated, values: readonly Expression[]): Aggregated {
  // Counts are merged by their sum.
  const partials = values.length > 1 ? aggregate.partials : aggregate.partials.map(name => MERGED_BY[name] ?? name)
  return { ...aggregate, values, combine: aggregate.merge, partials }
}

const MERGED_BY: Readonly<Record<string, string>> = { count: 'sum' }

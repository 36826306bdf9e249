/**
 * Assigns filters to shared statements. Each filter keeps its place as long as it is in use, so that a
 * subscription that starts or ends changes the text of one statement and the others stay prepared.
 */
import { GatewayError } from '../errors.ts'
import { FILTERS_MAX } from './evaluation.ts'
import type { SubscriptionPlan } from './subscription-plan.ts'
import type { EvaluatedPlans } from './visibility-query.ts'

/** The filters of one visibility group, in batches that one statement evaluates. */
export interface FilterBatches {
  /** Adds a use of a plan's filter. Each call must be matched by one of `delete`. */
  add(watch: SubscriptionPlan): void
  delete(watch: SubscriptionPlan): void
  /** The statements that evaluate the plans with these names. */
  evaluated(names: ReadonlySet<string>): readonly EvaluatedPlans[]
}

interface FilterBatch {
  readonly plans: Map<string, SubscriptionPlan>
  /** The statements for all filters of the batch; null if not built yet. */
  evaluated: readonly EvaluatedPlans[] | null
}

/** Creates an empty set of batches. */
export function createFilterBatches(): FilterBatches {
  /** Batches by the columns that are read. */
  const batches = new Map<string, FilterBatch[]>()
  const uses = new Map<string, { readonly batch: FilterBatch; count: number }>()

  function batchFor(watch: SubscriptionPlan): FilterBatch {
    const same = batches.get(watch.columns) ?? []
    batches.set(watch.columns, same)
    const free = same.find(({ plans }) => plans.size < FILTERS_MAX)
    if (free !== undefined) return free
    const batch: FilterBatch = { plans: new Map(), evaluated: null }
    same.push(batch)
    return batch
  }

  function remove({ name, columns }: SubscriptionPlan, batch: FilterBatch): void {
    batch.plans.delete(name)
    batch.evaluated = null
    if (batch.plans.size > 0) return
    const left = (batches.get(columns) ?? []).filter(other => other !== batch)
    if (left.length > 0) batches.set(columns, left)
    else batches.delete(columns)
  }

  return {
    add(watch) {
      const known = uses.get(watch.name)
      if (known !== undefined) {
        known.count++
        return
      }
      const batch = batchFor(watch)
      batch.plans.set(watch.name, watch)
      batch.evaluated = null
      uses.set(watch.name, { batch, count: 1 })
    },
    delete(watch) {
      const use = uses.get(watch.name)
      if (use === undefined || --use.count > 0) return
      uses.delete(watch.name)
      remove(watch, use.batch)
    },
    evaluated(names) {
      return [...batches.values()].flat().flatMap(batch => {
        const wanted = [...batch.plans.values()].filter(({ name }) => names.has(name))
        if (wanted.length < batch.plans.size) return evaluateTogether(wanted)
        batch.evaluated ??= evaluateTogether(wanted)
        return batch.evaluated
      })
    },
  }
}

/** Builds one statement for all plans, or several if a statement limit refuses one. */
function evaluateTogether(plans: readonly SubscriptionPlan[]): readonly EvaluatedPlans[] {
  const [first, ...others] = plans
  if (first === undefined) return []
  if (others.length === 0) return [{ evaluation: first.evaluation, names: [first.name] }]
  try {
    return [{ evaluation: first.together(others), names: plans.map(({ name }) => name) }]
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    const half = Math.ceil(plans.length / 2)
    return [...evaluateTogether(plans.slice(0, half)), ...evaluateTogether(plans.slice(half))]
  }
}

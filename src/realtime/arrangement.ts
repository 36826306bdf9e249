/**
 * Which filters share a statement. Each keeps its place while it is there, so that subscriptions that come and go change the text of one statement and leave the
 * others prepared.
 */
import { GatewayError } from '../errors.ts'
import { FILTERS_MAX } from './evaluation.ts'
import type { Evaluated } from './look.ts'
import type { Watch } from './watch.ts'

export interface Arrangement {
  /** Each call is taken back by one of `delete`. */
  add(watch: Watch): void
  delete(watch: Watch): void
  /** Statements for these, by their names. */
  evaluated(names: ReadonlySet<string>): readonly Evaluated[]
}

interface Slot {
  readonly watches: Map<string, Watch>
  /** Of all of them; null: not planned yet. */
  evaluated: readonly Evaluated[] | null
}

export function createArrangement(): Arrangement {
  /** By the columns that are read. */
  const slots = new Map<string, Slot[]>()
  const places = new Map<string, { readonly slot: Slot; count: number }>()

  function placeFor(watch: Watch): Slot {
    const same = slots.get(watch.columns) ?? []
    slots.set(watch.columns, same)
    const free = same.find(({ watches }) => watches.size < FILTERS_MAX)
    if (free !== undefined) return free
    const slot: Slot = { watches: new Map(), evaluated: null }
    same.push(slot)
    return slot
  }

  function remove({ name, columns }: Watch, slot: Slot): void {
    slot.watches.delete(name)
    slot.evaluated = null
    if (slot.watches.size > 0) return
    const left = (slots.get(columns) ?? []).filter(other => other !== slot)
    if (left.length > 0) slots.set(columns, left)
    else slots.delete(columns)
  }

  return {
    add(watch) {
      const known = places.get(watch.name)
      if (known !== undefined) {
        known.count++
        return
      }
      const slot = placeFor(watch)
      slot.watches.set(watch.name, watch)
      slot.evaluated = null
      places.set(watch.name, { slot, count: 1 })
    },
    delete(watch) {
      const place = places.get(watch.name)
      if (place === undefined || --place.count > 0) return
      places.delete(watch.name)
      remove(watch, place.slot)
    },
    evaluated(names) {
      return [...slots.values()].flat().flatMap(slot => {
        const wanted = [...slot.watches.values()].filter(({ name }) => names.has(name))
        if (wanted.length < slot.watches.size) return together(wanted)
        slot.evaluated ??= together(wanted)
        return slot.evaluated
      })
    },
  }
}

/** What is refused together, by a limit on statements, is evaluated in parts. */
function together(watches: readonly Watch[]): readonly Evaluated[] {
  const [first, ...others] = watches
  if (first === undefined) return []
  if (others.length === 0) return [{ evaluation: first.evaluation, names: [first.name] }]
  try {
    return [{ evaluation: first.together(others), names: watches.map(({ name }) => name) }]
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    const half = Math.ceil(watches.length / 2)
    return [...together(watches.slice(0, half)), ...together(watches.slice(half))]
  }
}

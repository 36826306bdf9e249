/**
 * The one cache of plans: what was worked out for a shape of request, or for a text of the query language, serves the next one for callers with the same
 * rights. A new catalogue begins with nothing.
 *
 * Shapes are made by callers, so there is an end to plans, and where it is reached, whoever had most of them made loses one: a tenant that sends new shapes
 * all the time pushes out its own plans, and never those of tenants that have made fewer.
 */
import type { View } from '../access/rights.ts'
import type { Catalog } from '../catalog/model.ts'
import { callerKey } from '../limits/budget.ts'

/** Plans of all doors. */
const PLANS_MAX = 10_000

/** All keys and statements together: the statement of a short request that embeds a lot may be a thousand times as long. */
const CHARACTERS_MAX = 64 * 1024 * 1024

/** A plan larger than this is not kept: one caller's giant shapes would push out their own ordinary ones. */
const ONE_PLAN_CHARACTERS_MAX = 128 * 1024

/** Plans that were asked for since, and are passed over when one has to go; bounds what that takes. */
const PASSED_OVER_MAX = 8

/** What plans are for. Each has keys of its own. */
export const PLAN_KINDS = [
  'row',
  'list',
  'write',
  'call',
  'text',
  'live query',
  // What a whole request came to, its values included.
  'row request',
  'list request',
] as const

export type PlanKind = (typeof PLAN_KINDS)[number]

/** Whose request made a plan. */
export interface PlanOwner {
  readonly tenantId: string
  readonly userId: string
}

export interface Plans<T> {
  /** What is kept under `key` for callers who see this; `make` is called where nothing is, and what it throws is not kept. */
  of(owner: PlanOwner, view: View, key: string, make: () => T): T
}

export interface PlanCache {
  /** `charactersOf`: how large what is kept is, besides its key. */
  plans<T extends object>(kind: PlanKind, charactersOf: (plan: T) => number): Plans<T>
  stats(): PlanStats
}

export interface PlanStats {
  readonly hits: Readonly<Record<PlanKind, number>>
  readonly misses: Readonly<Record<PlanKind, number>>
  /** Plans that had to go for others. */
  readonly evictions: number
  readonly entries: number
  /** Of keys and statements. */
  readonly characters: number
}

export interface PlanBounds {
  readonly plansMax: number
  readonly charactersMax: number
}

interface Entry {
  readonly key: string
  readonly plan: object
  readonly characters: number
  /** Since it was passed over last. */
  asked: boolean
}

/** What one tenant, or user without one, had made; the oldest first. */
interface Holding {
  readonly name: string
  readonly entries: Set<Entry>
  characters: number
}

const ALL: PlanBounds = { plansMax: PLANS_MAX, charactersMax: CHARACTERS_MAX }

export function createPlanCache({ plansMax, charactersMax }: PlanBounds = ALL): PlanCache {
  const hits = zeros()
  const misses = zeros()
  let evictions = 0
  let catalog: Catalog | null = null
  /** A request may end under the catalogue it began with. */
  const outdated = new WeakSet<Catalog>()
  let entries = new Map<string, Entry>()
  let holdings = new Map<string, Holding>()
  let characters = 0

  /** Null: of a catalogue that another one has followed, nothing is kept any more. */
  function entriesOf(current: Catalog): Map<string, Entry> | null {
    if (current === catalog) return entries
    if (outdated.has(current)) return null
    if (catalog !== null) outdated.add(catalog)
    catalog = current
    entries = new Map()
    holdings = new Map()
    characters = 0
    return entries
  }

  function keep(owner: PlanOwner, entry: Entry): void {
    if (entry.characters > ONE_PLAN_CHARACTERS_MAX) return
    const name = callerKey(owner)
    const holding = holdings.get(name) ?? { name, entries: new Set(), characters: 0 }
    holdings.set(name, holding)
    holding.entries.add(entry)
    holding.characters += entry.characters
    entries.set(entry.key, entry)
    characters += entry.characters
    while (entries.size > plansMax || characters > charactersMax) evict(largest())
  }

  function largest(): Holding {
    let found: Holding | null = null
    let most = -1
    for (const holding of holdings.values()) {
      const share = Math.max(holding.entries.size / plansMax, holding.characters / charactersMax)
      if (share <= most) continue
      most = share
      found = holding
    }
    if (found === null) throw new Error('what is kept was made by somebody')
    return found
  }

  /** The oldest, unless it was asked for since: those get another chance. */
  function evict(holding: Holding): void {
    let passedOver = 0
    for (const entry of holding.entries) {
      holding.entries.delete(entry)
      if (entry.asked && passedOver < PASSED_OVER_MAX) {
        entry.asked = false
        passedOver += 1
        holding.entries.add(entry)
        continue
      }
      entries.delete(entry.key)
      holding.characters -= entry.characters
      characters -= entry.characters
      evictions += 1
      break
    }
    if (holding.entries.size === 0) holdings.delete(holding.name)
  }

  return {
    plans<T extends object>(kind: PlanKind, charactersOf: (plan: T) => number): Plans<T> {
      const prefix = `${kind}\0`
      return {
        of(owner, { catalog: current, rights }, key, make) {
          const kept = entriesOf(current)
          if (kept === null) return make()
          const whole = rights.key + prefix + key
          const found = kept.get(whole)
          if (found !== undefined) {
            hits[kind] += 1
            found.asked = true
            // What has the kind in its key was made by it.
            return found.plan as T
          }
          misses[kind] += 1
          const plan = make()
          if (current === catalog) {
            const size = whole.length + charactersOf(plan)
            keep(owner, { key: whole, plan, characters: size, asked: false })
          }
          return plan
        },
      }
    },
    stats: () => ({ hits: { ...hits }, misses: { ...misses }, evictions, entries: entries.size, characters }),
  }
}

function zeros(): Record<PlanKind, number> {
  return Object.fromEntries(PLAN_KINDS.map(kind => [kind, 0])) as Record<PlanKind, number>
}

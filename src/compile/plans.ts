/**
 * The plan cache: the plan for a request shape or a query text serves later requests of callers with the same
 * rights. A new catalog starts with an empty cache.
 *
 * Callers determine the number of shapes, so the cache is bounded. When it is full, the tenant with the most
 * plans loses one: a tenant that keeps sending new shapes evicts its own plans, never those of tenants with
 * fewer.
 */
import type { View } from '../access/rights.ts'
import type { Catalog } from '../catalog/model.ts'
import { callerKey } from '../limits/budget.ts'

/** Limit on the number of plans of all kinds. */
const PLANS_MAX = 10_000

/**
 * Limit on the characters of all keys and statements. The statement of a short request with many nested
 * tables can be a thousand times as long.
 */
const CHARACTERS_MAX = 64 * 1024 * 1024

/**
 * Limit on the size of a cached plan. Otherwise the giant shapes of a caller would evict its ordinary ones.
 */
const ONE_PLAN_CHARACTERS_MAX = 128 * 1024

/** Limit on the recently used plans that are skipped during one eviction. */
const PASSED_OVER_MAX = 8

/** The kinds of plans. Each kind has separate keys. */
export const PLAN_KINDS = [
  'row',
  'list',
  'write',
  'call',
  'text',
  'live query',
  'subscription',
  // The plans of whole requests, values included.
  'row request',
  'list request',
  // The statements of requests in PostgREST's dialect.
  'postgrest',
] as const

/** The kind of a plan. */
export type PlanKind = (typeof PLAN_KINDS)[number]

/** The caller whose request made a plan. */
export interface PlanOwner {
  readonly tenantId: string
  readonly userId: string
}

/** The cached plans of one kind. */
export interface Plans<T> {
  /**
   * The plan under `key` for callers with this view. If it is missing, `make` is called and its result
   * cached, unless it throws.
   */
  of(owner: PlanOwner, view: View, key: string, make: () => T): T
}

/** The plan cache. */
export interface PlanCache {
  /** The plans of one kind. `charactersOf` is the size of a plan without its key. */
  plans<T extends object>(kind: PlanKind, charactersOf: (plan: T) => number): Plans<T>
  stats(): PlanStats
}

/** Statistics of the plan cache. */
export interface PlanStats {
  readonly hits: Readonly<Record<PlanKind, number>>
  readonly misses: Readonly<Record<PlanKind, number>>
  /** The number of plans evicted for others. */
  readonly evictions: number
  readonly entries: number
  /** The size of keys and statements. */
  readonly characters: number
}

/** Limits of the plan cache. */
export interface PlanBounds {
  readonly plansMax: number
  readonly charactersMax: number
}

interface Entry {
  readonly key: string
  readonly plan: object
  readonly characters: number
  /** True if the plan was used since it was last skipped. */
  wasUsed: boolean
}

/** The plans made by one tenant, or by one user without a tenant, oldest first. */
interface Holding {
  readonly name: string
  readonly entries: Set<Entry>
  characters: number
}

const ALL: PlanBounds = { plansMax: PLANS_MAX, charactersMax: CHARACTERS_MAX }

/** Creates the plan cache. */
export function createPlanCache({ plansMax, charactersMax }: PlanBounds = ALL): PlanCache {
  const hits = zeros()
  const misses = zeros()
  let evictions = 0
  let catalog: Catalog | null = null
  /** A request can finish with the catalog it started with, after a new one was loaded. */
  const outdated = new WeakSet<Catalog>()
  let entries = new Map<string, Entry>()
  let holdings = new Map<string, Holding>()
  let characters = 0

  /** The plans of a catalog, or null for an outdated catalog, for which nothing is cached. */
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
    if (found === null) throw new Error('a cached plan must have an owner')
    return found
  }

  /** Evicts the oldest plan that was not used since it was last skipped. */
  function evict(holding: Holding): void {
    let passedOver = 0
    for (const entry of holding.entries) {
      holding.entries.delete(entry)
      if (entry.wasUsed && passedOver < PASSED_OVER_MAX) {
        entry.wasUsed = false
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
            found.wasUsed = true
            // The kind is part of the key, so the plan has the type of the kind.
            return found.plan as T
          }
          misses[kind] += 1
          const plan = make()
          if (current === catalog) {
            const size = whole.length + charactersOf(plan)
            keep(owner, { key: whole, plan, characters: size, wasUsed: false })
          }
          return plan
        },
      }
    },
    stats: () => ({ hits: { ...hits }, misses: { ...misses }, evictions, entries: entries.size, characters }),
  }
}

/** The statistics of two caches together. */
export function addPlanStats(a: PlanStats, b: PlanStats): PlanStats {
  const added = (one: PlanStats['hits'], other: PlanStats['hits']) =>
    Object.fromEntries(PLAN_KINDS.map(kind => [kind, one[kind] + other[kind]])) as Record<PlanKind, number>
  return {
    hits: added(a.hits, b.hits),
    misses: added(a.misses, b.misses),
    evictions: a.evictions + b.evictions,
    entries: a.entries + b.entries,
    characters: a.characters + b.characters,
  }
}

function zeros(): Record<PlanKind, number> {
  return Object.fromEntries(PLAN_KINDS.map(kind => [kind, 0])) as Record<PlanKind, number>
}

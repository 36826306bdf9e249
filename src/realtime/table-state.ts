/**
 * The state of a table that is subscribed to: its capture source, its visibility groups, and its visibility
 * rules.
 */
import type { Catalog, Table } from '../catalog/model.ts'
import { GatewayError } from '../errors.ts'
import type { Database } from '../postgres/types.ts'
import { toGatewayError } from '../run/errors.ts'
import {
  type CapturedName,
  type CaptureSources,
  nameOf,
  type SourceListener,
  type SourceSubscription,
} from './capture-sources.ts'
import type { ChangeEvent } from './change-event.ts'
import {
  type ChangeSource,
  createGatewayWriteSource,
  createLogSource,
  joinedRoutes,
  routesOfNotification,
} from './change-source.ts'
import { type Coalescer, createCoalescer } from './coalescer.ts'
import type { ChangeLog } from './log.ts'
import type { OldImageStore } from './old-images.ts'
import type { RealtimeLimits } from './quotas.ts'
import type { Routes } from './route.ts'
import { FINGERPRINTS, type Guard, readTableRules, type TableRules, takeRole } from './table-rules.ts'
import type { ResyncReason, VisibilityGroup } from './visibility-group.ts'
import { createVisibilityGroups, type VisibilityGroups } from './visibility-groups.ts'

/** How long to wait until changes are received; a write that began earlier may delay it. */
const LISTEN_MS_MAX = 10_000

/**
 * Minimum interval between checks of the policies after a change that concerned no group: nothing else would
 * notice that they have changed.
 */
const VERIFY_INTERVAL_MS = 1_000

/** Reasons for a resync of all subscribers that a single write can cause. */
const COALESCED: ReadonlySet<ResyncReason> = new Set(['bulk', 'dependency'])

/** The dependencies of the state of a table. */
export interface TableStateParts {
  readonly origin: string
  readonly sources: CaptureSources
  readonly log: ChangeLog
  readonly catalog: () => Catalog
  readonly database: Database
  readonly rowsBefore: OldImageStore
  readonly limits: Pick<RealtimeLimits, 'unroutedResyncIntervalMs'>
  readonly now: () => number
}

/** A resync of the subscriptions that began before `before`. */
interface PostponedResync {
  readonly reason: ResyncReason
  readonly before: number
}

/** The table of a state, and the role of its subscribers' sessions; null for that of the connection. */
export interface WatchedTable extends CapturedName {
  readonly role: string | null
}

/** The state of a table that is subscribed to. */
export interface TableState {
  /** `schema.name`. */
  readonly name: string
  /** The visibility groups by name. */
  readonly groups: VisibilityGroups
  readonly source: ChangeSource
  /** Resolves once every later change is received. Rejects with `UNAVAILABLE`. */
  listening(): Promise<void>
  /** Tables that the visibility rules depend on and whose changes are not captured, as `schema.name`. */
  uncaptured(): readonly string[]
  /** The visibility rules; null if the table no longer exists. Cached until they are forgotten. */
  rules(table: Table): Promise<TableRules | null>
  /** The rules as last read; null if not read yet. */
  readonly known: TableRules | null
  /** The routing column of a table that guards this one, by resource name; null for others. */
  guardedBy(resource: string): string | null
  forgetRules(): void
  invalidate(reason: ResyncReason): void
  /**
   * True if the subscription with this number will be asked to resync: its changes since the reason are
   * incomplete.
   */
  awaitsResync(subscription: number, group: VisibilityGroup | null): boolean
  /** A subscription has moved to another group, which takes over a postponed resync. */
  moved(from: VisibilityGroup, to: VisibilityGroup): void
  /**
   * Adapts to changed capture of this table or of its dependencies. Rejects if changes can no longer be
   * received.
   */
  recapture(): Promise<void>
  close(): void
}

/** The events of the state of a table. */
export interface TableStateEvents {
  /** The policies no longer match `known`. */
  readonly onStale: () => void
  /** A resync of all subscribers was postponed and merged. */
  readonly onMerge: () => void
  /** The number of subscriptions so far; later ones do not need a postponed resync. */
  readonly subscribed: () => number
}

/** Creates the state of a table and starts receiving its changes. */
export function createTableState(named: WatchedTable, parts: TableStateParts & TableStateEvents): TableState {
  const { origin, sources, log, catalog, database, rowsBefore, onStale } = parts
  const groups = createVisibilityGroups()
  /** For changes of guards, which concern some groups. */
  const ofGroups = new WeakMap<VisibilityGroup, Coalescer<PostponedResync>>()
  const allGroups = createCoalescer<PostponedResync>(parts.limits.unroutedResyncIntervalMs, {
    ...{ now: parts.now, onPostpone: parts.onMerge },
    run: ({ reason }) => void groups.resync(reason, null),
    runPostponed: ({ reason, before }) => groups.resyncEarlier(reason, before),
  })
  let verifying: NodeJS.Timeout | null = null
  let verifiedAt = Number.NEGATIVE_INFINITY
  let oid = 0
  let rules: Promise<TableRules | null> | null = null
  let known: TableRules | null = null
  let dependencies: readonly CapturedName[] = []
  let dependencySubscriptions: readonly SourceSubscription[] = []
  let closed = false
  let source = createSource()
  let subscription = sources.listen(named, source)
  let captures = captured()

  function createSource(): ChangeSource {
    const to = {
      add(changes: readonly ChangeEvent[]) {
        if (groups.distribute(changes) === 0) verifySoon()
      },
      resync,
      routeBy: () => known?.route?.column ?? null,
      isPlain: () => known?.columns != null,
      dependencies: () =>
        new Map(dependencies.filter(isCaptured).map(({ name }) => [name, guardOf(name)?.route.column ?? null])),
    }
    return sources.captureOf(named) === 'trigger'
      ? createLogSource(named.name, log, to)
      : createGatewayWriteSource({ table: named.resource, origin, rowsBefore, ...to })
  }

  function isCaptured(table: CapturedName): boolean {
    return sources.captureOf(table) === 'trigger'
  }

  function guardOf(name: string): Guard | null {
    return known?.guards.get(name) ?? null
  }

  /** The coalescer of a group, for changes that its own tenant can cause as often as it likes. */
  function coalescerOf(group: VisibilityGroup): Coalescer<PostponedResync> {
    const found = ofGroups.get(group)
    if (found !== undefined) return found
    const coalescer = createCoalescer<PostponedResync>(parts.limits.unroutedResyncIntervalMs, {
      ...{ now: parts.now, onPostpone: parts.onMerge },
      run: ({ reason }) => group.resync(reason),
      runPostponed: ({ reason, before }) => group.resyncEarlier(reason, before),
    })
    ofGroups.set(group, coalescer)
    return coalescer
  }

  /** A guard has changed. The other groups cost nothing, except that the policies are compared. */
  function resyncGuarded(routes: Routes): void {
    for (const group of groups.concernedBy(routes))
      coalescerOf(group).call({ reason: 'dependency', before: parts.subscribed() })
    verifySoon()
  }

  function resync(reason: ResyncReason, routes: Routes | null = null): void {
    if (reason === 'dependency' && routes !== null) {
      resyncGuarded(routes)
      return
    }
    // Writes of other tenants can cause these as often as they like, so they are coalesced.
    if (routes === null && COALESCED.has(reason)) allGroups.call({ reason, before: parts.subscribed() })
    else if (groups.resync(reason, routes) === 0) verifySoon()
  }

  function verifySoon(): void {
    if (verifying !== null || closed || groups.size === 0) return
    const dueAt = verifiedAt + VERIFY_INTERVAL_MS
    verifying = setTimeout(
      () => {
        // Changes from now on are followed by another check.
        verifying = null
        verifiedAt = performance.now()
        void verify()
      },
      Math.max(0, dueAt - performance.now()),
    )
    verifying.unref()
  }

  /** Checks whether the policies have changed. Never rejects. */
  async function verify(): Promise<void> {
    const rulesThen = known
    try {
      const { oids = [], fingerprint = '' } = rulesThen?.readPolicies ?? {}
      const parameters = [String(oid), `{${oids.join(',')}}`]
      const ask = [...takeRole(named.role), { text: FINGERPRINTS, parameters }]
      const [own, read] = (await database.run(ask).result).at(-1)?.rows[0] ?? []
      const isSame = own?.toString() === known?.fingerprint && read?.toString() === fingerprint
      if (rulesThen === known && !isSame) onStale()
    } catch {
      // The database is unavailable.
      verifySoon()
    }
  }

  function listenToDependencies(of: TableRules | null): Promise<unknown> {
    const before = dependencySubscriptions
    const { reads = [], views = [], inheriting = [], writtenBy = [] } = of ?? {}
    // For a captured table it does not matter under which name it is written.
    const names = [
      reads.every(name => isCaptured({ name, resource: '' })) ? [] : views,
      source.capture === 'trigger' ? [] : writtenBy,
    ]
    dependencies = namedIn(catalog(), new Set([...reads, ...inheriting, ...names.flat()]))
    dependencySubscriptions = dependencies
      .filter(table => table.resource !== '' || isCaptured(table))
      .map(table => sources.listen(table, invalidating(source, of?.guards.get(table.name) ?? null, table.name)))
    captures = captured()
    for (const one of before) one.close()
    return Promise.all(dependencySubscriptions.map(({ ready }) => ready))
  }

  /** The capture of this table and of each dependency. */
  function captured(): string {
    return [named, ...dependencies].map(sources.captureOf).join()
  }

  async function readRules(table: Table): Promise<TableRules | null> {
    const read = await readTableRules(database, table, named.role)
    oid = table.oid
    await within(listenToDependencies(read), LISTEN_MS_MAX)
    known = read
    return read
  }

  return {
    name: named.name,
    groups,
    get source() {
      return source
    },
    uncaptured: () =>
      dependencies
        .filter(table => !isCaptured(table) && known?.views.includes(table.name) !== true)
        .map(({ name }) => name),
    listening: () => within(subscription.ready, LISTEN_MS_MAX),
    rules(table) {
      rules ??= readRules(table).catch(error => {
        rules = null
        throw toGatewayError(error, { statements: [], access: 'read only' })
      })
      return rules
    },
    get known() {
      return known
    },
    guardedBy(resource) {
      const of = dependencies.find(table => table.resource === resource)
      return of === undefined ? null : (guardOf(of.name)?.route.column ?? null)
    },
    forgetRules() {
      rules = null
    },
    awaitsResync(subscription, group) {
      const own = group === null ? null : (ofGroups.get(group)?.postponed ?? null)
      return subscription <= Math.max(allGroups.postponed?.before ?? 0, own?.before ?? 0)
    },
    moved(from, to) {
      const postponed = ofGroups.get(from)?.postponed ?? null
      if (postponed !== null) coalescerOf(to).call(postponed)
    },
    invalidate: reason => source.invalidate(reason),
    async recapture() {
      if (closed || captured() === captures) return
      const before = subscription
      if (sources.captureOf(named) !== source.capture) {
        source = createSource()
        subscription = sources.listen(named, source)
      }
      const current = source
      try {
        await Promise.all([subscription.ready, listenToDependencies(known)])
      } finally {
        if (before !== subscription) before.close()
      }
      // Writes between the old and the new source were not reported.
      if (current === source) source.invalidate('schema changed')
    },
    close() {
      closed = true
      allGroups.close()
      if (verifying !== null) clearTimeout(verifying)
      for (const one of [subscription, ...dependencySubscriptions]) one.close()
    },
  }
}

/**
 * A change to a dependency may affect any row, and any group: the subquery of the policy decides which rows
 * of the dependency it uses, so a row of one tenant there can show rows here to another tenant. The exception
 * is a guard, of which each caller's policies see only the rows that have the caller's value in a column.
 */
function invalidating(source: ChangeSource, guard: Guard | null, name: string): SourceListener {
  const column = guard?.route.column ?? null
  const invalidate = (routes: Routes | null) => {
    const isKnown = routes !== null && routes.column === column
    source.invalidate('dependency', isKnown ? { column: guardKey(name), values: routes.values } : null)
  }
  return {
    notification: payload => invalidate(guard === null ? null : routesOfNotification(payload, guard.isPlain)),
    changed: changes => invalidate(joinedRoutes(changes.map(({ routes }) => routes))),
    // Any other reason than a bulk change means that changes are unknown.
    invalidate: (reason, routes = null) => invalidate(reason === 'bulk' ? routes : null),
    gap: () => source.invalidate('connection lost'),
    unavailable() {},
    routeBy: () => column,
  }
}

/** The name of a guard's routing column, which differs from those of the table's own columns. */
export function guardKey(name: string): string {
  return `${name} (guard)`
}

/** Tables by `schema.name`; the resource is empty for tables that are not resources. */
function namedIn({ tables }: Catalog, names: ReadonlySet<string>): readonly CapturedName[] {
  const resources = new Map([...tables.values()].map(table => [nameOf(table), table.resource]))
  return [...names].map(name => ({ name, resource: resources.get(name) ?? '' }))
}

/**
 * Waits until changes are received, for at most `ms`.
 * @throws GatewayError `UNAVAILABLE`
 */
export async function within(listening: Promise<unknown>, ms: number): Promise<void> {
  const unavailable = (cause?: unknown) =>
    new GatewayError('UNAVAILABLE', 'the gateway cannot receive changes at the moment; try again later', { cause })
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(unavailable()), ms)
  })
  try {
    await Promise.race([listening, timeout])
  } catch (error) {
    throw error instanceof GatewayError ? error : unavailable(error)
  } finally {
    clearTimeout(timer)
  }
}

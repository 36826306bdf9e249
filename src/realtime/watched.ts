/** A table that somebody watches: where its changes are heard of, who shares what is read of them, and the rules by which they are shown. */
import type { Catalog, Table } from '../catalog/model.ts'
import { GatewayError } from '../errors.ts'
import type { Database } from '../postgres/types.ts'
import { toGatewayError } from '../run/errors.ts'
import type { Change } from './change.ts'
import { createLogFeed, createNoticeFeed, type Feed } from './feed.ts'
import type { ResyncReason } from './group.ts'
import { createGroups, type Groups } from './groups.ts'
import type { ChangeLog } from './log.ts'
import { createMerged } from './merged.ts'
import type { RealtimeLimits } from './quotas.ts'
import type { Routes } from './route.ts'
import type { RowsBeforeStore } from './rows-before.ts'
import type { Heard, Named, SourceHearer, Sources } from './sources.ts'
import { FINGERPRINT, readTableRules, type TableRules } from './table-rules.ts'

/** Until changes are heard of; a write that began before may keep that waiting. */
const LISTEN_MS_MAX = 10_000

/** A change that concerns no group is followed by a look at the policies, at most this often: nobody else notices that they are others now. */
const VERIFY_INTERVAL_MS = 1_000

/** Reasons for everybody to read again that a single write can be. */
const MERGED: ReadonlySet<ResyncReason> = new Set(['bulk', 'dependency'])

export interface WatchedParts {
  readonly origin: string
  readonly sources: Sources
  readonly log: ChangeLog
  readonly catalog: () => Catalog
  readonly database: Database
  readonly rowsBefore: RowsBeforeStore
  readonly limits: Pick<RealtimeLimits, 'unroutedResyncIntervalMs'>
  readonly now: () => number
}

export interface Watched {
  /** `schema.name`. */
  readonly name: string
  /** By what they see. */
  readonly groups: Groups
  readonly feed: Feed
  /** Resolves once every later change is heard of; rejects with `UNAVAILABLE`. */
  listening(): Promise<void>
  /** What decides who sees which row; null: the table is gone. Kept until it is forgotten. */
  rules(table: Table): Promise<TableRules | null>
  /** As they were read last; null while nobody knows. */
  readonly known: TableRules | null
  forgetRules(): void
  doubt(reason: ResyncReason): void
  /** Its changes, or those of what it depends on, may be captured in another way than before. Rejects if they cannot be heard of any more. */
  recapture(): Promise<void>
  close(): void
}

export interface WatchedEvents {
  /** The policies are not those of `known` any more. */
  readonly onStale: () => void
  /** Everybody was to read again, and will be told so later. */
  readonly onMerge: () => void
  /** How many have subscribed so far: those who do later need not be told of what was before. */
  readonly subscribed: () => number
}

export function createWatched(named: Named, parts: WatchedParts & WatchedEvents): Watched {
  const { origin, sources, log, catalog, database, rowsBefore, onStale } = parts
  const groups = createGroups()
  const everybody = createMerged<{ readonly reason: ResyncReason; readonly before: number }>(
    parts.limits.unroutedResyncIntervalMs,
    {
      ...{ now: parts.now, onMerge: parts.onMerge },
      make: ({ reason }) => void groups.resync(reason, null),
      makeLate: ({ reason, before }) => groups.remind(reason, before),
    },
  )
  let verifying: NodeJS.Timeout | null = null
  let verifiedAt = Number.NEGATIVE_INFINITY
  let oid = 0
  let rules: Promise<TableRules | null> | null = null
  let known: TableRules | null = null
  let dependences: readonly Named[] = []
  let dependencesHeard: readonly Heard[] = []
  let closed = false
  let feed = createFeed()
  let heard = sources.hear(named, feed)
  let captures = captured()

  function createFeed(): Feed {
    const to = {
      add(changes: readonly Change[]) {
        if (groups.distribute(changes) === 0) verifySoon()
      },
      resync,
      routeBy: () => known?.route?.column ?? null,
      isPlain: () => known?.columns != null,
    }
    return sources.captureOf(named) === 'trigger'
      ? createLogFeed(named.name, log, to)
      : createNoticeFeed({ table: named.resource, origin, rowsBefore, ...to })
  }

  function resync(reason: ResyncReason, routes: Routes | null = null): void {
    // Others' writes cause these, as often as they like.
    if (routes === null && MERGED.has(reason)) everybody.call({ reason, before: parts.subscribed() })
    else if (groups.resync(reason, routes) === 0) verifySoon()
  }

  function verifySoon(): void {
    if (verifying !== null || closed || groups.size === 0) return
    const dueAt = verifiedAt + VERIFY_INTERVAL_MS
    verifying = setTimeout(
      () => {
        // What comes from now on is followed by another look.
        verifying = null
        verifiedAt = performance.now()
        void verify()
      },
      Math.max(0, dueAt - performance.now()),
    )
    verifying.unref()
  }

  /** Never rejects. */
  async function verify(): Promise<void> {
    const rulesThen = known
    try {
      const [result] = await database.run([{ text: FINGERPRINT, parameters: [String(oid)] }]).result
      if (rulesThen === known && result?.rows[0]?.[0]?.toString() !== known?.fingerprint) onStale()
    } catch {
      // The database is away.
      verifySoon()
    }
  }

  function depend(of: TableRules | null): Promise<unknown> {
    const before = dependencesHeard
    const { reads = [], views = [], heirs = [], writtenBy = [] } = of ?? {}
    // Where triggers capture a table, it matters no more by which name it is written to.
    const isCaptured = (name: string) => sources.captureOf({ name, resource: '' }) === 'trigger'
    const names = [reads.every(isCaptured) ? [] : views, feed.capture === 'trigger' ? [] : writtenBy]
    dependences = namedIn(catalog(), new Set([...reads, ...heirs, ...names.flat()]))
    dependencesHeard = dependences
      .filter(table => table.resource !== '' || sources.captureOf(table) === 'trigger')
      .map(table => sources.hear(table, doubting(feed)))
    captures = captured()
    for (const one of before) one.close()
    return Promise.all(dependencesHeard.map(({ ready }) => ready))
  }

  /** How each of the tables is captured that it hears of. */
  function captured(): string {
    return [named, ...dependences].map(sources.captureOf).join()
  }

  async function readRules(table: Table): Promise<TableRules | null> {
    const read = await readTableRules(database, table)
    oid = table.oid
    await within(depend(read), LISTEN_MS_MAX)
    known = read
    return read
  }

  return {
    name: named.name,
    groups,
    get feed() {
      return feed
    },
    listening: () => within(heard.ready, LISTEN_MS_MAX),
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
    forgetRules() {
      rules = null
    },
    doubt: reason => feed.doubt(reason),
    async recapture() {
      if (closed || captured() === captures) return
      const before = heard
      if (sources.captureOf(named) !== feed.capture) {
        feed = createFeed()
        heard = sources.hear(named, feed)
      }
      const current = feed
      try {
        await Promise.all([heard.ready, depend(known)])
      } finally {
        if (before !== heard) before.close()
      }
      // What was written between the one and the other nobody told.
      if (current === feed) feed.doubt('schema changed')
    },
    close() {
      closed = true
      everybody.close()
      if (verifying !== null) clearTimeout(verifying)
      for (const one of [heard, ...dependencesHeard]) one.close()
    },
  }
}

/** A change of what it depends on may be a change of anything. */
function doubting(feed: Feed): SourceHearer {
  const doubt = () => feed.doubt('dependency')
  return {
    notice: doubt,
    changed: doubt,
    doubt,
    gap: () => feed.doubt('connection lost'),
    silent() {},
    routeBy: () => null,
  }
}

/** Tables by `schema.name`; those that are no resources have no name of their own. */
function namedIn({ tables }: Catalog, names: ReadonlySet<string>): readonly Named[] {
  const resources = new Map([...tables.values()].map(table => [`${table.schema}.${table.name}`, table.resource]))
  return [...names].map(name => ({ name, resource: resources.get(name) ?? '' }))
}

export async function within(listening: Promise<unknown>, ms: number): Promise<void> {
  const unavailable = (cause?: unknown) =>
    new GatewayError('UNAVAILABLE', 'changes cannot be listened for at the moment; try again', { cause })
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(unavailable()), ms)
  })
  try {
    await Promise.race([listening, late])
  } catch (error) {
    throw error instanceof GatewayError ? error : unavailable(error)
  } finally {
    clearTimeout(timer)
  }
}

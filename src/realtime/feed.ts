/** The changes of one table, given to the groups of those who subscribe to it; and where somebody who was away goes on among them. */

import { bytesOf, parseJsonBody } from '../json/json-body.ts'
import { type Boundary, createBoundary } from './boundary.ts'
import type { Change, Operation } from './change.ts'
import type { ResyncReason } from './group.ts'
import { createHistory } from './history.ts'
import type { ChangeLog } from './log.ts'
import { decodeNotice, type Notice } from './notice.ts'
import { hashed, type Routes } from './route.ts'
import type { RowsBeforeStore } from './rows-before.ts'
import type { Snapshot } from './snapshot.ts'
import type { CaptureKind, SourceHearer } from './sources.ts'

/** Notifications that wait for one before them. */
const NOTICES_MAX = 10_000

export interface Feed extends SourceHearer {
  readonly capture: CaptureKind
  /** The place of the last change that was heard of, to come back to. */
  token(): string
  /** Where somebody begins who is given every change from now on, and has read a snapshot of the database a moment ago. */
  boundary(snapshot: Snapshot): Boundary
  /** What happened since; null where that is not known. */
  since(token: string): Promise<Missed | null>
}

export interface Missed {
  readonly changes: readonly Change[]
  /** Where they end, as far as that is known. */
  readonly boundary: Boundary | null
}

export interface FeedParts {
  /** What is to be looked at. */
  readonly add: (changes: readonly Change[]) => void
  /** `routes`: those whom it concerns; by default everybody. */
  readonly resync: (reason: ResyncReason, routes?: Routes | null) => void
  /** The column that tells whom a change may concern, where there is one. */
  readonly routeBy: () => string | null
}

/** Of a table that triggers capture: the log remembers. `table`: `schema.name`. */
export function createLogFeed(
  table: string,
  log: Pick<ChangeLog, 'token' | 'boundary' | 'since'>,
  { add, resync, routeBy }: FeedParts,
): Feed {
  return {
    capture: 'trigger',
    token: () => log.token(),
    boundary: snapshot => log.boundary(snapshot),
    since: token => log.since(table, token),
    changed: add,
    doubt: resync,
    silent() {},
    notice() {},
    gap() {},
    routeBy,
  }
}

export interface NoticeFeedParts extends FeedParts {
  /** Resource name. */
  readonly table: string
  /** Of this process. */
  readonly origin: string
  readonly rowsBefore: Pick<RowsBeforeStore, 'of'>
  /** Columns of a row change only where a write assigns them: no trigger does, and none is generated. */
  readonly isPlain: () => boolean
}

/** Of a table whose changes are known by what gateways tell of their writes: this process remembers the last of them. */
export function createNoticeFeed(parts: NoticeFeedParts): Feed {
  const { table, origin, rowsBefore, add, resync, routeBy, isPlain } = parts
  const history = createHistory()
  let notices: string[] = []
  let taking = false

  function doubt(reason: ResyncReason): void {
    history.forget()
    resync(reason)
  }

  async function take(payload: string): Promise<void> {
    const notice = decodeNotice(payload)
    if (notice === null || notice.rows === null) {
      history.forget()
      resync('bulk', notice === null ? null : routesOfMany(notice))
      return
    }
    const { txid, assigned, at } = notice
    const isOurs = notice.origin === origin
    const rows = notice.hasBefore && isOurs ? await rowsBefore.of(txid, table) : null
    const changes = notice.rows.map(({ operation, key, route }): Change => {
      const seq = history.next()
      const place = { seq, from: history.tokenAt(seq - 1), to: history.tokenAt(seq) }
      const before = rows?.get(key) ?? null
      const routes = routesOf(notice, { operation, route, before })
      return { ...place, operation, key, before, assigned, at, txid, routes }
    })
    history.add(changes)
    add(changes)
  }

  /** Whether the column that says whom a row concerns is what it was before. */
  function keeps({ by, assigned }: Notice): boolean {
    return by !== null && assigned !== null && !assigned.includes(by) && isPlain()
  }

  /** Null: they may concern anybody. */
  function routesOfMany(notice: Notice): Routes | null {
    const { by, whom, assigned } = notice
    if (by === null || whom === null) return null
    // Rows that came or went as a whole had no other value.
    return assigned === null || keeps(notice) ? { column: by, values: whom.map(hashed) } : null
  }

  /** Null: it may concern anybody. */
  function routesOf(
    notice: Notice,
    { operation, route, before }: { operation: Operation; route: string | null; before: string | null },
  ): Routes | null {
    const { by } = notice
    if (by === null || route === null) return null
    const values = [hashed(route)]
    // What was inserted was nobody's before, and of what is deleted this is the value before.
    if (operation === 'INSERT' || operation === 'DELETE') return { column: by, values }
    const was = before === null ? null : memberOf(before, by)
    if (was !== null) return { column: by, values: [...values, was] }
    return keeps(notice) ? { column: by, values } : null
  }

  async function takeAll(): Promise<void> {
    taking = true
    for (let next = notices.shift(); next !== undefined; next = notices.shift()) await take(next)
    taking = false
  }

  return {
    capture: 'gateway',
    token: history.token,
    boundary: snapshot => createBoundary(snapshot, history.token()),
    since(token) {
      const changes = history.since(token)
      return Promise.resolve(changes === null ? null : { changes, boundary: null })
    },
    notice(payload) {
      if (notices.length >= NOTICES_MAX) {
        notices = []
        doubt('too many changes')
        return
      }
      notices.push(payload)
      if (!taking) void takeAll()
    },
    gap: () => doubt('connection lost'),
    doubt,
    changed() {},
    silent() {},
    routeBy,
  }
}

/** A member of a JSON object, as JSON text. */
function memberOf(row: string, name: string): string | null {
  const whole = parseJsonBody(Buffer.from(row), Number.POSITIVE_INFINITY)
  const member = whole.kind === 'object' ? whole.members.find(({ key }) => key === name) : undefined
  return member === undefined || whole.kind !== 'object' ? null : bytesOf(whole, member).toString()
}

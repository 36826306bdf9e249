/** The changes of one table, given to the groups of those who subscribe to it; and where somebody who was away goes on among them. */
import { type Boundary, createBoundary } from './boundary.ts'
import type { Change } from './change.ts'
import type { ResyncReason } from './group.ts'
import { createHistory } from './history.ts'
import type { ChangeLog } from './log.ts'
import { decodeNotice } from './notice.ts'
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
  readonly resync: (reason: ResyncReason) => void
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
    token: log.token,
    boundary: log.boundary,
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
}

/** Of a table whose changes are known by what gateways tell of their writes: this process remembers the last of them. */
export function createNoticeFeed({ table, origin, rowsBefore, add, resync, routeBy }: NoticeFeedParts): Feed {
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
      doubt('bulk')
      return
    }
    const { txid, assigned, at } = notice
    const isOurs = notice.origin === origin
    const rows = notice.hasBefore && isOurs ? await rowsBefore.of(txid, table) : null
    const changes = notice.rows.map(({ operation, key }): Change => {
      const seq = history.next()
      const place = { seq, from: history.tokenAt(seq - 1), to: history.tokenAt(seq) }
      return { ...place, operation, key, before: rows?.get(key) ?? null, assigned, at, txid, routes: null }
    })
    history.add(changes)
    add(changes)
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

/** The changes of one table: heard of, numbered, and given to the groups of those who subscribe to it. */
import type { Change } from './change.ts'
import type { Group, ResyncReason } from './group.ts'
import { createHistory, type History } from './history.ts'
import { decodeNotice } from './notice.ts'
import type { RowsBeforeStore } from './rows-before.ts'

/** Notifications that wait for one before them. */
const NOTICES_MAX = 10_000

export interface Feed {
  readonly history: History
  /** By what they see. */
  readonly groups: Map<string, Group>
  /** A notification of this table. They are taken one after the other. */
  hear(payload: string): void
  /** Something may have changed that nobody can name. */
  doubt(reason: ResyncReason): void
}

export interface FeedParts {
  /** Resource name. */
  readonly table: string
  /** Of this process. */
  readonly origin: string
  readonly rowsBefore: Pick<RowsBeforeStore, 'of'>
}

export function createFeed({ table, origin, rowsBefore }: FeedParts): Feed {
  const history = createHistory()
  const groups = new Map<string, Group>()
  let notices: string[] = []
  let taking = false

  function doubt(reason: ResyncReason): void {
    history.forget()
    for (const group of groups.values()) group.resync(reason)
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
    const changes = notice.rows.map(
      ({ operation, key }): Change => ({
        ...{ seq: history.next(), operation, key, before: rows?.get(key) ?? null },
        ...{ assigned, at, txid },
      }),
    )
    history.add(changes)
    for (const group of groups.values()) group.add(changes)
  }

  async function takeAll(): Promise<void> {
    taking = true
    for (let next = notices.shift(); next !== undefined; next = notices.shift()) await take(next)
    taking = false
  }

  return {
    history,
    groups,
    hear(payload) {
      if (notices.length >= NOTICES_MAX) {
        notices = []
        doubt('too many changes')
        return
      }
      notices.push(payload)
      if (!taking) void takeAll()
    },
    doubt,
  }
}

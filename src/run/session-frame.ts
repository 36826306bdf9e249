/**
 * The commands that an entry point adds around the statements of a request: a function that it calls first,
 * the settings that the statements leave for the response, and a rollback at the end.
 */
import type { Identity } from '../identity/identity.ts'
import type { Command, Result } from '../postgres/types.ts'
import type { Access } from './settings.ts'

/** Reads what the statements set for the response. */
const REPLY: Command = {
  text: "SELECT current_setting('response.headers', true), current_setting('response.status', true)",
  parameters: [],
  upkeep: true,
}

/** Discards everything since the last Sync, in an implicit transaction too (PostgreSQL manual, 54.2.3). */
const ROLLBACK: readonly Command[] = [{ text: 'ROLLBACK', parameters: [], upkeep: true }]

const NOTHING: readonly Command[] = []

/** The commands around the statements of one transaction. */
export interface SessionFrame {
  readonly before: readonly Command[]
  /** After the statements, while their settings are still in force. */
  readonly after: readonly Command[]
  /** At the end of the transaction. */
  readonly end: readonly Command[]
  /** The results without those of the frame, of a transaction with `count` commands between. */
  without(results: readonly Result[], count: number): readonly Result[]
}

const NO_FRAME: SessionFrame = { before: NOTHING, after: NOTHING, end: NOTHING, without: results => results }

/** The frame of a caller. `canReply`: false if no statement can set anything for the response. */
export function sessionFrame({ session }: Identity, access: Access, canReply = true): SessionFrame {
  if (session === undefined) return NO_FRAME
  const before: readonly Command[] =
    session.before === null ? NOTHING : [{ text: session.before, parameters: [], upkeep: true }]
  return {
    before,
    after: canReply ? [REPLY] : NOTHING,
    end: session.rollsBack && access === 'read write' ? ROLLBACK : NOTHING,
    without(results, count) {
      const start = 1 + before.length
      const reply = canReply ? results[start + count]?.rows[0] : undefined
      session.replied(reply?.[0]?.toString() ?? null, reply?.[1]?.toString() ?? null)
      if (before.length > 0) return [...results.slice(0, 1), ...results.slice(start, start + count)]
      return results.length <= start + count ? results : results.slice(0, start + count)
    },
  }
}

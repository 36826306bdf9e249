/**
 * The first statement of every transaction: who is asking (docs/guides/your-own-database.md#2-row-level-security), and how long and how far a statement may go.
 *
 * It rides in the same packet as the query it protects. What stands before a Sync is one transaction, so the settings end with it, and if one
 * cannot be set PostgreSQL skips to the Sync and the query cannot run (PostgreSQL manual, 54.2.3): fail-closed by protocol, not by care.
 */
import type { Identity } from '../identity/identity.ts'
import { type SessionSetting, settingsOf } from '../identity/settings.ts'
import { callerKey } from '../limits/budget.ts'
import { encodeParameters } from '../postgres/parameters.ts'
import { PLANNER } from '../postgres/startup.ts'
import type { Command } from '../postgres/types.ts'

/** `install/capture.ts` looks for it. */
const ORIGIN: SessionSetting = ['svc.origin', 'gateway']

/** What the transaction may do besides reading. */
export type Access = 'read only' | 'read write'

export interface SettingsSource {
  /**
   * The command that begins a transaction for `identity`. `workedMs`: how much of the statement timeout earlier transactions of the same request have used up;
   * 0 if absent.
   */
  for(identity: Identity, access: Access, workedMs?: number): Command
  /**
   * As for 'read write', for what certainly writes: its only row and column is the transaction's number, `pg_current_xact_id()`. It says where the write
   * comes from, besides, to what writes down changes for webhooks.
   */
  numbered(identity: Identity, workedMs?: number): Command
  /**
   * Between two statements of a transaction: gives the next one the time that is left, and cancels the transaction if there is none (57014). PostgreSQL's
   * `statement_timeout` starts again with every statement, and does not count while deferred triggers run at the end of a transaction.
   */
  deadline(workedMs?: number): Command
  /** Nothing of the statement timeout is left. */
  isOver(workedMs: number): boolean
}

/** With `preparedStatements` false a pooler is in between, so what a connection begins with elsewhere is set in each transaction. */
export function createSettings({
  statementTimeoutMs,
  preparedStatements = true,
}: {
  readonly statementTimeoutMs: number
  readonly preparedStatements?: boolean
}): SettingsSource {
  const planner: readonly SessionSetting[] = preparedStatements ? [] : PLANNER
  // A transaction that writes takes the mode that the role or database has by default.
  const mode: Readonly<Record<Access, readonly SessionSetting[]>> = {
    'read only': [['transaction_read_only', 'on']],
    'read write': [],
  }
  const source = (access: Access, answer: string, more: readonly SessionSetting[] = []) =>
    encodedOnce(answer, access === 'read only' ? { readsOnly: true } : {}, (identity, workedMs) => [
      ...settingsOf(identity),
      ...mode[access],
      ...more,
      ...planner,
      ['statement_timeout', String(leftOf(statementTimeoutMs, workedMs))],
    ])
  const whole = deadlineOf(statementTimeoutMs)
  const sources = { 'read only': source('read only', ''), 'read write': source('read write', '') }
  return {
    for: (identity, access, workedMs) => sources[access](identity, workedMs),
    numbered: source('read write', 'pg_current_xact_id() ', [ORIGIN]),
    deadline: (workedMs = 0) => (workedMs === 0 ? whole : deadlineOf(leftOf(statementTimeoutMs, workedMs))),
    isOver: workedMs => workedMs >= statementTimeoutMs,
  }
}

/** In whole milliseconds; 0 would switch the timeout off. */
function leftOf(timeoutMs: number, workedMs: number): number {
  return Math.max(1, Math.floor(timeoutMs - workedMs))
}

/** `OFFSET 0` keeps the clock from being read twice. A cancelled statement is noticed when its next row is asked for. */
function deadlineOf(timeoutMs: number): Command {
  const elapsed = '(1000 * extract(epoch FROM pg_catalog.clock_timestamp() - pg_catalog.transaction_timestamp()))::int8'
  const text = `SELECT pg_catalog.set_config('statement_timeout', greatest(left_ms, 1)::text, true),
  CASE WHEN left_ms <= 0 THEN pg_catalog.pg_cancel_backend(pg_catalog.pg_backend_pid()) END
FROM (SELECT $1::int8 - ${elapsed} AS left_ms OFFSET 0) AS time`
  return { text, parameters: encodeParameters([String(timeoutMs)]), upkeep: true }
}

/** Kept for the first transactions of requests. An identity comes from the cache of verified tokens and is the same object for every request of a token. */
function encodedOnce(
  answer: string,
  kind: Pick<Command, 'readsOnly'>,
  settingsFor: (identity: Identity, workedMs: number) => readonly SessionSetting[],
): (identity: Identity, workedMs?: number) => Command {
  const known = new WeakMap<Identity, Command>()
  // The names are the same for everybody, and one text is found by what it is instead of by what it says.
  let text: string | null = null
  return (identity, workedMs = 0) => {
    const found = workedMs === 0 ? known.get(identity) : undefined
    if (found !== undefined) return found
    const settings = settingsFor(identity, workedMs)
    text ??= settingsText(
      answer,
      settings.map(([name]) => name),
    )
    const parameters = encodeParameters(settings.map(([, value]) => value))
    const command = { text, parameters, flow: callerKey(identity), ...kind }
    if (workedMs === 0) known.set(identity, command)
    return command
  }
}

/**
 * `set_config` returns the value that it set, and nobody needs it back: as conditions, all must be evaluated for the one row without columns to
 * appear, and nothing is sent but what a write is answered besides.
 */
function settingsText(answer: string, names: readonly string[]): string {
  const conditions = names.map((name, index) => `set_config('${name}', $${index + 1}, true) IS NOT NULL`)
  return `SELECT ${answer}WHERE ${conditions.join(' AND ')}`
}

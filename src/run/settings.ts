/**
 * The first statement of every transaction: the caller
 * (docs/guides/your-own-database.md#2-row-level-security), the timeout and the access mode.
 * It is sent in the same packet as the query it protects. Everything before a Sync is one transaction, so the
 * settings end with it; if one cannot be set, PostgreSQL skips to the Sync and the query cannot run
 * (PostgreSQL manual, 54.2.3): it fails closed because of the protocol.
 */
import type { Identity, RequestSession } from '../identity/identity.ts'
import { type SessionSetting, settingsOf } from '../identity/settings.ts'
import { callerKey } from '../limits/budget.ts'
import { encodeParameters } from '../postgres/parameters.ts'
import { PLANNER } from '../postgres/startup.ts'
import type { Command } from '../postgres/types.ts'
import { printTraceparent, type TraceContext } from '../trace-context.ts'

/** Read by `install/capture.ts`. */
const ORIGIN: SessionSetting = ['svc.origin', 'gateway']

/** The same for `changes/reader.ts`: a message in the write-ahead log, with the trace as its content. */
const ORIGIN_MESSAGE =
  "pg_logical_emit_message(true, 'svc.origin', coalesce(current_setting('svc.traceparent', true), ''))"

/** Read by `install/outbox.ts`: deliveries of a change belong to the trace of its request. */
const TRACE = 'svc.traceparent'

/** The access mode of the transaction. */
export type Access = 'read only' | 'read write'

/** Creates the commands that set session settings. */
export interface SettingsSource {
  /**
   * The command that begins a transaction for `identity`. `workedMs`: the part of the statement timeout used
   * by earlier transactions of the same request; 0 by default. `trace`: set for the triggers that capture
   * changes for webhooks, if the transaction can write.
   */
  for(identity: Identity, access: Access, workedMs?: number, trace?: TraceContext): Command
  /**
   * Like `for` with 'read write', for statements that certainly write: its first result is the transaction
   * number, `pg_current_xact_id()`. It also sets the origin of the write, for whatever captures
   * changes for webhooks.
   */
  numbered(identity: Identity, workedMs?: number, trace?: TraceContext): Command
  /**
   * Between two statements of a transaction: sets the timeout to the time that is left, and cancels the
   * transaction if there is none (57014). PostgreSQL restarts `statement_timeout` with every statement, and
   * does not apply it to deferred triggers at the end of a transaction.
   */
  deadline(identity: Identity, workedMs?: number): Command
  /** Reports whether the statement timeout is used up. */
  isOver(workedMs: number): boolean
}

/** The inputs of `createSettings`. */
export interface SettingsOptions {
  readonly statementTimeoutMs: number
  /** False if a pooler is in between: each transaction then sets the initial settings of a connection. */
  readonly preparedStatements?: boolean
  /** True while changes are captured from the write-ahead log. */
  readonly usesWal?: () => boolean
  /** The settings that are not sent, the same object until they change (decision 0043). */
  readonly unsent?: () => ReadonlySet<string>
}

const ALL_ARE_SENT: ReadonlySet<string> = new Set()

/** Creates the source. */
export function createSettings({
  statementTimeoutMs,
  preparedStatements = true,
  usesWal = () => false,
  unsent = () => ALL_ARE_SENT,
}: SettingsOptions): SettingsSource {
  const planner: readonly SessionSetting[] = preparedStatements ? [] : PLANNER
  // A writing transaction uses the default mode of the role or database.
  const mode: Readonly<Record<Access, readonly SessionSetting[]>> = {
    'read only': [['transaction_read_only', 'on']],
    'read write': [],
  }
  const source = (access: Access, answer: string, more: readonly SessionSetting[] = []) =>
    encodedOnce(answer, access === 'read only' ? { readsOnly: true } : {}, unsent, (identity, workedMs, trace) => [
      ...sentOf(settingsOf(identity), unsent()),
      ...sentOf(identity.session?.settings ?? [], unsent()),
      ...mode[access],
      ...more,
      ...(trace === undefined ? [] : [[TRACE, printTraceparent(trace)] as const]),
      ...planner,
      ['statement_timeout', String(leftOf(timeoutOf(identity), workedMs))],
    ])
  const timeoutOf = ({ session }: Identity) =>
    Math.min(statementTimeoutMs, session?.timeoutMs ?? Number.POSITIVE_INFINITY)
  const whole = deadlineOf(statementTimeoutMs)
  const numbered = source('read write', 'pg_current_xact_id() ', [ORIGIN])
  const marked = source('read write', `pg_current_xact_id(), ${ORIGIN_MESSAGE} `, [ORIGIN])
  const sources = { 'read only': source('read only', ''), 'read write': source('read write', '') }
  return {
    for: (identity, access, workedMs, trace) =>
      sources[access](identity, workedMs, access === 'read write' ? trace : undefined),
    numbered: (identity, workedMs, trace) => (usesWal() ? marked : numbered)(identity, workedMs, trace),
    deadline(identity, workedMs = 0) {
      const timeoutMs = timeoutOf(identity)
      const isWhole = workedMs === 0 && timeoutMs === statementTimeoutMs
      return isWhole ? whole : deadlineOf(leftOf(timeoutMs, workedMs))
    },
    isOver: workedMs => workedMs >= statementTimeoutMs,
  }
}

function sentOf(settings: readonly SessionSetting[], unsent: ReadonlySet<string>): readonly SessionSetting[] {
  return unsent.size === 0 ? settings : settings.filter(([name]) => !unsent.has(name))
}

/** In whole milliseconds; 0 would disable the timeout. */
function leftOf(timeoutMs: number, workedMs: number): number {
  return Math.max(1, Math.floor(timeoutMs - workedMs))
}

/**
 * `OFFSET 0` prevents the clock from being read twice. A cancelled statement notices when its next row is
 * requested.
 */
function deadlineOf(timeoutMs: number): Command {
  const elapsed = '(1000 * extract(epoch FROM pg_catalog.clock_timestamp() - pg_catalog.transaction_timestamp()))::int8'
  const text = `SELECT pg_catalog.set_config('statement_timeout', greatest(left_ms, 1)::text, true),
  CASE WHEN left_ms <= 0 THEN pg_catalog.pg_cancel_backend(pg_catalog.pg_backend_pid()) END
FROM (SELECT $1::int8 - ${elapsed} AS left_ms OFFSET 0) AS time`
  return { text, parameters: encodeParameters([String(timeoutMs)]), upkeep: true }
}

/**
 * Cached for the first transactions of requests without a trace. An identity comes from the cache of verified
 * tokens and is the same object for every request with a token; with a session, the array of its settings is.
 */
function encodedOnce(
  answer: string,
  kind: Pick<Command, 'readsOnly'>,
  unsent: () => ReadonlySet<string>,
  settingsFor: (identity: Identity, workedMs: number, trace?: TraceContext) => readonly SessionSetting[],
): (identity: Identity, workedMs?: number, trace?: TraceContext) => Command {
  let known = new WeakMap<Identity | RequestSession['settings'], Command>()
  let without = unsent()
  // Identical strings are found by reference. The names are the same for every caller of one entry point.
  const texts = new Map<string, string>()
  return (identity, workedMs = 0, trace) => {
    const isKept = workedMs === 0 && trace === undefined
    const owner = identity.session?.settings ?? identity
    if (without !== unsent()) {
      without = unsent()
      known = new WeakMap()
      texts.clear()
    }
    const found = isKept ? known.get(owner) : undefined
    if (found !== undefined) return found
    const settings = settingsFor(identity, workedMs, trace)
    const added = [...(identity.session?.settings.map(([name]) => name) ?? []), trace === undefined ? '' : TRACE].join()
    const text = texts.get(added) ?? settingsText(answer, settings)
    texts.set(added, text)
    const parameters = encodeParameters(settings.map(([, value]) => value))
    const command = { text, parameters, flow: callerKey(identity), ...kind }
    if (isKept) known.set(owner, command)
    return command
  }
}

/** Limit of PostgreSQL on the arguments of a function (`FUNC_MAX_ARGS`). */
const ARGUMENTS_MAX = 100

/**
 * `set_config` returns the value, which is not needed: as arguments of a condition, all calls are evaluated,
 * in order, for one row without columns, and only the write's result is sent. One condition takes PostgreSQL
 * less time than one for each setting.
 */
function settingsText(answer: string, settings: readonly SessionSetting[]): string {
  const calls = settings.map(([name], index) => `set_config('${name}', $${index + 1}, true)`)
  const conditions: string[] = []
  for (let at = 0; at < calls.length; at += ARGUMENTS_MAX) {
    conditions.push(`pg_catalog.num_nulls(${calls.slice(at, at + ARGUMENTS_MAX).join(', ')}) = 0`)
  }
  return `SELECT ${answer}WHERE ${conditions.join(' AND ')}`
}

/**
 * Establishes a session that is ready for queries: socket, TLS, startup packet, authentication (PostgreSQL
 * manual, 54.2.1).
 */
import { randomBytes } from 'node:crypto'
import { createGss } from './auth/gss.ts'
import type { ConnectTry, Gss } from './auth/gss-attempts.ts'
import { type AuthContext, allowsGssAlone } from './auth/policy.ts'
import { ConnectError, DatabaseError, WrongServerError } from './errors.ts'
import { HostOrder } from './host-order.ts'
import { during, Progress } from './progress.ts'
import { MESSAGE_BYTES_MAX } from './protocol/reader.ts'
import { openSocket } from './socket.ts'
import { converse, type ServerSession, STARTUP_MESSAGE_BYTES_MAX } from './startup-conversation.ts'
import { type ConnectionTarget, describeAddress, describeTarget } from './target.ts'
import { Wire } from './wire.ts'

/** Limit on the length shown of a server's message, which is not trusted. */
const REASON_LENGTH_MAX = 1_000

/** An established session. */
export interface Connected {
  /** The target with only the host that accepted the session. */
  readonly target: ConnectionTarget
  readonly wire: Wire
  readonly session: ServerSession
}

/** The options of a connection attempt. */
export interface ConnectOptions {
  readonly target: ConnectionTarget
  /** True if a pooler is in between: only parameters that every pooler accepts are sent. */
  readonly throughPooler: boolean
  /** True for a session that takes replication commands for its database (PostgreSQL manual, 54.4). */
  readonly replication?: boolean
  /** Aborts the attempt. The target's own timeout applies to each try in addition. */
  readonly signal?: AbortSignal
  /** The memory of the target's hosts, of callers that connect repeatedly. */
  readonly hosts?: HostOrder
  /** The source of Kerberos tokens; without it, targets that allow Kerberos are refused. */
  readonly gss?: Gss | null
}

/**
 * SQLSTATE classes for which retrying does not help: authorization, unknown database, invalid startup
 * parameter, missing privilege.
 */
const PERMANENT = /^(28|3D|22|42)/

/**
 * PgBouncer's reply to startup parameters meant for servers. Detects a missing `prepared_statements` setting,
 * with which a session would be shared while it is pipelined.
 */
const POOLER_REFUSAL = /^unsupported startup parameter/

/**
 * Connects to the first host that accepts the session. Rejects with `ConnectError`. The wire has no sink yet;
 * it must be set in the same turn.
 */
export function connect(options: ConnectOptions): Promise<Connected> {
  return options.target.others.length === 0 ? connectToHost(options) : connectToAny(options)
}

/**
 * As in libpq, a host that is unreachable, slow, starting up or of the wrong kind is skipped, and one that
 * refuses the credentials or the database ends the search (PostgreSQL manual, 34.1.1.3).
 */
async function connectToAny(options: ConnectOptions): Promise<Connected> {
  const { target, hosts = new HostOrder(target, {}), signal = NEVER } = options
  const failures: ConnectError[] = []
  const primaries: ConnectionTarget[] = []
  const search = async (candidates: readonly ConnectionTarget[]): Promise<Connected | null> => {
    for (const candidate of candidates) {
      const outcome = await connectToHost({ ...options, target: candidate }).catch((error: ConnectError) => error)
      if (!(outcome instanceof Error)) {
        hosts.worked(candidate.address)
        return outcome
      }
      if (signal.aborted) throw outcome
      if (target.sessionAttributes === 'prefer-standby' && outcome instanceof WrongServerError) {
        primaries.push(candidate)
        continue
      }
      hosts.failed(candidate.address)
      failures.push(outcome)
      if (outcome.permanent) break
    }
    return null
  }
  const wanted = target.sessionAttributes === 'prefer-standby' ? 'standby' : target.sessionAttributes
  let found = await search(hosts.next().map(host => ({ ...host, sessionAttributes: wanted })))
  if (found === null && failures.at(-1)?.permanent !== true) {
    // With prefer-standby, when no host is a standby.
    found = await search(primaries.map(host => ({ ...host, sessionAttributes: 'any' })))
  }
  if (found === null) throw noHost(target, failures)
  return found
}

function noHost(target: ConnectionTarget, failures: readonly ConnectError[]): ConnectError {
  const last = failures.at(-1)
  if (failures.length === 1 && last !== undefined) return last
  const reasons = failures.map(failure => failure.message).join('; ')
  const message = `no host of ${describeTarget(target)} accepted the session: ${reasons}`
  return new ConnectError(message, last?.permanent ?? false, last)
}

function connectToHost(options: ConnectOptions): Promise<Connected> {
  const { target, gss, signal = NEVER } = options
  if (target.gss === null) return tryOnce(options, null)
  if (!gss) return Promise.reject(new ConnectError('no provider of Kerberos tokens is configured', true))
  return gss.attempts.run(attempt => tryOnce(options, attempt), signal)
}

const NEVER = new AbortController().signal

async function tryOnce(options: ConnectOptions, kerberos: ConnectTry | null): Promise<Connected> {
  const { target, signal: shutdown } = options
  shutdown?.throwIfAborted()
  if (kerberos !== null) kerberos.usesGss = allowsGssAlone(target.auth)
  const attempt = new AbortController()
  const progress = new Progress()
  const onShutdown = (): void => attempt.abort(shutdown?.reason)
  shutdown?.addEventListener('abort', onShutdown)
  const timer = setTimeout(() => {
    const message = `no session with ${describeTarget(target)} within ${target.connectTimeoutMs} ms ${during(progress)}`
    attempt.abort(new ConnectError(message, false))
  }, target.connectTimeoutMs)
  try {
    return await establish(options, attempt.signal, progress, kerberos)
  } catch (error) {
    throw toConnectError(attempt.signal.aborted ? attempt.signal.reason : error, target, progress)
  } finally {
    clearTimeout(timer)
    shutdown?.removeEventListener('abort', onShutdown)
  }
}

async function establish(
  options: ConnectOptions,
  signal: AbortSignal,
  progress: Progress,
  kerberos: ConnectTry | null,
): Promise<Connected> {
  const { target } = options
  const { socket, certificate } = await openSocket(target, signal, progress)
  const wire = new Wire(socket)
  const onAbort = (): void => wire.destroy(signal.reason)
  signal.addEventListener('abort', onAbort)
  try {
    wire.messageBytesMax = STARTUP_MESSAGE_BYTES_MAX
    progress.step = 'starting the session'
    const circumstances = { certificate, random: randomBytes, gss: tokensOf(options, signal, kerberos) }
    const session = await converse(wire, target, startupParameters(options), circumstances, progress)
    checkSession(session, target)
    if (wire.reason !== null) throw wire.reason
    wire.messageBytesMax = MESSAGE_BYTES_MAX
    return { target, wire, session }
  } catch (error) {
    wire.destroy(error as Error)
    throw error
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}

/** The source of tokens; null if the target does not allow Kerberos. */
function tokensOf(
  { target, gss }: ConnectOptions,
  signal: AbortSignal,
  kerberos: ConnectTry | null,
): AuthContext['gss'] {
  if (target.gss === null || !gss || kerberos === null) return null
  const service = target.gss.target
  return method => {
    kerberos.usesGss = true
    return createGss(method, service, gss.provider.start({ target: service, method, signal }))
  }
}

/**
 * Fixed here so that no setting of a role or database changes the format of results (except TimeZone, which
 * the operator may choose) or how quoted text is parsed. Parameters sent by name override `options`
 * (PostgreSQL manual, 54.2.1), so those that the operator's options may override are left out.
 */
function startupParameters(options: ConnectOptions): (readonly [string, string])[] {
  const { target } = options
  const parameters: (readonly [string, string])[] = [
    ['user', target.user],
    ['database', target.database],
    ['application_name', target.applicationName ?? 'svc'],
    ['client_encoding', 'UTF8'],
    ['DateStyle', 'ISO'],
  ]
  if (options.replication === true) parameters.push(['replication', 'database'])
  if (target.options !== null) parameters.push(['options', target.options])
  // The quoting of literals depends on it. The server applies it after `options`.
  parameters.push(['standard_conforming_strings', 'on'])
  // PgBouncer refuses parameters that it does not track.
  if (options.throughPooler) return parameters
  parameters.push(['IntervalStyle', 'postgres'], ['extra_float_digits', '1'])
  for (const [name, value] of [['bytea_output', 'hex'], ...PLANNER] as const) {
    if (!isSetBy(target.options, name)) parameters.push([name, value])
  }
  return parameters
}

/**
 * Limits on the join orders that the planner tries. These are PostgreSQL's defaults, set here because a
 * server, database or role may differ: with `join_collapse_limit = 100`, planning a permitted query takes
 * minutes, during which no timeout is checked.
 */
export const PLANNER: readonly (readonly [string, string])[] = [
  ['join_collapse_limit', '8'],
  ['from_collapse_limit', '8'],
  ['geqo', 'on'],
  ['geqo_threshold', '12'],
]

/**
 * True if `options` sets a parameter: `-c name=value` or `--name=value`, where PostgreSQL treats hyphens in
 * names as underscores, in any case.
 */
function isSetBy(options: string | null, name: string): boolean {
  return options !== null && new RegExp(`(^|\\s)(-c\\s*|--)${name.replaceAll('_', '[-_]')}=`, 'i').test(options)
}

function checkSession(session: ServerSession, target: ConnectionTarget): void {
  const encoding = session.parameters.get('client_encoding')
  if (encoding !== undefined && encoding !== 'UTF8') {
    throw new ConnectError(`the session uses ${encoding} although UTF8 was requested; is a pooler in between?`, true)
  }
  const standby = session.parameters.get('in_hot_standby') === 'on'
  const readOnly = standby || session.parameters.get('default_transaction_read_only') === 'on'
  const wrong =
    (target.sessionAttributes === 'read-write' && readOnly) ||
    (target.sessionAttributes === 'read-only' && !readOnly) ||
    (target.sessionAttributes === 'primary' && standby) ||
    (target.sessionAttributes === 'standby' && !standby)
  if (!wrong) return
  const found = standby ? 'a standby' : readOnly ? 'a primary whose sessions are read-only' : 'a primary'
  throw new WrongServerError(
    `the server at ${describeAddress(target.address)} is ${found}, but ` +
      `target_session_attrs=${target.sessionAttributes} is required`,
  )
}

function toConnectError(error: unknown, target: ConnectionTarget, progress: Progress): ConnectError {
  if (error instanceof ConnectError) return error
  const message = (error as Error).message.slice(0, REASON_LENGTH_MAX)
  // A message from the server needs no step in addition.
  if (error instanceof DatabaseError && POOLER_REFUSAL.test(message)) {
    return new ConnectError(
      `no session with ${describeTarget(target)}: ${message}; a pooler is in between: set ` +
        'prepared_statements = false',
      true,
      error,
    )
  }
  const [permanent, reason] =
    error instanceof DatabaseError
      ? [PERMANENT.test(error.sqlstate), message]
      : [false, `${message} ${during(progress)}`]
  return new ConnectError(`no session with ${describeTarget(target)}: ${reason}`, permanent, error)
}

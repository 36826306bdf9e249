/**
 * From nothing to a session that is ready for queries: socket, TLS, start-up packet, authentication
 * (PostgreSQL manual, 54.2.1).
 */
import { randomBytes } from 'node:crypto'
import { createGss } from './auth/gss.ts'
import type { Gss, Try } from './auth/gss-attempts.ts'
import { allowsGssAlone, type Circumstances } from './auth/policy.ts'
import { converse, type Session, STARTUP_MESSAGE_BYTES_MAX } from './conversation.ts'
import { ConnectError, DatabaseError } from './errors.ts'
import { during, Progress } from './progress.ts'
import { MESSAGE_BYTES_MAX } from './protocol/reader.ts'
import { openSocket } from './socket.ts'
import { type ConnectionTarget, describeTarget } from './target.ts'
import { Wire } from './wire.ts'

/** As much of a server's reason is shown: it may be anybody's. */
const REASON_LENGTH_MAX = 1_000

export interface Connected {
  readonly wire: Wire
  readonly session: Session
}

export interface ConnectOptions {
  readonly target: ConnectionTarget
  /** A pooler is in between: only parameters that every pooler passes on are sent. */
  readonly throughPooler: boolean
  /** Aborting gives up. The target's own timeout applies besides, to each try. */
  readonly signal?: AbortSignal
  /** Where Kerberos gets its tokens; nothing is tried without it if the target allows Kerberos. */
  readonly gss?: Gss | null
}

/** SQLSTATE classes that trying again does not cure: authorisation, unknown database, bad start-up parameter, no right. */
const PERMANENT = /^(28|3D|22|42)/

/** PgBouncer, when it is sent what we send to servers. It saves whoever forgot the key: a session would be shared while it is pipelined. */
const POOLER_REFUSAL = /^unsupported startup parameter/

/** Rejects with `ConnectError`. The wire has no sink yet; set one in the same turn. */
export function connect(options: ConnectOptions): Promise<Connected> {
  const { target, gss, signal = NEVER } = options
  if (target.gss === null) return tryOnce(options, null)
  if (!gss) return Promise.reject(new ConnectError('nothing was set up that Kerberos could get its tokens from', true))
  return gss.attempts.run(attempt => tryOnce(options, attempt), signal)
}

const NEVER = new AbortController().signal

async function tryOnce(options: ConnectOptions, kerberos: Try | null): Promise<Connected> {
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
  kerberos: Try | null,
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
    return { wire, session }
  } catch (error) {
    wire.destroy(error as Error)
    throw error
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}

/** Null: the target allows no Kerberos. */
function tokensOf({ target, gss }: ConnectOptions, signal: AbortSignal, kerberos: Try | null): Circumstances['gss'] {
  if (target.gss === null || !gss || kerberos === null) return null
  const service = target.gss.target
  return method => {
    kerberos.usesGss = true
    return createGss(method, service, gss.provider.start({ target: service, method, signal }))
  }
}

/**
 * Fixed here, so that no setting of a role or database changes it: what an answer looks like, except for TimeZone, which
 * is the operator's to choose; and how a quoted text of ours is read. What is sent by name prevails over `options`
 * (PostgreSQL manual, 54.2.1 has both), so what gives way to the operator's options is left out.
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
  if (target.options !== null) parameters.push(['options', target.options])
  // The quoting of literals rests on it. The server applies it after whatever `options` says.
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
 * How many orders of joins the planner tries. These are PostgreSQL's own defaults, set here because a server, a database or a role may have others: with
 * `join_collapse_limit = 100` a query that the limits allow is planned for minutes, and no timeout is looked at meanwhile.
 */
export const PLANNER: readonly (readonly [string, string])[] = [
  ['join_collapse_limit', '8'],
  ['from_collapse_limit', '8'],
  ['geqo', 'on'],
  ['geqo_threshold', '12'],
]

/** `-c name=value` or `--name=value`, where PostgreSQL reads hyphens in the name as underscores, and any case. */
function isSetBy(options: string | null, name: string): boolean {
  return options !== null && new RegExp(`(^|\\s)(-c\\s*|--)${name.replaceAll('_', '[-_]')}=`, 'i').test(options)
}

function checkSession(session: Session, target: ConnectionTarget): void {
  const encoding = session.parameters.get('client_encoding')
  if (encoding !== undefined && encoding !== 'UTF8') {
    throw new ConnectError(`the session speaks ${encoding} although UTF8 was asked for; is a pooler in between?`, true)
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
  throw new ConnectError(`the server is ${found}, and target_session_attrs=${target.sessionAttributes}`, false)
}

function toConnectError(error: unknown, target: ConnectionTarget, progress: Progress): ConnectError {
  if (error instanceof ConnectError) return error
  const message = (error as Error).message.slice(0, REASON_LENGTH_MAX)
  // What the server says of itself needs no step of ours beside it.
  if (error instanceof DatabaseError && POOLER_REFUSAL.test(message)) {
    return new ConnectError(
      `no session with ${describeTarget(target)}: ${message}; a pooler is in between: set prepared_statements = false`,
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

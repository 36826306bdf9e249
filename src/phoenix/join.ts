/** Reads the payload of `phx_join`, with which a client joins a channel. */
import type { ChangeOperation } from '../compile/row-images.ts'
import { GatewayError } from '../errors.ts'
import { shorten } from '../text/shorten.ts'
import { isRecord } from './frame.ts'

/** A channel that a client requests. */
export interface JoinRequest {
  readonly changes: readonly ChangesRequest[]
  readonly broadcast: { readonly isAcknowledged: boolean; readonly includesSelf: boolean }
  /** The token of the caller; null without one. */
  readonly token: string | null
}

/** The changes of a table, or of all captured tables of a schema. */
export interface ChangesRequest {
  /** The members as the client wrote them, because the client compares them with the response. */
  readonly written: Readonly<Record<string, unknown>>
  readonly events: readonly ChangeOperation[]
  readonly schema: string
  /** Null for all captured tables. */
  readonly table: string | null
  /** The query string of a list request. */
  readonly filter: string
}

const EVENTS: Readonly<Record<string, readonly ChangeOperation[]>> = {
  '*': ['INSERT', 'UPDATE', 'DELETE'],
  INSERT: ['INSERT'],
  UPDATE: ['UPDATE'],
  DELETE: ['DELETE'],
}

/**
 * Reads the payload of `phx_join`.
 * @throws {GatewayError} `PARSE_ERROR`, also for what is not supported.
 */
export function readJoin(payload: Readonly<Record<string, unknown>>): JoinRequest {
  const config = recordAt(payload, 'config')
  const broadcast = recordAt(config, 'broadcast')
  if (config.private === true) throw refused('private channels are not supported; remove config.private')
  if (recordAt(config, 'presence').enabled === true) {
    throw refused('presence is not supported; remove the presence callbacks and config.presence.enabled')
  }
  if (broadcast.replay !== undefined)
    throw refused('replay of broadcasts is not supported; remove config.broadcast.replay')
  const { postgres_changes: changes = [] } = config
  if (!Array.isArray(changes)) throw refused('config.postgres_changes must be an array')
  return {
    changes: changes.map(readChanges),
    broadcast: { isAcknowledged: broadcast.ack === true, includesSelf: broadcast.self === true },
    token: tokenIn(payload),
  }
}

/** The token in a payload; null for a key that is not a token. */
export function tokenIn({ access_token: token }: Readonly<Record<string, unknown>>): string | null {
  return typeof token === 'string' ? tokenOfKey(token) : null
}

/** A JSON Web Token has three parts. An API key of another form identifies a project, not a caller. */
export function tokenOfKey(key: string): string | null {
  return key.split('.').length === 3 ? key : null
}

function readChanges(written: unknown): ChangesRequest {
  if (!isRecord(written)) throw refused('each element of config.postgres_changes must be an object')
  const { event, schema, table, filter } = written
  const events = typeof event === 'string' && Object.hasOwn(EVENTS, event) ? EVENTS[event] : undefined
  if (events === undefined) throw refused('event must be one of *, INSERT, UPDATE and DELETE')
  if (typeof schema !== 'string' || schema === '' || schema === '*') throw refused('schema must name a schema')
  if (!isOptionalText(table)) throw refused('table must be a string')
  if (!isOptionalText(filter)) throw refused('filter must be a string, such as id=eq.5')
  const isAll = table === undefined || table === null || table === '*'
  if (isAll && filter != null && filter !== '') throw refused('a filter needs a table')
  return { written, events, schema, table: isAll ? null : table, filter: readFilter(filter ?? '') }
}

const OPERATORS: ReadonlySet<string> = new Set(['eq', 'neq', 'lt', 'lte', 'gt', 'gte', 'in'])

const CONDITION = /^([^=]+)=([a-z]+)\.(.*)$/s

/** `column=operator.value`, or several of them with commas between, as a query string. */
function readFilter(text: string): string {
  return text === '' ? '' : splitConditions(text).map(printCondition).join('&')
}

/** Separates conditions. A comma that is not followed by a condition is part of the value. */
function splitConditions(text: string): readonly string[] {
  return text.split(/,(?=[^=,()"]+=(?:eq|neq|lt|lte|gt|gte|in)\.)/)
}

function printCondition(text: string): string {
  const [, column, operator, value] = CONDITION.exec(text) ?? []
  if (column === undefined || operator === undefined || value === undefined)
    throw refused(`"${shorten(text)}" is not a filter; write column=operator.value`)
  if (!OPERATORS.has(operator))
    throw refused(`the filter operator "${shorten(operator)}" is not supported; use ${[...OPERATORS].join(', ')}`)
  return `${encodeURIComponent(column)}=${operator}.${encodeURIComponent(value)}`
}

function recordAt(of: Readonly<Record<string, unknown>>, name: string): Readonly<Record<string, unknown>> {
  const value = of[name] ?? {}
  if (isRecord(value)) return value
  throw refused(`${name} must be an object`)
}

function isOptionalText(value: unknown): value is string | null | undefined {
  return value === undefined || value === null || typeof value === 'string'
}

function refused(message: string): GatewayError {
  return new GatewayError('PARSE_ERROR', message)
}

/**
 * Claims on idempotency keys (docs/reference/writing.md#idempotency-keys). A transaction begins with a claim,
 * in the packet of its first statement, and ends by storing its response. The effect and the response are
 * committed together, so it does not matter which gateway receives the request, or whether one is killed. The
 * functions are those of `install/idempotency-keys.ts`.
 */
import { createHash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { GatewayError } from '../errors.ts'
import type { Answer } from '../exchange.ts'
import type { Identity } from '../identity/identity.ts'
import { DatabaseError } from '../postgres/errors.ts'
import type { Command, Database, ServerTime } from '../postgres/types.ts'
import { toGatewayError } from './errors.ts'

/**
 * The reasons to refuse a claim: another transaction has the key, the key has a response, or the ticket is
 * unknown.
 */
export type ClaimRefusal = 'in use' | 'known' | 'ticket'

const REFUSALS: Readonly<Record<string, ClaimRefusal>> = { SV001: 'in use', SV002: 'known', SV003: 'ticket' }

/** The reason for which a claim, or storing its response, was refused; null for any other error. */
export function refusalOf(error: unknown): ClaimRefusal | null {
  return error instanceof DatabaseError ? (REFUSALS[error.sqlstate] ?? null) : null
}

/** Limits on stored responses. */
export interface IdempotencyLimits {
  readonly idempotencyTtlSecs: number
  readonly idempotencyMaxResponseBytes: number
  /** Limit on the stored responses of a tenant; 0 means no limit. */
  readonly tenantMaxIdempotencyKeys: number
}

/** The dependencies of keys. */
export interface IdempotencyKeysParts {
  readonly database: Pick<Database, 'run'>
  readonly ticket: string
  /** Reports whether schema `svc` is installed. */
  readonly isInstalled: () => boolean
  /** Called when the ticket is unknown, for example after the database was restored. */
  readonly onUnknownTicket: () => void
  readonly limits: IdempotencyLimits
}

/** Limit on the tenants whose number of keys is cached. */
const COUNTED_TENANTS_MAX = 10_000

/** A tenant's keys are counted again after this fraction of the limit has been stored. */
const COUNTED_PART = 100

const RETRY = { 'Retry-After': '1' }

/** Idempotency keys of the requests of one gateway. */
export class IdempotencyKeys {
  readonly #parts: IdempotencyKeysParts
  /** How many keys a tenant can store before they are counted again. */
  readonly #room = new LRUCache<string, { left: number }>({ max: COUNTED_TENANTS_MAX })

  constructor(parts: IdempotencyKeysParts) {
    this.#parts = parts
  }

  /**
   * A claim on a key of the caller. `request` is everything that distinguishes this request from others.
   * @throws {GatewayError} `NOT_IMPLEMENTED` without `svc install`.
   */
  claim({ tenantId, userId, role }: Identity, key: string, request: readonly (string | Buffer)[]): KeyClaim {
    if (!this.#parts.isInstalled()) {
      throw new GatewayError(
        'NOT_IMPLEMENTED',
        'Idempotency-Key needs schema svc in the database, where the response is stored with the write; ' +
          'run svc install, or send the request without the header',
      )
    }
    const id = digestOf([tenantId, userId, key])
    return new KeyClaim(this.#parts, { id, tenantId, fingerprint: digestOf([role, ...request]) }, worked =>
      this.#assertRoom(tenantId, worked),
    )
  }

  async #assertRoom(tenantId: string, worked: ServerTime): Promise<void> {
    const { database, ticket, limits } = this.#parts
    const max = limits.tenantMaxIdempotencyKeys
    if (max === 0) return
    let room = this.#room.get(tenantId)
    if (room === undefined || room.left <= 0) {
      const [counted] = await database.run(
        [{ text: 'SELECT svc.count_keys($1, $2, $3::int4)', parameters: [ticket, tenantId, String(max)] }],
        worked,
      ).result
      const free = max - Number(counted?.rows[0]?.[0]?.toString())
      room = { left: Math.min(free, Math.ceil(max / COUNTED_PART)) }
      this.#room.set(tenantId, room)
    }
    if (room.left <= 0) throw tooManyKeys(tenantId)
    room.left -= 1
  }
}

interface Claimed {
  readonly id: string
  readonly tenantId: string
  readonly fingerprint: string
}

/** One request with a key. */
export class KeyClaim {
  /** The first command of the transaction. */
  readonly command: Command
  readonly #parts: IdempotencyKeysParts
  readonly #of: Claimed
  readonly #assertRoom: (worked: ServerTime) => Promise<void>

  constructor(parts: IdempotencyKeysParts, of: Claimed, assertRoom: (worked: ServerTime) => Promise<void>) {
    this.#parts = parts
    this.#of = of
    this.#assertRoom = assertRoom
    this.command = {
      text: 'SELECT svc.claim_key($1, $2::bytea)',
      parameters: [parts.ticket, bytea(of.id)],
      upkeep: true,
    }
  }

  /**
   * The command that stores a response before the commit.
   * @throws {GatewayError} for a response that is too large, or a tenant with too many keys.
   */
  async storing({ status, headers, body }: Answer, worked: ServerTime): Promise<Command> {
    const { ticket, limits } = this.#parts
    const bytes = body === null ? null : bytesOf(body)
    const max = limits.idempotencyMaxResponseBytes
    if (bytes !== null && bytes.length > max) {
      throw new GatewayError(
        'PAYLOAD_TOO_LARGE',
        `the response has ${bytes.length} bytes, and one to a request with an Idempotency-Key at most ${max} ` +
          '(idempotency_max_response_bytes), because it is stored; nothing was written. Choose fewer columns with ' +
          'returning, or send Prefer: return=minimal',
      )
    }
    try {
      await this.#assertRoom(worked)
    } catch (error) {
      throw this.#failed(error)
    }
    return {
      text: 'SELECT svc.store_answer($1, $2::bytea, $3, $4::bytea, $5::int4, $6, $7::bytea, $8::int4)',
      parameters: [
        ...[ticket, bytea(this.#of.id), this.#of.tenantId, bytea(this.#of.fingerprint), String(status)],
        ...[JSON.stringify(headers), bytes === null ? null : bytea(bytes.toString('hex'))],
        String(limits.idempotencyTtlSecs),
      ],
      upkeep: true,
    }
  }

  /**
   * The stored response of a refused claim; null if it has expired since, so the request can be run again.
   * @throws {GatewayError} if the key is in use, or belongs to a different request.
   */
  async resolve(refusal: ClaimRefusal, worked: ServerTime): Promise<Answer | null> {
    if (refusal === 'in use') {
      throw new GatewayError(
        'IDEMPOTENCY_KEY_IN_USE',
        'a request with this Idempotency-Key is running; send it again later to get its response',
        { headers: RETRY },
      )
    }
    if (refusal === 'ticket') throw this.#unknownTicket()
    const stored = await this.#find(worked)
    if (stored === null) return null
    if (stored.fingerprint === this.#of.fingerprint) return stored.answer
    throw new GatewayError(
      'IDEMPOTENCY_KEY_REUSED',
      'this Idempotency-Key was used for a request with another method, path, query, body, role, or header that ' +
        'changes a write; use a new key for each request',
    )
  }

  async #find(worked: ServerTime): Promise<{ readonly fingerprint: string; readonly answer: Answer } | null> {
    const { database, ticket } = this.#parts
    const text = 'SELECT request, with_status, with_headers, with_body FROM svc.find_answer($1, $2::bytea)'
    const running = database.run([{ text, parameters: [ticket, bytea(this.#of.id)] }], worked)
    const [found] = await running.result.catch((error: unknown) => {
      throw this.#failed(error)
    })
    const [row] = found?.rows ?? []
    if (row === undefined) return null
    const [fingerprint, status, headers, body] = row.map(value => value?.toString() ?? null)
    return {
      fingerprint: fingerprint ?? '',
      answer: {
        status: Number(status),
        headers: { ...(JSON.parse(headers ?? '{}') as Record<string, string>), 'Idempotency-Replayed': 'true' },
        body: body == null ? null : Buffer.from(body, 'hex'),
      },
    }
  }

  #failed(error: unknown): unknown {
    return refusalOf(error) === 'ticket'
      ? this.#unknownTicket()
      : toGatewayError(error, { statements: [], access: 'read only' })
  }

  #unknownTicket(): GatewayError {
    this.#parts.onUnknownTicket()
    return new GatewayError(
      'UNAVAILABLE',
      'this gateway is not registered in the database at the moment; try again later',
      {
        headers: RETRY,
      },
    )
  }
}

function tooManyKeys(tenantId: string): GatewayError {
  const who = tenantId === '' ? 'callers without a tenant have' : 'the tenant has'
  return new GatewayError(
    'RATE_LIMITED',
    `${who} reached the limit of stored responses (tenant_max_idempotency_keys); nothing was written. Try again ` +
      'when older keys have expired',
    { headers: { 'Retry-After': '60' } },
  )
}

function bytesOf(body: NonNullable<Answer['body']>): Buffer {
  if (Buffer.isBuffer(body)) return body
  if ('latin1' in body) return Buffer.from(body.latin1, 'latin1')
  throw new Error('a streamed response cannot be stored')
}

/** A digest of several parts, which also depends on the boundaries between them. */
function digestOf(parts: readonly (string | Buffer)[]): string {
  const hash = createHash('sha256')
  for (const part of parts) {
    const bytes = typeof part === 'string' ? Buffer.from(part) : part
    hash.update(`${bytes.length}:`)
    hash.update(bytes)
  }
  return hash.digest('hex')
}

/** A value of type bytea in text format (PostgreSQL manual, 8.4.1). */
function bytea(hex: string): string {
  return `\\x${hex}`
}

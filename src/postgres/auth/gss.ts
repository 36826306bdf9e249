/**
 * GSSAPI, SSPI and Kerberos V5 (PostgreSQL manual, 54.2.1, AuthenticationGSS and what follows it): both sides exchange
 * tokens until each is content. Where the tokens come from is the provider's business: the gateway acquires no tickets and
 * logs nobody in (docs/guides/database-connections.md#kerberos).
 */
import { ConnectError } from '../errors.ts'
import type { Authentication } from '../protocol/backend.ts'
import { writeAnswer } from '../protocol/frontend.ts'
import type { Writer } from '../protocol/writer.ts'
import type { Mechanism } from './mechanism.ts'

/** The question the server asks first, as its protocol calls it. */
export const GSS_METHODS = { gss: 'GSSAPI', sspi: 'SSPI', kerberos: 'Kerberos V5' } as const
export type GssMethod = keyof typeof GSS_METHODS

export interface GssProvider {
  /** One conversation. */
  start(request: GssRequest): GssConversation
}

export interface GssRequest {
  /** `service@host`: whom we want to talk to. */
  readonly target: string
  readonly method: GssMethod
  /** Aborted when nobody waits for the answer any more. */
  readonly signal: AbortSignal
}

/** Takes what the server sent, null at first. Rejects with `GssError` when it is known whether trying again may help. */
export type GssConversation = (token: Buffer | null) => Promise<GssStep>

export interface GssStep {
  /** For the server; null when there is nothing left to say. */
  readonly token: Buffer | null
  /** The server has proved to be the target: nothing more is needed from it. */
  readonly done: boolean
}

export class GssError extends Error {
  /** The same may go well in a moment: a KDC did not answer. */
  readonly transient: boolean

  constructor(message: string, transient: boolean, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'GssError'
    this.transient = transient
  }
}

/** Kerberos needs one or two; negotiation before it a few more. */
const STEPS_MAX = 16
/** PostgreSQL takes none that is larger (PG_MAX_AUTH_TOKEN_LENGTH). */
const TOKEN_BYTES_MAX = 65_535

export function createGss(method: GssMethod, target: string, converse: GssConversation): Mechanism {
  const name = GSS_METHODS[method]
  let steps = 0
  let isDone = false
  let isWaiting = false

  function respond(challenge: Authentication, writer: Writer): Promise<void> {
    const isTurn = steps === 0 ? challenge.method === method : challenge.method === 'gssContinue' && !isDone
    if (!isTurn || steps >= STEPS_MAX) {
      throw new ConnectError(`the server sent "${challenge.method}" out of turn during ${name} authentication`, false)
    }
    steps++
    // A token is a view of the bytes that came in; the provider may keep it.
    return proceed(challenge.method === 'gssContinue' ? Buffer.from(challenge.data) : null, writer)
  }

  async function proceed(given: Buffer | null, writer: Writer): Promise<void> {
    isWaiting = true
    const { token, done } = await converse(given).catch(error => {
      throw failure(error)
    })
    isWaiting = false
    if (token !== null && token.length > TOKEN_BYTES_MAX) {
      throw failure(new GssError(`a token of ${token.length} bytes, where PostgreSQL takes ${TOKEN_BYTES_MAX}`, false))
    }
    if (token === null && !done) throw failure(new GssError('no token for the server, and no end either', false))
    isDone = done
    if (token !== null) writeAnswer(writer, token)
  }

  function failure(error: unknown): ConnectError {
    const isTransient = error instanceof GssError && error.transient
    return new ConnectError(
      `${name} authentication for ${target} failed at step ${steps}: ${(error as Error).message}`,
      !isTransient,
      error,
    )
  }

  return {
    name,
    respond,
    // PostgreSQL's last token and AuthenticationOk come in one packet.
    mayBeFollowed: true,
    isBound: false,
    get step() {
      if (isWaiting) return `waiting for a token for ${target} (step ${steps})`
      return isDone ? 'waiting to be let in' : `waiting for its token (step ${steps})`
    },
    get finished() {
      return isDone
    },
  }
}

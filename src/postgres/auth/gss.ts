/**
 * GSSAPI, SSPI and Kerberos V5 (PostgreSQL manual, 54.2.1, AuthenticationGSS and the following): both sides
 * exchange tokens until both are satisfied. The provider supplies the tokens; the gateway acquires no tickets
 * and performs no login (docs/guides/database-connections.md#kerberos).
 */
import { ConnectError } from '../errors.ts'
import type { Authentication } from '../protocol/backend.ts'
import { writeAnswer } from '../protocol/frontend.ts'
import type { Writer } from '../protocol/writer.ts'
import type { Mechanism } from './mechanism.ts'

/** The server's authentication requests, by their protocol names. */
export const GSS_METHODS = { gss: 'GSSAPI', sspi: 'SSPI', kerberos: 'Kerberos V5' } as const
export type GssMethod = keyof typeof GSS_METHODS

export interface GssProvider {
  /** Starts a conversation. */
  start(request: GssRequest): GssConversation
}

export interface GssRequest {
  /** `service@host`: the service to authenticate to. */
  readonly target: string
  readonly method: GssMethod
  /** Aborted when the result is not needed any more. */
  readonly signal: AbortSignal
}

/**
 * Takes what the server sent, null at first. Rejects with `GssError` if it is known whether a retry may help.
 */
export type GssConversation = (token: Buffer | null) => Promise<GssStep>

export interface GssStep {
  /** For the server; null when there is nothing more to send. */
  readonly token: Buffer | null
  /** True if the server has proved to be the target, so that nothing more is needed from it. */
  readonly done: boolean
}

export class GssError extends Error {
  /** True if a retry may help: for example, a KDC did not respond. */
  readonly transient: boolean

  constructor(message: string, transient: boolean, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'GssError'
    this.transient = transient
  }
}

/** Kerberos needs one or two steps; negotiation before it a few more. */
const STEPS_MAX = 16
/** PostgreSQL accepts no larger token (PG_MAX_AUTH_TOKEN_LENGTH). */
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
    // A token is a view of the received bytes; the provider may keep it.
    return proceed(challenge.method === 'gssContinue' ? Buffer.from(challenge.data) : null, writer)
  }

  async function proceed(given: Buffer | null, writer: Writer): Promise<void> {
    isWaiting = true
    const { token, done } = await converse(given).catch(error => {
      throw failure(error)
    })
    isWaiting = false
    if (token !== null && token.length > TOKEN_BYTES_MAX) {
      throw failure(
        new GssError(`the token has ${token.length} bytes; the limit of PostgreSQL is ${TOKEN_BYTES_MAX}`, false),
      )
    }
    if (token === null && !done)
      throw failure(new GssError('the provider returned neither a token for the server nor done: true', false))
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
    // PostgreSQL sends its last token and AuthenticationOk in one packet.
    mayBeFollowed: true,
    isBound: false,
    get step() {
      if (isWaiting) return `waiting for a token for ${target} (step ${steps})`
      return isDone ? 'waiting for AuthenticationOk' : `waiting for the server's token (step ${steps})`
    },
    get finished() {
      return isDone
    },
  }
}

/**
 * The messages from the startup packet to the first ReadyForQuery (PostgreSQL manual, 54.2.1). The server is
 * not trusted until it has authenticated, so any unexpected message ends the connection.
 */
import type { Mechanism } from './auth/mechanism.ts'
import {
  type AuthContext,
  type AuthPolicy,
  type Credentials,
  checkAuthenticated,
  chooseMechanism,
} from './auth/policy.ts'
import { DatabaseError, ProtocolError } from './errors.ts'
import type { Progress } from './progress.ts'
import { type Authentication, type BackendMessage, decodeBackend } from './protocol/backend.ts'
import { writeStartup } from './protocol/frontend.ts'
import type { ConnectionTarget } from './target.ts'
import type { Wire, WireSink } from './wire.ts'

/** Limit on a message before authentication (libpq's is 30 000 bytes). */
export const STARTUP_MESSAGE_BYTES_MAX: number = 32 * 1024
/** Limit on the parameters a server reports; usual are about fifteen. */
const PARAMETERS_MAX = 256

/** The parameters of a new session, as the server reported them. */
export interface ServerSession {
  readonly processId: number
  /** Proves to the server that a cancel request is from this client. */
  readonly secret: Buffer
  /** ParameterStatus at the start, such as `server_version`. */
  readonly parameters: ReadonlyMap<string, string>
}

/** Conducts the conversation. Rejects with the reason that ended the connection. */
export function converse(
  wire: Wire,
  target: ConnectionTarget,
  parameters: readonly (readonly [string, string])[],
  circumstances: AuthContext,
  progress: Progress,
): Promise<ServerSession> {
  return new Promise((resolve, reject) => {
    const conversation = new Conversation(wire, target.auth, target, circumstances, progress, resolve)
    const sink: WireSink = {
      message(type, bytes, start, end) {
        conversation.receive(decodeBackend(type, bytes, start, end))
      },
      tooLong(_type, bodyBytes) {
        throw new ProtocolError(
          `the server sent a message of ${bodyBytes} bytes before the session began; at ` +
            `most ${STARTUP_MESSAGE_BYTES_MAX} are accepted`,
        )
      },
      flushed() {},
      closed: reject,
    }
    wire.sink = sink
    writeStartup(wire.writer, parameters)
    wire.flushSoon()
  })
}

/** The state of the conversation. Anything it throws ends the connection. */
class Conversation {
  readonly #wire: Wire
  readonly #policy: AuthPolicy
  readonly #credentials: Credentials
  readonly #circumstances: AuthContext
  readonly #progress: Progress
  readonly #done: (session: ServerSession) => void
  readonly #parameters = new Map<string, string>()
  #mechanism: Mechanism | null = null
  #thinking = false
  /** Messages received while a response was being computed, where the protocol permits them. */
  readonly #held: BackendMessage[] = []
  #authenticated = false
  #key: { readonly processId: number; readonly secret: Buffer } | null = null

  constructor(
    wire: Wire,
    policy: AuthPolicy,
    credentials: Credentials,
    circumstances: AuthContext,
    progress: Progress,
    done: (session: ServerSession) => void,
  ) {
    this.#wire = wire
    this.#policy = policy
    this.#credentials = credentials
    this.#circumstances = circumstances
    this.#progress = progress
    this.#done = done
  }

  receive(message: BackendMessage): void {
    if (message.kind === 'notice') return
    if (message.kind === 'error') throw new DatabaseError(message.fields)
    if (this.#thinking) {
      if (this.#mechanism?.mayBeFollowed !== true) {
        throw new ProtocolError(`the server sent ${message.kind} out of turn`)
      }
      this.#held.push(message)
      return
    }
    if (message.kind === 'authentication' && !this.#authenticated) {
      this.#authenticate(message.authentication)
      return
    }
    if (!this.#authenticated)
      throw new ProtocolError(`the server sent ${message.kind} before authentication was complete`)
    switch (message.kind) {
      case 'backendKeyData':
        this.#key = { processId: message.processId, secret: Buffer.from(message.secret) }
        break
      case 'parameterStatus':
        if (this.#parameters.size >= PARAMETERS_MAX) throw new ProtocolError('the server reports too many parameters')
        this.#parameters.set(message.name, message.value)
        break
      case 'readyForQuery':
        // A server without cancellation sends no key; process 0 does not exist.
        this.#done({ ...(this.#key ?? { processId: 0, secret: Buffer.alloc(4) }), parameters: this.#parameters })
        break
      default:
        throw new ProtocolError(`the server sent ${message.kind} during start-up`)
    }
  }

  #authenticate(challenge: Authentication): void {
    if (challenge.method === 'ok') {
      checkAuthenticated(this.#mechanism, this.#policy)
      this.#authenticated = true
      this.#progress.step = 'waiting for the session'
      return
    }
    this.#mechanism ??= chooseMechanism(challenge, this.#policy, this.#credentials, this.#circumstances)
    const thinking = this.#mechanism.respond(challenge, this.#wire.writer)
    this.#progress.follow(this.#mechanism)
    if (thinking === undefined) {
      this.#wire.flushSoon()
      return
    }
    this.#thinking = true
    // Held messages are bounded by the chunk being read.
    this.#wire.pause()
    thinking.then(() => this.#goOn()).catch(error => this.#wire.destroy(error))
  }

  #goOn(): void {
    this.#thinking = false
    this.#wire.flushSoon()
    this.#wire.resume()
    while (!this.#thinking) {
      const message = this.#held.shift()
      if (message === undefined) return
      this.receive(message)
    }
  }
}

/** An authentication mechanism as startup sees it: a conversation until the server sends AuthenticationOk. */
import { ConnectError } from '../errors.ts'
import type { Authentication } from '../protocol/backend.ts'
import type { Writer } from '../protocol/writer.ts'

export interface Mechanism {
  /** The usual name: `SCRAM-SHA-256`, `md5`, `password`. */
  readonly name: string
  /** What is being waited for, for error messages: "waiting for its challenge". */
  readonly step: string
  /**
   * Writes the response to the server's message.
   * @throws ConnectError on a message that is not part of the conversation
   */
  respond(challenge: Authentication, writer: Writer): Promise<void> | void
  /** True if the server can send the next message without waiting for a response: some steps have none. */
  readonly mayBeFollowed: boolean
  /** True if the conversation is bound to this TLS session. */
  readonly isBound: boolean
  /** True if AuthenticationOk is accepted: before this, a server could skip its own proof. */
  readonly finished: boolean
}

/** A mechanism with one request and one response; `answer` returns whether the request was its own. */
export function oneAnswer(name: string, answer: (challenge: Authentication, writer: Writer) => boolean): Mechanism {
  let hasAnswered = false
  return {
    name,
    step: 'waiting for AuthenticationOk',
    mayBeFollowed: false,
    isBound: false,
    respond(challenge, writer) {
      if (hasAnswered || !answer(challenge, writer)) {
        throw new ConnectError(`the server sent "${challenge.method}" out of turn during ${name} authentication`, false)
      }
      hasAnswered = true
    },
    get finished() {
      return hasAnswered
    },
  }
}

/** What a way of authenticating is to the start-up: a conversation of its own until the server says AuthenticationOk. */
import { ConnectError } from '../errors.ts'
import type { Authentication } from '../protocol/backend.ts'
import type { Writer } from '../protocol/writer.ts'

export interface Mechanism {
  /** As people write it: `SCRAM-SHA-256`, `md5`, `password`. */
  readonly name: string
  /** What is being waited for, for errors: "waiting for its challenge". */
  readonly step: string
  /** Writes the answer to what the server asked. Throws `ConnectError` on a step that is not part of the conversation. */
  respond(challenge: Authentication, writer: Writer): Promise<void> | void
  /** The server may go on behind its question without an answer: there may be none to give. */
  readonly mayBeFollowed: boolean
  /** The conversation is worth nothing outside of this TLS session. */
  readonly isBound: boolean
  /** AuthenticationOk is believed only now: before, a server could skip the proof that it knows us. */
  readonly finished: boolean
}

/** A mechanism that is asked once and answers once; `answer` says whether that was its question. */
export function oneAnswer(name: string, answer: (challenge: Authentication, writer: Writer) => boolean): Mechanism {
  let hasAnswered = false
  return {
    name,
    step: 'waiting to be let in',
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

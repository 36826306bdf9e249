/** What a way of authenticating is to the start-up: a conversation of its own until the server says AuthenticationOk. */
import type { Authentication } from '../protocol/backend.ts'
import type { Writer } from '../protocol/writer.ts'

export interface Mechanism {
  /** As people write it: `SCRAM-SHA-256`, `md5`, `password`. */
  readonly name: string
  /** Writes the answer to what the server asked. Throws `ConnectError` on a step that is not part of the conversation. */
  respond(challenge: Authentication, writer: Writer): Promise<void> | void
  /** AuthenticationOk is believed only now: before, a server could skip the proof that it knows us. */
  readonly finished: boolean
}

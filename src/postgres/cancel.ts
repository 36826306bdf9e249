/** Cancel requests, sent over a second connection (PostgreSQL manual, 54.2.7). */

import { Progress } from './progress.ts'
import { writeCancelRequest } from './protocol/frontend.ts'
import { Writer } from './protocol/writer.ts'
import { openSocket } from './socket.ts'
import type { ServerSession } from './startup-conversation.ts'
import type { ConnectionTarget } from './target.ts'

/** From opening the second connection to the server closing it. */
const CANCEL_TIMEOUT_MS = 5_000

/**
 * The outcome of a cancel request.
 * - `delivered`: the server has closed the second connection, so the signal has been sent and cannot arrive
 *   later.
 * - `not-sent`: the server has received nothing.
 * - `unknown`: the signal may still arrive. The first connection must not be reused.
 */
export type CancelOutcome = 'delivered' | 'not-sent' | 'unknown'

/** Requests cancellation of whatever the session runs when the request arrives. Never rejects. */
export async function requestCancel(target: ConnectionTarget, session: ServerSession): Promise<CancelOutcome> {
  const signal = AbortSignal.timeout(CANCEL_TIMEOUT_MS)
  const opened = await openSocket(target, signal, new Progress()).catch(() => null)
  if (opened === null) return 'not-sent'
  const { socket } = opened
  return new Promise(resolve => {
    const finish = (outcome: CancelOutcome): void => {
      signal.removeEventListener('abort', onAbort)
      socket.destroy()
      resolve(outcome)
    }
    const onAbort = (): void => finish('unknown')
    signal.addEventListener('abort', onAbort)
    const writer = new Writer(64)
    writeCancelRequest(writer, session.processId, session.secret)
    // The server sends no response; anything received is discarded.
    socket.resume()
    socket.on('error', () => finish('unknown'))
    socket.on('end', () => finish('delivered'))
    socket.write(writer.take())
  })
}

/** Cancel requests: a second connection that names the first (PostgreSQL manual, 54.2.7). */

import type { Session } from './conversation.ts'
import { Progress } from './progress.ts'
import { writeCancelRequest } from './protocol/frontend.ts'
import { Writer } from './protocol/writer.ts'
import { openSocket } from './socket.ts'
import type { ConnectionTarget } from './target.ts'

/** From opening the second connection to the server closing it. */
const CANCEL_TIMEOUT_MS = 5_000

/**
 * - `delivered`: the server has closed the second connection, so the signal has been sent; it can no longer come later.
 * - `not-sent`: the server has seen nothing.
 * - `unknown`: it may still come. The first connection must not be used for anything else again.
 */
export type CancelOutcome = 'delivered' | 'not-sent' | 'unknown'

/** Never rejects. Asks for the cancellation of whatever the session runs when the request arrives. */
export async function requestCancel(target: ConnectionTarget, session: Session): Promise<CancelOutcome> {
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
    // The server answers nothing; whatever came would be thrown away.
    socket.resume()
    socket.on('error', () => finish('unknown'))
    socket.on('end', () => finish('delivered'))
    socket.write(writer.take())
  })
}

/**
 * Connections on their way to a worker. Node keeps a connection open in the primary process until the worker
 * has accepted it. If the worker ends before that, another worker gets the connection; otherwise the client
 * would wait forever.
 */
import type { Worker } from 'node:cluster'

/** The parts of a worker's process that this file uses. */
type WorkerProcess = Pick<Worker, 'process'>

interface Connection {
  close(): void
}

interface ClusterMessage {
  readonly act?: string
  readonly seq?: number
  readonly ack?: number
}

interface Handoff {
  readonly message: ClusterMessage
  readonly connection: Connection
}

/**
 * Passes the connections that the worker has not accepted when it ends to `another` worker. The number of the
 * message stays the same, so Node accepts the other worker's acknowledgement. Without another worker, the
 * connections are closed.
 */
export function redirectHandoffsOf({ process }: WorkerProcess, another: () => WorkerProcess | null): void {
  const pending = new Map<number, Handoff>()
  let hasEnded = false
  const send = process.send.bind(process) as (...args: unknown[]) => boolean
  const redirect = ({ message, connection }: Handoff): void => {
    const other = another()
    if (other === null) connection.close()
    else other.process.send(message, connection as never)
  }
  const watched = (...args: unknown[]): boolean => {
    const [message, connection] = args as [ClusterMessage | null, Connection | undefined]
    if (message?.act !== 'newconn' || connection === undefined || message.seq === undefined) return send(...args)
    // Node reports the end of a process before the end of its channel, and sends connections until the
    // channel ends.
    if (hasEnded) {
      redirect({ message, connection })
      return true
    }
    pending.set(message.seq, { message, connection })
    return send(...args)
  }
  process.send = watched as typeof process.send
  process.on('internalMessage' as 'message', message => {
    const { ack } = message as ClusterMessage
    if (ack !== undefined) pending.delete(ack)
  })
  process.once('exit', () => {
    hasEnded = true
    for (const handoff of pending.values()) redirect(handoff)
    pending.clear()
  })
}

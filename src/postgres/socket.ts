/** Opens a socket to the server, encrypted as the target says, within its time. For sessions and for cancel requests. */
import { connect, type Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import { ConnectError } from './errors.ts'
import { during, type Progress } from './progress.ts'
import { type Address, type ConnectionTarget, describeTarget } from './target.ts'
import { upgrade } from './tls.ts'

/** After this much silence the kernel starts asking whether the other side is still there. */
const KEEP_ALIVE_MS = 30_000

export interface Opened {
  readonly socket: Socket
  /** The server's, DER; null if the connection is not encrypted. */
  readonly certificate: Buffer | null
}

/** Rejects with `ConnectError`; an aborted `signal` (deadline or shutdown) destroys the socket. */
export async function openSocket(target: ConnectionTarget, signal: AbortSignal, progress: Progress): Promise<Opened> {
  signal.throwIfAborted()
  const { address } = target
  let isConnected = false
  const raw = connectTo(address)
  // Whoever waits for something hears of an error; one in between ends the socket and must not end the process.
  raw.on('error', () => {})
  const onAbort = (): void => {
    raw.destroy(signal.reason)
  }
  signal.addEventListener('abort', onAbort)
  try {
    await connected(raw)
    isConnected = true
    raw.setNoDelay(true)
    raw.setKeepAlive(true, KEEP_ALIVE_MS)
    const socket = await upgrade(raw, address, target.tls, progress)
    return { socket, certificate: socket instanceof TLSSocket ? certificateOf(socket) : null }
  } catch (error) {
    raw.destroy()
    if (error instanceof ConnectError) throw error
    const reason = isConnected ? `${describe(error)} ${during(progress)}` : describe(error)
    throw new ConnectError(`cannot connect to ${describeTarget(target)}: ${reason}`, false, error)
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}

/**
 * Node makes this much memory for every read and gives back what was too much; an answer has some hundred bytes. Here reads share it, and what was read is
 * never overwritten.
 */
const PIECE_BYTES = 64 * 1024
/** With less of it left the next read gets another. */
const READ_BYTES_MIN = 16 * 1024

function connectTo(address: Address): Socket {
  let piece = Buffer.allocUnsafeSlow(PIECE_BYTES)
  const socket = connect({
    ...(address.kind === 'unix' ? { path: address.path } : { host: address.host, port: address.port }),
    onread: {
      buffer() {
        if (piece.length < READ_BYTES_MIN) piece = Buffer.allocUnsafeSlow(PIECE_BYTES)
        return piece
      },
      callback(bytesRead) {
        const chunk = piece.subarray(0, bytesRead)
        piece = piece.subarray(bytesRead)
        // As a socket does that has no memory of its own; what is done with it may stop the reading, and says so to the socket.
        socket.emit('data', chunk)
        return true
      },
    },
  })
  return socket
}

function connected(socket: Socket): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.once('error', reject)
    socket.once('connect', () => {
      socket.off('error', reject)
      resolve()
    })
  })
}

function certificateOf(socket: TLSSocket): Buffer {
  const certificate = socket.getPeerX509Certificate()
  // No cipher that Node offers by default goes without one.
  if (certificate === undefined) throw new ConnectError('the server showed no certificate', true)
  return certificate.raw
}

/** Trying several addresses fails with all their errors and an empty message of its own. */
function describe(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(describe).join(', ')
  return (error as Error).message
}

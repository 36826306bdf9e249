/**
 * Opens a socket to the server, encrypted as the target requires, within its time limit. Used for sessions
 * and cancel requests.
 */
import { connect, type Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import { ConnectError } from './errors.ts'
import { during, type Progress } from './progress.ts'
import { type Address, type ConnectionTarget, describeTarget } from './target.ts'
import { upgrade } from './tls.ts'

/** After this period of silence, the kernel starts sending keep-alive probes. */
const KEEP_ALIVE_MS = 30_000

/** An open socket. */
export interface OpenedSocket {
  readonly socket: Socket
  /** The server's certificate in DER; null if the connection is not encrypted. */
  readonly certificate: Buffer | null
}

/**
 * Opens the socket. Rejects with `ConnectError`; an aborted `signal` (deadline or shutdown) destroys the
 * socket.
 */
export async function openSocket(
  target: ConnectionTarget,
  signal: AbortSignal,
  progress: Progress,
): Promise<OpenedSocket> {
  signal.throwIfAborted()
  const { address } = target
  let isConnected = false
  const raw = connectTo(address)
  // Waiting code handles errors itself; an error in between closes the socket and must not end the process.
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
 * Node allocates this much memory for every read, although a response has some hundred bytes. Here, reads
 * share a block, and data already read is never overwritten.
 */
const BLOCK_BYTES = 64 * 1024
/** With less space left, the next read gets a new block. */
const READ_BYTES_MIN = 16 * 1024

function connectTo(address: Address): Socket {
  let piece = Buffer.allocUnsafeSlow(BLOCK_BYTES)
  const socket = connect({
    ...(address.kind === 'unix' ? { path: address.path } : { host: address.host, port: address.port }),
    onread: {
      buffer() {
        if (piece.length < READ_BYTES_MIN) piece = Buffer.allocUnsafeSlow(BLOCK_BYTES)
        return piece
      },
      callback(bytesRead) {
        const chunk = piece.subarray(0, bytesRead)
        piece = piece.subarray(bytesRead)
        // Emits `data` like an ordinary socket. A listener can pause reading.
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
  // Every cipher that Node offers by default requires a certificate.
  if (certificate === undefined) throw new ConnectError('the server presented no certificate', true)
  return certificate.raw
}

/** A connection to several addresses fails with an aggregate error whose own message is empty. */
function describe(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(describe).join(', ')
  return (error as Error).message
}

/**
 * The tool server over standard input and output: a message a line, an answer a line (the protocol's
 * transports, "stdio").
 */
import { once } from 'node:events'
import type { Readable, Writable } from 'node:stream'
import type { Answerer } from './answer.ts'
import { RPC, RPC_MESSAGE_BYTES_MAX, RpcError, type RpcResponse, rpcError } from './rpc.ts'

const NEWLINE = 0x0a

const TOO_LARGE = new RpcError(RPC.invalidRequest, `a message has at most ${RPC_MESSAGE_BYTES_MAX} bytes`)

/**
 * Resolves at the end of the input, or when the output is no longer read. Reads no more input than its
 * responses are read.
 */
export async function answerLines(input: Readable, output: Writable, answerer: Answerer): Promise<void> {
  let gone = false
  output.once('error', () => {
    gone = true
  })
  output.once('close', () => {
    gone = true
  })
  for await (const line of splitLines(input)) {
    const answer = line === null ? rpcError(TOO_LARGE, null) : isBlank(line) ? null : answerer.answer(line)
    if (gone) return
    if (answer !== null && !output.write(printLine(answer))) await drained(output)
  }
}

/** `JSON.stringify` leaves no line break inside. */
function printLine(answer: RpcResponse): string {
  return `${JSON.stringify(answer)}\n`
}

/** Splits the input into lines; null for a line that is too long, which is discarded. */
async function* splitLines(input: Readable): AsyncGenerator<Buffer | null, void> {
  let parts: Buffer[] = []
  let bytes = 0
  const add = (part: Buffer): void => {
    bytes += part.length
    if (bytes <= RPC_MESSAGE_BYTES_MAX) parts.push(part)
    else parts = []
  }
  const take = (): Buffer | null => {
    const line = bytes > RPC_MESSAGE_BYTES_MAX ? null : Buffer.concat(parts)
    parts = []
    bytes = 0
    return line
  }
  for await (const chunk of input) {
    const buffer = Buffer.from(chunk)
    let start = 0
    for (let end = buffer.indexOf(NEWLINE); end >= 0; end = buffer.indexOf(NEWLINE, start)) {
      add(buffer.subarray(start, end))
      yield take()
      start = end + 1
    }
    add(buffer.subarray(start))
  }
  if (bytes > 0) yield take()
}

function isBlank(line: Buffer): boolean {
  return line.every(byte => byte === 0x20 || byte === 0x09 || byte === 0x0d)
}

async function drained(output: Writable): Promise<void> {
  const controller = new AbortController()
  const { signal } = controller
  try {
    await Promise.race([once(output, 'drain', { signal }), once(output, 'close', { signal })])
  } catch {
    // The output is broken; the next write fails.
  } finally {
    controller.abort()
  }
}

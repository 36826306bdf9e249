/**
 * docs/guides/agents.md#rules-and-limits: over standard input a message is a line, with the same codes as
 * over HTTP.
 */
import { once } from 'node:events'
import { PassThrough, Readable, Writable } from 'node:stream'
import { expect, test } from 'vitest'
import type { Answerer } from './answer.ts'
import { decodeMessage, RPC_MESSAGE_BYTES_MAX, rpcError, rpcResult } from './rpc.ts'
import { answerLines } from './stdio.ts'

/** Answers with the method's name. */
const echo: Answerer = {
  answer(bytes) {
    try {
      const message = decodeMessage(bytes)
      return message.kind === 'request' ? rpcResult(message.id, { method: message.method }) : null
    } catch (error) {
      return rpcError(error, null)
    }
  },
}

async function answersTo(chunks: readonly (string | Buffer)[]): Promise<readonly unknown[]> {
  const output = new PassThrough()
  const lines: string[] = []
  output.on('data', chunk => lines.push(String(chunk)))
  await answerLines(Readable.from(chunks), output, echo)
  const text = lines.join('')
  return text === ''
    ? []
    : text
        .trimEnd()
        .split('\n')
        .map(line => JSON.parse(line))
}

function ask(method: string, id: number): string {
  return JSON.stringify({ jsonrpc: '2.0', id, method })
}

function answer(method: string, id: number): object {
  return { jsonrpc: '2.0', id, result: { method } }
}

test('each line is a message, however the input is split into chunks', async () => {
  const text = `${ask('a', 1)}\n${ask('b', 2)}\r\n\n  \n${ask('ü', 3)}`
  expect(await answersTo([text])).toEqual([answer('a', 1), answer('b', 2), answer('ü', 3)])
  expect(await answersTo([...Buffer.from(text)].map(byte => Buffer.from([byte])))).toEqual([
    ...[answer('a', 1), answer('b', 2), answer('ü', 3)],
  ])
})

test('notifications have no response, and invalid messages have an error', async () => {
  expect(
    await answersTo(['{"jsonrpc":"2.0","method":"x"}\n', 'nonsense\n', '[]\n', Buffer.from([0xff, 0x0a])]),
  ).toEqual([
    expect.objectContaining({ error: expect.objectContaining({ code: -32_700 }) }),
    expect.objectContaining({ error: expect.objectContaining({ code: -32_600 }) }),
    expect.objectContaining({ error: expect.objectContaining({ code: -32_700 }) }),
  ])
})

test('a line that is too long is refused, and the next one answered', async () => {
  const whole = ask('a', 1).padEnd(RPC_MESSAGE_BYTES_MAX)
  expect(await answersTo([`${whole}\n`])).toEqual([answer('a', 1)])
  const piece = 'x'.repeat(60_000)
  expect(await answersTo([piece, piece, piece, piece, '\n', `${ask('b', 2)}\n`, `${whole} \n`])).toEqual([
    { jsonrpc: '2.0', id: null, error: { code: -32_600, message: 'a message has at most 131072 bytes' } },
    answer('b', 2),
    expect.objectContaining({ id: null }),
  ])
})

test('stops reading input while its responses are not read', async () => {
  let taken = 0
  const input = Readable.from(
    (function* () {
      for (; taken < 10_000; taken++) yield `${ask('x', taken)}\n`
    })(),
    { highWaterMark: 1 },
  )
  const output = new PassThrough({ highWaterMark: 100 })
  const done = answerLines(input, output, echo)
  await once(output, 'readable')
  // All that can happen without a reader has happened when the event loop has come round a few times.
  for (let round = 0; round < 100; round++) await new Promise(resolve => setImmediate(resolve))
  expect(taken).toBeLessThan(20)
  output.resume()
  await done
  expect(taken).toBe(10_000)
})

test('ends when the client stops reading', async () => {
  const input = new PassThrough()
  const output = new Writable({ write: (_chunk, _encoding, done) => done(new Error('EPIPE')) })
  const done = answerLines(input, output, echo)
  input.write(`${ask('a', 1)}\n`)
  await new Promise(resolve => output.once('close', resolve))
  input.write(`${ask('b', 2)}\n`)
  await done
  expect(input.destroyed).toBe(true)
})

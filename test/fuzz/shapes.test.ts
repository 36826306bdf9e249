/**
 * What an allow-list approves (decision 0013): two requests with one line run one statement, but for the order of
 * what is joined by `and` or `or`, and for the page. A shape that forgot something would let the second do what only the first was approved for.
 */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { printLine } from '../../src/rest/allow-list/line.ts'
import { parseRequestPattern } from '../../src/rest/allow-list/request-pattern.ts'
import { parsePath } from '../../src/rest/path.ts'
import { type DataRoute, readRequest } from '../../src/rest/request.ts'
import { summary } from './aggregate-requests.ts'
import { call } from './call-requests.ts'
import { recordingCaller, recordingReader, recordingWriter } from './reader.ts'
import { request } from './requests.ts'
import { type Asked, incomingOf, type Sent } from './world.ts'
import { write } from './write-requests.ts'

const REQUESTS = 2_000

/** Requests by the line that would be recorded for them, with the words of what they ran; those of which nothing ran are left out. */
async function runByLine(ask: Asked, requests: readonly Sent[]): Promise<Run> {
  const lines = new Map<string, Map<string, string>>()
  let answered = 0
  for (const sent of requests) {
    const { ran, error } = await ask(sent)
    if (ran.length === 0 || error !== null) continue
    answered += 1
    const incoming = incomingOf(sent)
    const shape = printLine(readRequest(incoming, parsePath(incoming.path) as DataRoute))
    const line = shape.line()
    expect(parseRequestPattern(line).key).toBe(shape.key)
    const known = lines.get(line) ?? new Map<string, string>()
    lines.set(line, known.set(wordsOf(ran.map(({ text }) => text)), JSON.stringify(sent)))
  }
  return { answered, lines }
}

interface Run {
  readonly answered: number
  readonly lines: ReadonlyMap<string, ReadonlyMap<string, string>>
}

/** The words of the statements, whatever their order; numbers of parameters, pages and the sort keys that make cursors are left out. */
function wordsOf(texts: readonly string[]): string {
  const words = texts.flatMap(text =>
    text
      .replace(/ LIMIT (\$?\d+)| OFFSET \$?\d+/g, '')
      .replace(/\$\d+/g, '$')
      .split(/[\s,()]+/),
  )
  return words.sort().join(' ')
}

/** Answers how many requests had the line of one before them. */
async function expectOneEach(ask: Asked, arbitrary: fc.Arbitrary<Sent>): Promise<number> {
  const { answered, lines } = await runByLine(ask, fc.sample(arbitrary, REQUESTS))
  for (const [line, found] of lines) {
    if (found.size > 1) expect.fail(`${line}\nstands for\n${[...found].map(pair => pair.join('\n  ')).join('\n')}`)
  }
  return answered - lines.size
}

const reading = (path: fc.Arbitrary<string>): fc.Arbitrary<Sent> =>
  path.filter(text => !/stream=|cursor=|limit=|offset=/.test(text)).map(text => ({ method: 'GET', path: text }))

test('reads of one key have one shape', { timeout: 60_000 }, async () => {
  expect(await expectOneEach(recordingReader(), reading(request))).toBeGreaterThan(100)
})

test('aggregates and plans', { timeout: 60_000 }, async () => {
  expect(await expectOneEach(recordingReader(), reading(summary))).toBeGreaterThan(100)
})

test('writes, but for the columns of their bodies and for asking less than is approved', {
  timeout: 60_000,
}, async () => {
  const writing = write
    .filter(({ path, headers }) => path.startsWith('/api/customers') && !JSON.stringify(headers).includes('minimal'))
    .map(sent =>
      sent.method === 'DELETE' ? sent : { ...sent, body: '{"id": 1, "mail": "x", "name": "y", "zip": "z"}' },
    )
  expect(await expectOneEach(recordingWriter(), writing)).toBeGreaterThan(100)
})

test('calls by GET, but for the format of the result', { timeout: 60_000 }, async () => {
  const calling = call.filter(
    ({ method, path, headers }) =>
      method === 'GET' && !/limit=|offset=/.test(path) && !JSON.stringify(headers).includes('binary'),
  )
  expect(await expectOneEach(recordingCaller(), calling)).toBeGreaterThan(100)
})

/**
 * The allow-list (decision 0013): two requests with the same line run the same statement, except for the
 * order of operands of `and` and `or`, and for the page. A shape that omitted a detail would allow requests
 * that were never approved.
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

/**
 * Requests by the line recorded for them, with the words of their statements. Requests without a statement
 * are omitted.
 */
async function runByLine(ask: Asked, requests: readonly Sent[]): Promise<Run> {
  const lines = new Map<string, Map<string, string>>()
  let answered = 0
  for (const sent of requests) {
    const { ran, error } = await ask(sent)
    if (ran.length === 0 || error !== null) continue
    answered += 1
    const incoming = incomingOf(sent)
    const shape = printLine(readRequest(incoming, parsePath(incoming.path) as DataRoute, { maxQueryParameters: 0 }))
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

/**
 * The words of the statements in any order, without numbers of parameters, pages, and the sort keys of
 * cursors.
 */
function wordsOf(texts: readonly string[]): string {
  const words = texts.flatMap(text =>
    text
      .replace(/ LIMIT (\$?\d+)| OFFSET \$?\d+/g, '')
      .replace(/\$\d+/g, '$')
      .split(/[\s,()]+/),
  )
  return words.sort().join(' ')
}

/** Returns the number of requests with the line of an earlier one. */
async function expectOneEach(ask: Asked, arbitrary: fc.Arbitrary<Sent>): Promise<number> {
  const { answered, lines } = await runByLine(ask, fc.sample(arbitrary, REQUESTS))
  for (const [line, found] of lines) {
    if (found.size > 1) expect.fail(`${line}\nstands for\n${[...found].map(pair => pair.join('\n  ')).join('\n')}`)
  }
  return answered - lines.size
}

const reading = (path: fc.Arbitrary<string>): fc.Arbitrary<Sent> =>
  path.filter(text => !/stream=|cursor=|limit=|offset=/.test(text)).map(text => ({ method: 'GET', path: text }))

test('reads with the same plan key have the same shape', { timeout: 60_000 }, async () => {
  expect(await expectOneEach(recordingReader(), reading(request))).toBeGreaterThan(100)
})

test('aggregates and plans with the same line have the same statement', { timeout: 60_000 }, async () => {
  expect(await expectOneEach(recordingReader(), reading(summary))).toBeGreaterThan(100)
})

test('writes have the same statement, except for the columns of their bodies and for fewer returned columns', {
  timeout: 60_000,
}, async () => {
  const writing = write
    .filter(({ path, headers }) => path.startsWith('/api/customers') && !JSON.stringify(headers).includes('minimal'))
    .map(sent =>
      sent.method === 'DELETE' ? sent : { ...sent, body: '{"id": 1, "mail": "x", "name": "y", "zip": "z"}' },
    )
  expect(await expectOneEach(recordingWriter(), writing)).toBeGreaterThan(100)
})

test('calls by GET have the same statement, except for the result format', { timeout: 60_000 }, async () => {
  const calling = call.filter(
    ({ method, path, headers }) =>
      method === 'GET' && !/limit=|offset=/.test(path) && !JSON.stringify(headers).includes('binary'),
  )
  expect(await expectOneEach(recordingCaller(), calling)).toBeGreaterThan(100)
})

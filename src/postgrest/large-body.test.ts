import { expect, test } from 'vitest'
import type { Incoming } from '../exchange.ts'
import { jsonPieces } from './body-json.ts'
import { convertedBody, convertLargeBody } from './large-body.ts'

const FORM = 'application/x-www-form-urlencoded'

function incoming(type: string, body: string, isLarge = true): Incoming {
  return { headers: { 'content-type': type }, body: Buffer.from(body), isLarge } as unknown as Incoming
}

function convert(type: string, body: string, rowsMax = 1_000): unknown {
  return JSON.parse([...(jsonPieces(type, Buffer.from(body), rowsMax) ?? [])].join(''))
}

test('a CSV becomes one object for each line', () => {
  expect(convert('text/csv', 'a,b\n1,"x ""y"", z"\r\nNULL,\n')).toEqual([
    { a: '1', b: 'x "y", z' },
    { a: null, b: '' },
  ])
  expect(convert('text/csv', 'a\n\nb')).toEqual([{ a: '' }, { a: 'b' }])
  expect([convert('text/csv', ''), convert('text/csv', 'a,b\n')]).toEqual([[], []])
})

test('a line with another number of cells than the header is refused', () => {
  expect(() => convert('text/csv', 'a,b\n1,2\n3')).toThrow('All lines must have same number of fields')
})

test('a CSV ends after the first row above the limit', () => {
  expect(convert('text/csv', 'a\n1\n2\n3\n4', 2)).toEqual([{ a: '1' }, { a: '2' }, { a: '3' }])
})

test('a form becomes one object', () => {
  expect(convert(FORM, 'a=1&b=x+y%26z&&c&a=2&d=p=q')).toEqual({ a: '2', b: 'x y&z', c: '', d: 'p=q' })
  expect(convert(FORM, '')).toEqual({})
})

test('other bodies and small ones are not converted', () => {
  expect(convertLargeBody(incoming('application/json', '{}'), 10)).toBeNull()
  expect(convertLargeBody(incoming('text/csv', 'a\n1', false), 10)).toBeNull()
})

test.each([
  ['text/csv', `a,b\n${'1,2\n'.repeat(50_000)}`],
  [FORM, 'a=1&'.repeat(100_000)],
])('a large body of %s is converted in many turns of the event loop', async (type, body) => {
  const request = incoming(type, body)
  let turns = 0
  let isDone = false
  const count = () => {
    turns += 1
    if (!isDone) setImmediate(count)
  }
  setImmediate(count)
  await convertLargeBody(request, 100_000)
  isDone = true
  expect(turns).toBeGreaterThan(30)
  expect(convertedBody(request)?.toString()).toBe(JSON.stringify(convert(type, body, 100_000)))
})

/** Heads of requests, of which the same ones share what was made of them. */
import { expect, test } from 'vitest'
import { type Head, Heads } from './heads.ts'

const HEAD: Head = { method: 'GET', path: '/rest/v1/orders', headers: { accept: '*/*', prefer: 'count=exact' } }

function madeBy() {
  const heads = new Heads(head => ({ head }))
  return (head: Head, connection: object = {}) => heads.of({ ...head, connection })
}

test.each([
  ['one connection', {}],
  ['several connections', undefined],
])('the same head on %s is read once', (_, connection) => {
  const made = madeBy()
  const first = made(HEAD, connection)
  expect(made({ ...HEAD, headers: { ...HEAD.headers } }, connection)).toBe(first)
})

test.each<readonly [string, Partial<Head>]>([
  ['method', { method: 'HEAD' }],
  ['path', { path: '/rest/v1/orders2' }],
  ['value', { headers: { accept: '*/*', prefer: 'count=planned' } }],
  ['name', { headers: { accept: '*/*', range: 'count=exact' } }],
  ['number of headers', { headers: { accept: '*/*' } }],
  ['border', { headers: { accept: '*/*prefer', '': 'count=exact' } }],
])('a head with another %s is read itself, and so is the one after it', (_, change) => {
  const made = madeBy()
  const connection = {}
  const other = { ...HEAD, ...change }
  for (const head of [HEAD, other, HEAD, other]) expect(made(head, connection).head).toMatchObject(head)
})

test('a head of more than 4000 characters is read each time', () => {
  const made = madeBy()
  const long = { ...HEAD, headers: { authorization: 'x'.repeat(4_000) } }
  const connection = {}
  expect(made(long, connection)).not.toBe(made(long, connection))
})

test('a header with a list of values is compared as it is sent', () => {
  const made = madeBy()
  const connection = {}
  const listed = (...values: string[]): Head => ({ ...HEAD, headers: { 'set-cookie': values } })
  expect(made(listed('a', 'b'), connection)).toBe(made(listed('a', 'b'), connection))
  expect(made(listed('a', 'c'), connection)).not.toBe(made(listed('a', 'b'), connection))
})

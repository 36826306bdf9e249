import { brotliDecompressSync, constants, createBrotliDecompress, createGunzip, gunzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import type { Answer } from '../exchange.ts'
import { type Coding, compress, compressStream, createCompression, negotiateEncoding } from './compression.ts'

describe('the coding', () => {
  test.each([
    ['gzip', 'gzip'],
    ['br', 'br'],
    ['gzip, deflate, br', 'br'],
    ['gzip;q=1.0, br;q=0.5', 'gzip'],
    ['GZIP', 'gzip'],
    ['x-gzip', 'gzip'],
    ['*', 'br'],
    ['br;q=0, *', 'gzip'],
    ['gzip;q=0.001', 'gzip'],
    ['gzip ; q=0.5 , identity;q=0.1', 'gzip'],
    ['', 'identity'],
    ['identity', 'identity'],
    ['deflate, zstd', 'identity'],
    ['gzip;q=0', 'identity'],
    ['gzip;q=0, br;q=0.000', 'identity'],
    ['identity, gzip;q=0.5', 'identity'],
    ['gzip;q=x', 'identity'],
    ['gzip;q=2', 'identity'],
    [';;;,,,=', 'identity'],
  ])('for "%s" is %s', (accepted, coding) => {
    expect(negotiateEncoding(accepted)).toBe(coding)
  })
})

describe('the choice', () => {
  const { choose } = createCompression(1_024)
  const answer = (headers: Record<string, string> = {}): Answer => ({
    status: 200,
    headers: { 'Content-Type': 'application/json; charset=utf-8', ...headers },
    body: null,
  })
  const gzip = { 'accept-encoding': 'gzip' }

  test('is a coding from the threshold on and for every stream', () => {
    expect([1_023, 1_024, null].map(bytes => choose(gzip, answer(), bytes))).toEqual(['none', 'gzip', 'gzip'])
  })

  test('is identity with Vary if the client accepts no coding', () => {
    expect([choose({}, answer(), 1_024), choose({}, answer(), 1_023)]).toEqual(['identity', 'none'])
  })

  test.each(['no-transform', 'No-Transform', 'no-cache, no-transform', 'no-transform,max-age=0'])(
    'is identity if the request or the response has %s',
    cacheControl => {
      expect(choose({ ...gzip, 'cache-control': cacheControl }, answer(), 9_999)).toBe('identity')
      expect(choose(gzip, answer({ 'Cache-Control': cacheControl }), 9_999)).toBe('identity')
    },
  )

  test.each(['no-cache', 'x-no-transform', 'no-transformer'])('is a coding for Cache-Control: %s', cacheControl => {
    expect(choose({ ...gzip, 'cache-control': cacheControl }, answer(), 9_999)).toBe('gzip')
  })

  test('skips responses that have a coding or Vary, or are not text', () => {
    const others = [{ 'Content-Encoding': 'gzip' }, { Vary: 'Accept-Encoding' }, { 'Content-Type': 'image/png' }]
    expect(others.map(headers => choose(gzip, answer(headers), 9_999))).toEqual(['none', 'none', 'none'])
  })

  test('is correct for many different Accept-Encoding headers', () => {
    for (let n = 0; n < 1_000; n++) expect(choose({ 'accept-encoding': `gzip, x-${n}` }, answer(), 9_999)).toBe('gzip')
  })

  test('is disabled with compress_min_bytes 0', () => {
    expect(createCompression(0).choose(gzip, answer(), 1e9)).toBe('none')
  })
})

const CODINGS: readonly Coding[] = ['br', 'gzip']
const decode = (bytes: Buffer, coding: Coding) => (coding === 'br' ? brotliDecompressSync(bytes) : gunzipSync(bytes))

test.each(CODINGS)('%s: a body of any size can be decoded', async coding => {
  for (const size of [0, 1, 16_384, 16_385, 3_000_000]) {
    const body = Buffer.from('{"id":1,"name":"northwind"},'.repeat(size / 28 + 1)).subarray(0, size)
    expect(decode(await compress(body, coding), coding).equals(body)).toBe(true)
  }
})

/** The text that a client can decode from the parts received so far. */
async function readable(parts: readonly Buffer[], coding: Coding): Promise<string> {
  const decoder =
    coding === 'br'
      ? createBrotliDecompress({ finishFlush: constants.BROTLI_OPERATION_FLUSH })
      : createGunzip({ finishFlush: constants.Z_SYNC_FLUSH })
  let text = ''
  for (const part of parts) decoder.write(part)
  decoder.end()
  for await (const chunk of decoder) text += chunk
  return text
}

describe.each(CODINGS)('a stream in %s', coding => {
  test('can be decoded chunk by chunk', async () => {
    const lines = Array.from({ length: 50 }, (_, n) => Buffer.from(`{"id":${n}}\n`.repeat(n * 100)))
    async function* body(): AsyncGenerator<Buffer> {
      yield* lines
    }
    const parts: Buffer[] = []
    let expected = ''
    for await (const part of compressStream(body(), coding)) {
      parts.push(part)
      expected += lines[parts.length - 1]?.toString() ?? ''
      if (parts.length % 10 === 1) expect(await readable(parts, coding)).toBe(expected)
    }
    expect(decode(Buffer.concat(parts), coding).toString()).toBe(Buffer.concat(lines).toString())
  })

  test('ends with the error line, whether the body or its consumer threw the error', async () => {
    let closed = 0
    async function* body(fails: boolean): AsyncGenerator<Buffer> {
      try {
        yield Buffer.from('first\n')
        if (fails) throw new Error('broken')
        yield Buffer.from('second\n')
      } catch (error) {
        yield Buffer.from(`${(error as Error).message}\n`)
        throw error
      } finally {
        closed += 1
      }
    }
    const broken: Buffer[] = []
    const all = async () => {
      for await (const part of compressStream(body(true), coding)) broken.push(part)
    }
    await expect(all()).rejects.toThrow('broken')
    expect(await readable(broken, coding)).toBe('first\nbroken\n')

    const slow = compressStream(body(false), coding)
    const parts = [(await slow.next()).value as Buffer]
    parts.push((await slow.throw(new Error('too slow'))).value as Buffer)
    expect(await readable(parts, coding)).toBe('first\ntoo slow\n')
    await expect(slow.next()).rejects.toThrow('too slow')

    const left = compressStream(body(false), coding)
    await left.next()
    await left.return(undefined)
    expect(closed).toBe(3)
  })
})

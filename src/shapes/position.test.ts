import fc from 'fast-check'
import { expect, test } from 'vitest'
import { printToken, readToken } from '../realtime/snapshot.ts'
import { createHandle, digestOf, isOffset, lsnOf, offsetOf, parseHandle, tokenOf } from './position.ts'

const EPOCH = 'Ab-_1234'
const token = (xmin: bigint, xmax: bigint, open: bigint[] = []) => printToken(EPOCH, { xmin, xmax, open })
const handleAt = (text: string) => parseHandle(createHandle(digestOf('a'), text, 1))

test('an offset names the transactions that were still running', () => {
  expect(offsetOf(token(812n, 812n))).toBe('812_0')
  expect(offsetOf(token(800n, 812n, [800n, 811n]))).toBe('812_91491')
})

test('an offset and the epoch of its handle give the original resume token', () => {
  const distances = fc.uniqueArray(fc.bigInt({ min: 1n, max: 999n }), { maxLength: 16 })
  fc.assert(
    fc.property(fc.bigInt({ min: 1_000n, max: 2n ** 61n }), distances, (xmax, all) => {
      const open = all.map(distance => xmax - distance).toSorted((a, b) => (a < b ? -1 : 1))
      const made = token(open[0] ?? xmax, xmax, open)
      const handle = handleAt(token(1n, 1n))
      expect(handle === null ? null : tokenOf(handle, offsetOf(made))).toBe(made)
    }),
  )
})

test('0_0 and 0_inf are the start of the handle', () => {
  const handle = handleAt(token(9n, 12n, [9n]))
  for (const offset of ['0_0', '0_inf'])
    expect(handle === null ? null : tokenOf(handle, offset)).toBe(token(9n, 12n, [9n]))
})

test('an offset before the start of its handle is the start, and a later one includes it', () => {
  const handle = handleAt(token(800n, 812n, [800n, 811n]))
  const tokens = ['700_0', '805_0', '820_0', '820_9171'].map(offset => handle && tokenOf(handle, offset))
  const start = token(800n, 812n, [800n, 811n])
  expect(tokens).toEqual([start, token(811n, 812n, [811n]), token(820n, 820n), token(820n, 820n)])
})

test('the number in a stream of events includes no transaction that was still running', () => {
  expect(lsnOf(token(800n, 812n, [800n, 811n]))).toBe('800')
  expect(readToken(token(800n, 800n), EPOCH)?.open).toEqual([])
})

test('a text that is neither an offset nor a handle is refused', () => {
  for (const text of ['', '1', '1_', '_1', '1_a', '-1_0', '1_0_0', `${'9'.repeat(21)}_0`])
    expect(isOffset(text)).toBe(false)
  for (const text of ['', 'x', `${digestOf('a')}-${EPOCH}-1_0`, `${digestOf('a')}-short-1_0-1`])
    expect(parseHandle(text)).toBeNull()
  const handle = handleAt(token(5n, 5n))
  for (const offset of ['5_977', '5_8', '5_99', '5_98', `${2n ** 62n + 1n}_0`])
    expect(handle === null ? null : tokenOf(handle, offset)).toBeNull()
})

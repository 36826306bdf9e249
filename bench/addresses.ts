/**
 * The cost of a million distinct client addresses for the rate limit, in resident memory of this process and
 * in time.
 * Run with `npx tsx --expose-gc bench/addresses.ts`. The addresses are processed like those of an attacker,
 * from the socket's text to the decision: half of them consecutive IPv4 addresses, half consecutive IPv6
 * networks, each three times.
 */
import { createClientAddress } from '../src/limits/client-address.ts'
import { createRateLimit } from '../src/limits/rate.ts'

const ADDRESSES = 1_000_000
const TURNS = 3

const collect = globalThis.gc
if (collect === undefined) throw new Error('run with --expose-gc: npx tsx --expose-gc bench/addresses.ts')

const clientAddress = createClientAddress([])
const before = resident()
const rate = createRateLimit({ rate: 1, burst: TURNS, now: () => 0, seed: 0x12345678 })
const startedAt = performance.now()
let refused = 0
for (let turn = 0; turn < TURNS; turn++) {
  for (let n = 0; n < ADDRESSES; n++) if (rate?.take(clientAddress(textOf(n), undefined)) !== true) refused++
}
const microseconds = ((performance.now() - startedAt) * 1_000) / (ADDRESSES * TURNS)
const megabytes = resident() - before
// No address has exceeded its burst, so a table that confuses addresses would reject some; after this, every
// burst is used up. The table must stay alive until its memory has been measured.
if (rate?.take(clientAddress(textOf(0), undefined)) !== false) throw new Error('a bucket was forgotten')
if (refused > 0) throw new Error(`${refused} requests were refused`)

console.log(`addresses: memory ${megabytes.toFixed(1)} MB`)
console.log(`addresses: request ${microseconds.toFixed(2)} µs`)

function textOf(n: number): string {
  const [high, low] = [n >>> 16, n & 0xffff]
  return n % 2 === 0
    ? `10.${high & 0xff}.${low >>> 8}.${low & 0xff}`
    : `2001:db8:${high.toString(16)}:${low.toString(16)}::7`
}

function resident(): number {
  collect?.()
  return process.memoryUsage().rss / 2 ** 20
}

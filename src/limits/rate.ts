/**
 * Requests per client address: a token bucket for each, in bounded memory (docs/reference/limits.md#requests-per-address).
 *
 * A bucket is one number: when it will be full again, in tokens since the beginning – time is counted in tokens too, `rate` of them a second. Taking one
 * moves that by one; there is none left when it would lie more than `burst` ahead. A bucket that is full is as good as none, so nothing has to be
 * swept: its place is free for whoever comes.
 *
 * The table is like a processor's cache: an address has its set, by a hash that nobody outside knows, and any of its 16 places. In a set without a free
 * place the fullest bucket goes: it loses the fewest tokens, so least is given away. A client who has emptied his bucket is therefore the last to be
 * forgotten: to be so early he would have to empty fifteen others of the same set first, each of which has a burst of its own anyway.
 */
import { type Address, isIPv4 } from './address.ts'

export interface RateLimit {
  /** Takes a token from the bucket of this address; false when it has none left. */
  take(address: Address): boolean
}

export interface RateLimitOptions {
  /** Tokens a second; 0: no limit. */
  readonly rate: number
  /** Tokens in a full bucket; 0: no limit. */
  readonly burst: number
  /** Milliseconds, from any monotonic clock. */
  readonly now: () => number
  /** Any secret number of 32 bits: without it nobody can choose addresses that meet in one set. */
  readonly seed: number
  /** A power of two. */
  readonly sets?: number
}

/** 2 097 152 buckets of 16 bytes: room for a million addresses at a time, of which one in some thousand finds its set full. */
const SETS = 131_072
const WAYS = 16

/** Additions of fractions are not exact; one token in a million is nobody's loss. */
const TOLERANCE = 1e-6

/** The first word of an IPv4 address's key; as IPv6 it would be of a multicast group, from which nothing comes (RFC 4291, 2.7). */
const OF_IPV4 = 0xffffffff

/** Null: switched off. */
export function createRateLimit({ rate, burst, now, seed, sets = SETS }: RateLimitOptions): RateLimit | null {
  if (rate === 0 || burst === 0) return null
  const began = now()
  const tokensPerMs = rate / 1_000
  // Pages of them that were never written to take no memory.
  const high = new Uint32Array(sets * WAYS)
  const low = new Uint32Array(sets * WAYS)
  const fullAt = new Float64Array(sets * WAYS)

  /** The place of its bucket, or the one that is its own from now on. */
  function placeOf(first: number, second: number): number {
    const start = (hash(first, second, seed) & (sets - 1)) * WAYS
    for (let at = start; at < start + WAYS; at++) if (low[at] === second && high[at] === first) return at
    let fullest = start
    for (let at = start + 1; at < start + WAYS; at++) if ((fullAt[at] ?? 0) < (fullAt[fullest] ?? 0)) fullest = at
    high[fullest] = first
    low[fullest] = second
    fullAt[fullest] = 0
    return fullest
  }

  return {
    take(address) {
      const ofIPv4 = isIPv4(address)
      // A household or a machine has 2^64 addresses of IPv6, so the network is what counts.
      const at = placeOf(ofIPv4 ? OF_IPV4 : (address[0] ?? 0), (ofIPv4 ? address[3] : address[1]) ?? 0)
      const present = (now() - began) * tokensPerMs
      const next = Math.max(fullAt[at] ?? 0, present) + 1
      if (next - present > burst + TOLERANCE) return false
      fullAt[at] = next
      return true
    },
  }
}

/** The finalizer of MurmurHash3 over both words: every bit of the address and of the seed changes half of the result. */
function hash(first: number, second: number, seed: number): number {
  return mixed(mixed(first ^ seed) ^ second ^ Math.imul(seed, 0x9e3779b1))
}

function mixed(word: number): number {
  let bits = word
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b)
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35)
  return bits ^ (bits >>> 16)
}

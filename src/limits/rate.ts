/**
 * The rate limit per client address: a token bucket each, in bounded memory
 * (docs/reference/limits.md#requests-per-address).
 * A bucket is one number: the time at which it will be full again, measured in tokens since the start, at
 * `rate` tokens a second. Taking a token adds one; none is left if the result is more than `burst` ahead. A
 * full bucket equals no bucket, so expired entries need no cleanup: their places can be reused.
 * The table is organized like a processor's cache: an address hashes, with a secret seed, to a set of 16
 * places. If the set has no free place, the fullest bucket is replaced, which gives away the fewest tokens. A
 * client with an empty bucket is therefore replaced last; to force it, an attacker would have to empty
 * fifteen other buckets of the same set, each of which has its own burst.
 */
import { type IpAddress, isIPv4 } from './address.ts'

/** A rate limit. */
export interface RateLimit {
  /**
   * Takes a token for this address; false if none is left. The answer is a promise if the tokens are counted
   * in another process.
   */
  take(address: IpAddress): boolean | Promise<boolean>
}

/** A rate limit of this process alone. */
export interface LocalRateLimit extends RateLimit {
  take(address: IpAddress): boolean
}

/** Token buckets by the two words of a key. */
export interface TokenBuckets {
  /** Whole tokens in a bucket. */
  left(first: number, second: number): number
  /** Takes up to `tokens`, and returns how many. */
  take(first: number, second: number, tokens: number): number
  /** Puts tokens back. */
  give(first: number, second: number, tokens: number): void
}

/** The limits. */
export interface RateLimitOptions {
  /** Tokens per second; 0 means no limit. */
  readonly rate: number
  /** Tokens in a full bucket; 0 means no limit. */
  readonly burst: number
  /** Monotonic milliseconds. */
  readonly now: () => number
  /** A secret 32-bit number, without which clients could choose addresses that fall into one set. */
  readonly seed: number
  /** A power of two. */
  readonly sets?: number
}

/**
 * 2 097 152 buckets of 16 bytes: space for a million addresses at once, of which about one in some thousand
 * finds its set full.
 */
const SETS = 131_072
const WAYS = 16

/** Fractions do not add up exactly; one token in a million does not matter. */
const TOLERANCE = 1e-6

/**
 * The first word of an IPv4 address's key; in IPv6 it would be a multicast group, which cannot be a source
 * (RFC 4291, 2.7).
 */
const OF_IPV4 = 0xffffffff

/** Creates a rate limit; null if it is disabled. */
export function createRateLimit(options: RateLimitOptions): LocalRateLimit | null {
  if (options.rate === 0 || options.burst === 0) return null
  const buckets = createBuckets(options)
  return { take: address => buckets.take(firstWord(address), secondWord(address), 1) === 1 }
}

/** The key of an address's bucket, as a text. */
export function rateKey(address: IpAddress): string {
  return `${firstWord(address)} ${secondWord(address)}`
}

// A household or machine has 2^64 IPv6 addresses, so the network is counted.
function firstWord(address: IpAddress): number {
  return isIPv4(address) ? OF_IPV4 : (address[0] ?? 0)
}

function secondWord(address: IpAddress): number {
  return (isIPv4(address) ? address[3] : address[1]) ?? 0
}

/** Creates full buckets. */
export function createBuckets({ rate, burst, now, seed, sets = SETS }: RateLimitOptions): TokenBuckets {
  const began = now()
  const tokensPerMs = rate / 1_000
  // Pages that were never written to take no memory.
  const high = new Uint32Array(sets * WAYS)
  const low = new Uint32Array(sets * WAYS)
  const fullAt = new Float64Array(sets * WAYS)

  /** The place of a bucket, existing or new. */
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

  function leftAt(place: number, present: number): number {
    return Math.floor(burst + TOLERANCE - Math.max((fullAt[place] ?? 0) - present, 0))
  }

  return {
    left: (first, second) => leftAt(placeOf(first, second), (now() - began) * tokensPerMs),
    take(first, second, tokens) {
      const place = placeOf(first, second)
      const present = (now() - began) * tokensPerMs
      const taken = Math.min(tokens, leftAt(place, present))
      if (taken <= 0) return 0
      fullAt[place] = Math.max(fullAt[place] ?? 0, present) + taken
      return taken
    },
    give(first, second, tokens) {
      const place = placeOf(first, second)
      fullAt[place] = Math.max(0, (fullAt[place] ?? 0) - tokens)
    },
  }
}

/** The finalizer of MurmurHash3 over both words: every bit of address and seed affects half of the result. */
function hash(first: number, second: number, seed: number): number {
  return mix(mix(first ^ seed) ^ second ^ Math.imul(seed, 0x9e3779b1))
}

function mix(word: number): number {
  let bits = word
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b)
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35)
  return bits ^ (bits >>> 16)
}

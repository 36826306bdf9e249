/** The counts of a limit whose units are leased to several processes (`leases.ts`). */
import { createBuckets } from './rate.ts'

/** The units of one limit. */
export interface Ledger {
  /**
   * Lends at least `wanted` units of a holder to a process if that many are left, and more if many are left;
   * otherwise all that are left.
   */
  lend(process: number, holder: string, wanted: number): number
  /** Counts units that were taken although none were left. */
  exceed(process: number, holder: string, units: number): void
  give(process: number, holder: string, units: number): void
  /** The other processes that have units of this holder, which they may not be using. */
  lenders(process: number, holder: string): readonly number[]
  /** Takes back all units of a process that has ended. */
  drop(process: number): void
}

/** An even part for each of `processes` while units are left, without emptying the rest. */
function amountOf(left: number, wanted: number, processes: number): number {
  return Math.max(0, Math.min(left, Math.max(wanted, Math.floor(left / (2 * processes)))))
}

/** Creates a ledger of `capacity` permits for each holder; 0 means no limit. */
export function createPermitLedger(capacity: number, processes: () => number): Ledger {
  const max = capacity === 0 ? Number.MAX_SAFE_INTEGER : capacity
  const holders = new Map<string, { lent: number; readonly by: Map<number, number> }>()

  function add(process: number, holder: string, units: number): void {
    if (units === 0) return
    const known = holders.get(holder) ?? { lent: 0, by: new Map<number, number>() }
    holders.set(holder, known)
    // A process cannot return more units than it has.
    const before = known.by.get(process) ?? 0
    const after = Math.max(0, before + units)
    known.lent += after - before
    if (after > 0) known.by.set(process, after)
    else known.by.delete(process)
    if (known.by.size === 0) holders.delete(holder)
  }

  return {
    lend(process, holder, wanted) {
      const left = max - (holders.get(holder)?.lent ?? 0)
      const units = amountOf(left, wanted, processes())
      add(process, holder, units)
      return units
    },
    exceed: add,
    give: (process, holder, units) => add(process, holder, -units),
    lenders: (process, holder) => [...(holders.get(holder)?.by.keys() ?? [])].filter(other => other !== process),
    drop(process) {
      for (const [holder, { by }] of holders) add(process, holder, -(by.get(process) ?? 0))
    },
  }
}

/**
 * Limit on the tokens that are lent to a process in advance. They are not recalled, so an address can get
 * this many requests fewer for each process that does not use its tokens.
 */
export const TOKENS_IN_ADVANCE_MAX = 16

/** The limits of a token ledger. */
export interface TokenLedgerOptions {
  readonly rate: number
  readonly burst: number
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number
  /** A secret 32-bit number (rate.ts). */
  readonly seed: number
  readonly processes: () => number
}

/** Creates a ledger of token buckets. A holder is the text of a `RateKey`. */
export function createTokenLedger({ rate, burst, now, seed, processes }: TokenLedgerOptions): Ledger {
  const buckets = createBuckets({ rate, burst, now, seed })
  return {
    lend(_process, holder, wanted) {
      const [first, second] = wordsOf(holder)
      const part = amountOf(buckets.left(first, second), wanted, processes())
      return buckets.take(first, second, Math.min(part, Math.max(wanted, TOKENS_IN_ADVANCE_MAX)))
    },
    exceed() {},
    give(_process, holder, units) {
      const [first, second] = wordsOf(holder)
      buckets.give(first, second, units)
    },
    lenders: () => [],
    drop() {},
  }
}

function wordsOf(holder: string): readonly [number, number] {
  const [first = '0', second = '0'] = holder.split(' ')
  return [Number(first), Number(second)]
}

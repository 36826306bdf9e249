/**
 * Units of a limit whose counts are kept elsewhere: in another process, or in a store that several machines
 * share. Units are leased in advance, so that most requests need no message; units that are not in use are
 * given back.
 */

/** Where the counts are kept. No function rejects or throws. */
export interface LeaseStore {
  /** Leases `units` or more of a holder; fewer if no more are left. */
  lease(holder: string, units: number): Promise<number>
  /** Gives units back that were not used, or are not used any more. */
  give(holder: string, units: number): void
  /** Counts units that were taken although none were left. */
  exceed(holder: string, units: number): void
}

/** `permits` are given back after use, `tokens` are used up. */
export type UnitKind = 'permits' | 'tokens'

/** The leased units of one limit. */
export interface Leases {
  /** Takes a unit; false if none is left. The answer is a promise if the store has to be asked. */
  take(holder: string): boolean | Promise<boolean>
  /** Takes a permit even if none is left. */
  hold(holder: string): void
  /** Gives a permit back. */
  leave(holder: string): void
  /** Removes the units that are not in use, because another process needs them, and returns their number. */
  surrender(holder: string): number
  /** Permits in use. */
  readonly used: number
  close(): void
}

/** The dependencies of leases. */
export interface LeasesParts {
  readonly store: LeaseStore
  readonly kind: UnitKind
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number
  /** Calls `call` repeatedly, without keeping the process alive. The returned function stops it. */
  readonly every: (intervalMs: number, call: () => void) => () => void
}

interface Holding {
  idle: number
  used: number
  /** Callers that wait for the store's answer. */
  readonly waiting: ((isTaken: boolean) => void)[]
  isAsking: boolean
  /** Until then the store is not asked again. */
  refusedUntil: number
  /** Until then, permits are given back at once. */
  wantedUntil: number
  isTouched: boolean
}

/** Units that were not used for one to two of these intervals are given back. */
export const GIVE_BACK_MS = 500

/** The store is not asked again so soon after it had no unit, however many requests are refused. */
export const REFUSED_MS = 5

/** Permits of this holder are scarce: none is kept for this long. */
const WANTED_MS = 1_000

/** Holders in memory. Beyond it, those without a unit in use are dropped at once. */
const HOLDERS_MAX = 100_000

/** Creates leases without any unit. */
export function createLeases({ store, kind, now, every }: LeasesParts): Leases {
  const holdings = new Map<string, Holding>()
  let usedByAll = 0
  const stop = every(GIVE_BACK_MS, () => giveBack('untouched'))

  function holdingOf(holder: string): Holding {
    const known = holdings.get(holder)
    if (known !== undefined) return known
    if (holdings.size >= HOLDERS_MAX) giveBack('all')
    const created = { idle: 0, used: 0, waiting: [], isAsking: false, refusedUntil: 0, wantedUntil: 0, isTouched: true }
    holdings.set(holder, created)
    return created
  }

  function giveBack(which: 'untouched' | 'all'): void {
    for (const [holder, holding] of holdings) {
      if (holding.idle > 0 && (which === 'all' || !holding.isTouched)) {
        store.give(holder, holding.idle)
        holding.idle = 0
      }
      const isKnownScarce = which === 'untouched' && now() < holding.wantedUntil
      if (holding.idle + holding.used + holding.waiting.length === 0 && !holding.isAsking && !isKnownScarce)
        holdings.delete(holder)
      holding.isTouched = false
    }
  }

  function use(holding: Holding): void {
    holding.isTouched = true
    if (kind === 'tokens') return
    holding.used++
    usedByAll++
  }

  async function ask(holder: string, holding: Holding): Promise<void> {
    holding.isAsking = true
    while (holding.waiting.length > 0) {
      const wanted = holding.waiting.length
      const units = await store.lease(holder, wanted)
      holding.idle += units
      serveWaiting(holding)
      if (units >= wanted) continue
      holding.refusedUntil = now() + REFUSED_MS
      // Remembered because a store of several machines cannot ask for unused permits that others wait for.
      holding.wantedUntil = now() + WANTED_MS
      for (const answer of holding.waiting.splice(0)) answer(false)
    }
    holding.isAsking = false
  }

  function serveWaiting(holding: Holding): void {
    while (holding.idle > 0 && holding.waiting.length > 0) {
      holding.idle--
      use(holding)
      holding.waiting.shift()?.(true)
    }
  }

  return {
    take(holder) {
      const holding = holdingOf(holder)
      if (holding.idle > 0) {
        holding.idle--
        use(holding)
        return true
      }
      if (!holding.isAsking && now() < holding.refusedUntil) return false
      return new Promise(resolve => {
        holding.waiting.push(resolve)
        if (!holding.isAsking) void ask(holder, holding)
      })
    },
    hold(holder) {
      const holding = holdingOf(holder)
      if (holding.idle > 0) holding.idle--
      else store.exceed(holder, 1)
      use(holding)
    },
    leave(holder) {
      const holding = holdings.get(holder)
      if (holding === undefined || holding.used === 0) return
      holding.used--
      usedByAll--
      holding.idle++
      serveWaiting(holding)
      if (holding.idle === 0 || now() >= holding.wantedUntil) return
      store.give(holder, holding.idle)
      holding.idle = 0
    },
    surrender(holder) {
      const holding = holdings.get(holder)
      if (holding === undefined) return 0
      const { idle } = holding
      holding.idle = 0
      holding.wantedUntil = now() + WANTED_MS
      return idle
    },
    get used() {
      return usedByAll
    },
    close: stop,
  }
}

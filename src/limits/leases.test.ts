import { describe, expect, test } from 'vitest'
import { createLeases, GIVE_BACK_MS, REFUSED_MS, type UnitKind } from './leases.ts'
import { createPermitLedger, createTokenLedger, type Ledger, TOKENS_IN_ADVANCE_MAX } from './ledger.ts'
import { rateKey } from './rate.ts'

/** Two processes that lease from one ledger; answers of the store arrive in later turns. */
function world(kind: UnitKind, ledger: Ledger) {
  let now = 0
  const ticks: (() => void)[] = []
  const processes = [1, 2].map(process =>
    createLeases({
      kind,
      now: () => now,
      every(_intervalMs, call) {
        ticks.push(call)
        return () => {}
      },
      store: {
        async lease(holder, units) {
          const lent = ledger.lend(process, holder, units)
          if (lent >= units) return lent
          for (const other of ledger.lenders(process, holder)) {
            ledger.give(other, holder, processes[other - 1]?.surrender(holder) ?? 0)
          }
          return lent + ledger.lend(process, holder, units - lent)
        },
        give: (holder, units) => ledger.give(process, holder, units),
        exceed: (holder, units) => ledger.exceed(process, holder, units),
      },
    }),
  )
  const [one, other] = processes
  if (one === undefined || other === undefined) throw new Error('there are two processes')
  return {
    ...{ one, other },
    pass(ms: number) {
      now += ms
    },
    tick() {
      for (const call of ticks) call()
    },
  }
}

const permits = (capacity: number) => createPermitLedger(capacity, () => 2)

describe('permits', () => {
  test('are those of all processes together, although one holds some that it does not use', async () => {
    const { one, other } = world('permits', permits(8))
    expect(await one.take('a')).toBe(true)
    one.leave('a')
    const taken = await Promise.all(Array.from({ length: 12 }, () => other.take('a')))
    expect(taken.filter(Boolean).length).toBe(8)
    expect(await one.take('a')).toBe(false)
    expect(other.used).toBe(8)
  })

  test('need no message while there are some in advance', async () => {
    const { one } = world('permits', permits(32))
    expect(one.take('a')).toBeInstanceOf(Promise)
    await one.take('a')
    expect(one.take('a')).toBe(true)
  })

  test('that are left go to a waiting request of the same process, or to the process that asked for them', async () => {
    const { one, other, pass } = world('permits', permits(1))
    expect(await one.take('a')).toBe(true)
    expect(await other.take('a')).toBe(false)
    one.leave('a')
    pass(REFUSED_MS)
    expect(await other.take('a')).toBe(true)
    expect(other.take('b')).toBeInstanceOf(Promise)
  })

  test('that are not used are given back', async () => {
    const ledger = permits(8)
    const { one, tick } = world('permits', ledger)
    await one.take('a')
    one.leave('a')
    expect(ledger.lenders(2, 'a')).toEqual([1])
    tick()
    tick()
    expect(ledger.lenders(2, 'a')).toEqual([])
    expect(GIVE_BACK_MS).toBeGreaterThan(REFUSED_MS)
  })

  test('of a process that has ended are free again', async () => {
    const ledger = permits(4)
    const { one, other, pass } = world('permits', ledger)
    for (let taken = 0; taken < 4; taken++) expect(await one.take('a')).toBe(true)
    expect(await other.take('a')).toBe(false)
    ledger.drop(1)
    pass(REFUSED_MS)
    expect(await other.take('a')).toBe(true)
  })

  test('can be held beyond the limit, and count', async () => {
    const { one, other } = world('permits', permits(1))
    one.hold('a')
    one.hold('a')
    expect(await other.take('a')).toBe(false)
    expect(one.used).toBe(2)
  })
})

describe('tokens', () => {
  const holder = rateKey(new Uint32Array([0, 0, 0xffff, 0xc0000201]))

  test('are never more than the bucket has, and at most one lease fewer', async () => {
    const ledger = createTokenLedger({ rate: 1, burst: 100, now: () => 0, seed: 1, processes: () => 2 })
    const { one, other } = world('tokens', ledger)
    await one.take(holder)
    let accepted = 1
    for (let asked = 0; asked < 200; asked++) if (await other.take(holder)) accepted++
    expect(accepted).toBeGreaterThanOrEqual(100 - TOKENS_IN_ADVANCE_MAX)
    for (let asked = 0; asked < 200; asked++) if (await one.take(holder)) accepted++
    expect(accepted).toBe(100)
  })

  test('that are not used are put back', async () => {
    const ledger = createTokenLedger({ rate: 1, burst: 10, now: () => 0, seed: 1, processes: () => 2 })
    const { one, other, tick } = world('tokens', ledger)
    await one.take(holder)
    tick()
    tick()
    let accepted = 0
    for (let asked = 0; asked < 20; asked++) if (await other.take(holder)) accepted++
    expect(accepted).toBe(9)
  })
})

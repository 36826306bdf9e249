/**
 * The circuit breaker of docs/guides/database-connections.md#kerberos: each example, and random events in
 * random order.
 */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { abandoned, type CircuitState, CLOSED, enter, failed, succeeded } from './circuit.ts'

const SETTINGS = { threshold: 3, windowMs: 1_000, cooldownMs: 500 }

function failAt(...times: readonly number[]): CircuitState {
  return times.reduce((state, at) => failed(state, state.generation, at, SETTINGS), CLOSED)
}

test('the failure that reaches the threshold within the window opens the circuit', () => {
  expect(failAt(0, 400)).toEqual({ kind: 'closed', generation: 0, failures: [0, 400] })
  expect(failAt(0, 400, 999)).toEqual({ kind: 'open', generation: 1, untilMs: 1_499 })
})

test('the window slides: older failures do not count', () => {
  expect(failAt(0, 400, 1_000)).toEqual({ kind: 'closed', generation: 0, failures: [400, 1_000] })
  expect(failAt(0, 400, 1_000, 1_399)).toMatchObject({ kind: 'open' })
})

test('a success does not clear the failures', () => {
  const state = succeeded(failAt(0, 1), 0)
  expect(failed(state, 0, 2, SETTINGS)).toMatchObject({ kind: 'open' })
})

test('an open circuit blocks attempts; after the cooldown it allows one attempt', () => {
  const open = failAt(0, 0, 0)
  expect(enter(open, 100)).toEqual({ kind: 'blocked', state: open, forMs: 400 })
  const entry = enter(open, 500)
  expect(entry).toEqual({ kind: 'allowed', state: { kind: 'half-open', generation: 2 } })
  expect(enter(entry.state, 500)).toEqual({ kind: 'blocked', state: entry.state, forMs: 0 })
})

test('a success closes a half-open circuit, a failure opens it again', () => {
  const { state } = enter(failAt(0, 0, 0), 500)
  expect(succeeded(state, state.generation)).toEqual({ kind: 'closed', generation: 3, failures: [] })
  expect(failed(state, state.generation, 700, SETTINGS)).toEqual({ kind: 'open', generation: 3, untilMs: 1_200 })
  // Neither success nor failure: the next attempt is allowed at once.
  const left = abandoned(state, state.generation, 700)
  expect(enter(left, 700).kind).toBe('allowed')
})

test('an attempt that began before a state change does not affect the new state', () => {
  const { state } = enter(failAt(0, 0, 0), 500)
  for (const late of [0, 1]) {
    expect(succeeded(state, late)).toBe(state)
    expect(failed(state, late, 600, SETTINGS)).toBe(state)
    expect(abandoned(state, late, 600)).toBe(state)
  }
})

/** The possible events: time passes, an attempt begins, an attempt in progress ends. */
const steps = fc.array(
  fc.oneof(
    fc.record({ kind: fc.constant('wait' as const), ms: fc.nat(1_200) }),
    fc.record({ kind: fc.constant('enter' as const) }),
    fc.record({ kind: fc.constantFrom('succeed' as const, 'fail' as const, 'abandon' as const), which: fc.nat(9) }),
  ),
  { maxLength: 80 },
)
const settings = fc.record({
  threshold: fc.integer({ min: 1, max: 5 }),
  windowMs: fc.integer({ min: 1, max: 1_000 }),
  cooldownMs: fc.integer({ min: 1, max: 1_000 }),
})

test('after any events the circuit opens for a reason, blocks while open, and has at most one trial attempt', () => {
  fc.assert(
    fc.property(settings, steps, (given, happening) => {
      let state = CLOSED
      let now = 0
      const underWay: number[] = []
      let failures: number[] = []
      for (const step of happening) {
        const before = state
        if (step.kind === 'wait') {
          now += step.ms
        } else if (step.kind === 'enter') {
          const entry = enter(state, now)
          state = entry.state
          if (entry.kind === 'allowed') underWay.push(state.generation)
          // Blocked exactly while open and cooling down, or while a trial attempt is in progress.
          const isBlocked = (before.kind === 'open' && now < before.untilMs) || before.kind === 'half-open'
          expect(entry.kind).toBe(isBlocked ? 'blocked' : 'allowed')
        } else if (underWay.length > 0) {
          const [generation = 0] = underWay.splice(step.which % underWay.length, 1)
          if (step.kind === 'succeed') state = succeeded(state, generation)
          else if (step.kind === 'abandon') state = abandoned(state, generation, now)
          else {
            state = failed(state, generation, now, given)
            if (before.kind === 'closed' && before.generation === generation) failures.push(now)
          }
        }
        if (state.kind === 'closed') {
          expect(state.failures.length).toBeLessThan(given.threshold)
          if (before.kind === 'half-open') failures = []
        }
        // It opened from closed: the window contains as many failures as the threshold.
        if (before.kind === 'closed' && state.kind === 'open') {
          const within = failures.filter(at => at > now - given.windowMs)
          expect(within.length).toBe(given.threshold)
          expect(state.untilMs).toBe(now + given.cooldownMs)
          failures = []
        }
        if (state !== before) expect(state.generation).toBeGreaterThanOrEqual(before.generation)
        if (state.kind !== before.kind) expect(state.generation).toBe(before.generation + 1)
        if (state.kind === 'half-open') {
          expect(underWay.filter(generation => generation === state.generation).length).toBeLessThanOrEqual(1)
        }
      }
    }),
    { numRuns: 1_000 },
  )
})

test('after any events, once attempts have ended and the cooldown is over, a success closes the circuit', () => {
  fc.assert(
    fc.property(settings, fc.array(fc.nat(2_000), { maxLength: 50 }), (given, waits) => {
      let state = CLOSED
      let now = 0
      for (const wait of waits) {
        now += wait
        const entry = enter(state, now)
        state = entry.kind === 'allowed' ? failed(entry.state, entry.state.generation, now, given) : entry.state
      }
      const { state: entered } = enter(state, now + given.cooldownMs)
      expect(succeeded(entered, entered.generation).kind).toBe('closed')
    }),
  )
})

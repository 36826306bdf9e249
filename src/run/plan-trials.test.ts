/** Which reads are planned for their values, by the times of their runs. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createPlanTrials, type ObservedPlans, type PlanTrials } from './plan-trials.ts'

const TEXT = 'SELECT … WHERE kind = $1'

/** Runs one statement whose times depend only on how it is planned. */
function running(times: { auto: number; custom: number }, text = TEXT) {
  const trials = createPlanTrials()
  const runs: { isCustom: boolean; ms: number }[] = []
  return {
    trials,
    runs,
    times,
    isCustom: () => trials.stats().custom === 1,
    run(count: number) {
      for (let n = 0; n < count; n++) {
        const plans = plansOf(trials, text)
        const isCustom = plans.isNextCustom
        const ms = isCustom ? times.custom : times.auto
        runs.push({ isCustom, ms })
        plans.ran(isCustom, ms)
      }
    },
  }
}

/** The plans of a statement that is observed. */
function plansOf(trials: PlanTrials, text = TEXT): ObservedPlans {
  const plans = trials.of(text)
  if (plans === null) throw new Error('it is not observed')
  return plans
}

const sum = (runs: readonly { ms: number }[]) => runs.reduce((total, { ms }) => total + ms, 0)

test('a statement gets custom plans when the generic plan is slower', () => {
  const { trials, run, isCustom } = running({ auto: 5, custom: 1 })
  run(500)
  expect(isCustom()).toBe(true)
  expect(plansOf(trials).isNextCustom).toBe(true)
})

test('a plan that is not clearly slower is kept, and trials take a hundredth of the time', () => {
  const { runs, run, isCustom } = running({ auto: 1.3, custom: 1 })
  run(100_000)
  expect(isCustom()).toBe(false)
  expect(sum(runs.filter(({ isCustom }) => isCustom))).toBeLessThan(0.012 * sum(runs))
})

test('no comparison is made of a statement that has hardly run', () => {
  const { runs, run } = running({ auto: 0.1, custom: 1 })
  run(990)
  expect(runs.filter(({ isCustom }) => isCustom)).toEqual([])
})

test('a statement gets the generic plan again once that is as fast', () => {
  const { times, run, isCustom } = running({ auto: 5, custom: 1 })
  run(500)
  times.auto = 1
  run(100_000)
  expect(isCustom()).toBe(false)
})

test('a statement that becomes slow is noticed within a few runs', () => {
  const { times, run, isCustom } = running({ auto: 1, custom: 1 })
  run(50_000)
  times.auto = 100
  run(64 + 3 * (64 + 3) + 64)
  expect(isCustom()).toBe(true)
})

test('a turn with plans that are far slower ends after a few runs', () => {
  const { times, runs, run } = running({ auto: 5, custom: 1 })
  run(500)
  times.auto = 60_000
  runs.length = 0
  run(100_000)
  expect(runs.filter(({ isCustom }) => !isCustom)).toHaveLength(2)
})

test('runs without a core change nothing, even if they take most of the time', () => {
  // One run in 200 takes 20 ms, at random.
  const random = fc.sample(fc.integer({ min: 0, max: 199 }), { numRuns: 50_000, seed: 7 })
  const trials = createPlanTrials()
  for (const number of random) {
    const plans = plansOf(trials)
    plans.ran(plans.isNextCustom, number === 0 ? 20 : 0.05)
    expect(trials.stats().custom).toBe(0)
  }
  expect(trials.stats().trials).toBeGreaterThan(0)
})

test('custom plans that fail end their trial', () => {
  const { trials, times, run, isCustom } = running({ auto: 5, custom: 1 })
  run(20)
  const plans = plansOf(trials)
  expect(plans.isNextCustom).toBe(true)
  plans.failed(true, 0)
  expect(plans.isNextCustom).toBe(false)
  expect(trials.stats()).toEqual({ custom: 0, trials: 1 })
  times.auto = 5
  run(500)
  expect(isCustom()).toBe(true)
})

test('a generic plan with which the statement is cancelled for its time is slow too', () => {
  const trials = createPlanTrials()
  for (let n = 0; n < 300; n++) {
    const plans = plansOf(trials)
    if (plans.isNextCustom) plans.ran(true, 1)
    else plans.failed(false, 30_000)
  }
  expect(trials.stats().custom).toBe(1)
})

test('requests that are sent before earlier ones are answered are counted by their own plans', () => {
  const trials = createPlanTrials()
  const sent: boolean[] = []
  for (let n = 0; n < 5_000; n++) {
    const plans = plansOf(trials)
    sent.push(plans.isNextCustom)
    if (sent.length < 200) continue
    const isCustom = sent.shift() === true
    plans.ran(isCustom, isCustom ? 1 : 5)
  }
  expect(trials.stats().custom).toBe(1)
})

test('whatever the times are, plans change only at the end of a trial', () => {
  const ms = fc.double({ min: 0, max: 1_000, noNaN: true })
  const run = fc.tuple(fc.constantFrom('a', 'b', 'c'), fc.boolean(), ms, ms)
  fc.assert(
    fc.property(fc.array(run, { maxLength: 2_000 }), runs => {
      const trials = createPlanTrials()
      let before = trials.stats()
      for (const [text, fails, auto, custom] of runs) {
        const plans = plansOf(trials, text)
        const isCustom = plans.isNextCustom
        plans[fails ? 'failed' : 'ran'](isCustom, isCustom ? custom : auto)
        const after = trials.stats()
        if (after.custom !== before.custom) expect(after.trials).toBe(before.trials + 1)
        before = after
      }
    }),
    { numRuns: 100 },
  )
})

test('1 000 statements are observed; the least recently used is dropped', () => {
  const { trials, run, isCustom } = running({ auto: 5, custom: 1 }, 'select 0')
  run(500)
  for (let n = 1; n < 1_000; n++) trials.of(`select ${n}`)
  expect(isCustom()).toBe(true)
  trials.of('select 0')
  trials.of('select 1000')
  expect(isCustom()).toBe(true)
  for (let n = 2; n < 1_002; n++) trials.of(`select ${n}`)
  expect(isCustom()).toBe(false)
})

test('texts that are too long to be prepared are not observed, and those of the others are limited together', () => {
  const { trials, run, isCustom } = running({ auto: 5, custom: 1 }, 'select 0')
  run(500)
  expect(trials.of('x'.repeat(16_385))).toBe(null)
  for (let n = 0; n < 255; n++) plansOf(trials, `${n} ${'x'.repeat(16_000)}`)
  expect(isCustom()).toBe(true)
  for (let n = 0; n < 10; n++) plansOf(trials, `${n} ${'y'.repeat(16_000)}`)
  expect(isCustom()).toBe(false)
})

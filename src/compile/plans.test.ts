/** Plans are kept by what they are for, for whom and under which catalogue; and nobody can push out the plans of everybody else. */
import { expect, test } from 'vitest'
import { EVERYTHING, type View } from '../access/rights.ts'
import type { Catalog } from '../catalog/model.ts'
import { createPlanCache, type PlanCache, type PlanOwner, type Plans } from './plans.ts'

interface Plan {
  readonly name: string
}

const catalog = {} as Catalog
const everybody: View = { catalog, rights: EVERYTHING }
const tenant = (tenantId: string): PlanOwner => ({ tenantId, userId: '' })
const [ours, theirs] = [tenant('ours'), tenant('theirs')]

function plansOf(cache: PlanCache): Plans<Plan> {
  return cache.plans<Plan>('row', ({ name }) => name.length)
}

/** Whether there was a plan. */
function has(plans: Plans<Plan>, key: string, owner = ours, view = everybody): boolean {
  let made = false
  plans.of(owner, view, key, () => {
    made = true
    return { name: key }
  })
  return !made
}

test('a plan serves everybody with the same rights, whoever made it, for what it is for', () => {
  const cache = createPlanCache()
  const plans = plansOf(cache)
  expect(has(plans, 'a')).toBe(false)
  expect(has(plans, 'a')).toBe(true)
  expect(has(plans, 'a', theirs)).toBe(true)
  expect(has(plans, 'a', ours, { catalog, rights: { ...EVERYTHING, key: 'others' } })).toBe(false)
  expect(
    has(
      cache.plans('list', () => 0),
      'a',
    ),
  ).toBe(false)
  expect(cache.stats()).toMatchObject({ hits: { row: 2, list: 0 }, misses: { row: 2, list: 1 }, entries: 3 })
})

test('a new catalogue begins with nothing, and an old one is not returned to', () => {
  const plans = plansOf(createPlanCache())
  const next = { ...everybody, catalog: {} as Catalog }
  expect(has(plans, 'a')).toBe(false)
  expect(has(plans, 'a', ours, next)).toBe(false)
  expect(has(plans, 'a', ours, next)).toBe(true)
  expect(has(plans, 'a')).toBe(false)
  expect(has(plans, 'a')).toBe(false)
  expect(has(plans, 'a', ours, next)).toBe(true)
})

test('what is refused is not kept', () => {
  const plans = plansOf(createPlanCache())
  const refuse = () => {
    throw new Error('no')
  }
  expect(() => plans.of(ours, everybody, 'a', refuse)).toThrow('no')
  expect(has(plans, 'a')).toBe(false)
})

test('a plan that is made while another is made', () => {
  const cache = createPlanCache()
  const plans = plansOf(cache)
  plans.of(ours, everybody, 'outer', () => plans.of(ours, everybody, 'inner', () => ({ name: 'both' })))
  expect([has(plans, 'outer'), has(plans, 'inner'), cache.stats().entries]).toEqual([true, true, 2])
})

test('there is an end to how many, to how large all are, and to how large one is', () => {
  const few = createPlanCache({ plansMax: 10, charactersMax: 1_000_000 })
  for (let n = 0; n < 100; n++) has(plansOf(few), `${n}`)
  expect(few.stats()).toMatchObject({ entries: 10, evictions: 90 })
  const small = createPlanCache({ plansMax: 1_000, charactersMax: 1_000 })
  for (let n = 0; n < 100; n++) has(plansOf(small), `${n}`.padStart(40, '0'))
  expect(small.stats().characters).toBeLessThanOrEqual(1_000)
  expect(small.stats().characters).toBeGreaterThan(800)
  const one = createPlanCache()
  expect(has(plansOf(one), 'x'.repeat(128 * 1024))).toBe(false)
  expect(one.stats().entries).toBe(0)
})

test('a plan that is asked for again and again stays', () => {
  const plans = plansOf(createPlanCache({ plansMax: 10, charactersMax: 1_000_000 }))
  has(plans, 'wanted')
  for (let n = 0; n < 1_000; n++) {
    has(plans, `${n}`)
    expect(has(plans, 'wanted')).toBe(true)
  }
})

test('a tenant that sends new shapes all the time, and each of them twice, pushes out its own', () => {
  const cache = createPlanCache({ plansMax: 100, charactersMax: 1_000_000 })
  const plans = plansOf(cache)
  const others = Array.from({ length: 10 }, (_, n) => tenant(`t${n}`))
  for (const owner of others) for (let n = 0; n < 5; n++) has(plans, `${owner.tenantId} ${n}`, owner)
  for (let n = 0; n < 10_000; n++) for (let twice = 0; twice < 2; twice++) has(plans, `attack ${n}`, theirs)
  for (const owner of others) {
    for (let n = 0; n < 5; n++) expect(has(plans, `${owner.tenantId} ${n}`, owner)).toBe(true)
  }
  expect(cache.stats().entries).toBe(100)
})

test('and so does one whose shapes are few and large', () => {
  const plans = plansOf(createPlanCache({ plansMax: 1_000, charactersMax: 10_000 }))
  for (let n = 0; n < 5; n++) has(plans, `small ${n}`)
  for (let n = 0; n < 1_000; n++) has(plans, `${n}`.padEnd(1_000, 'x'), theirs)
  for (let n = 0; n < 5; n++) expect(has(plans, `small ${n}`)).toBe(true)
})

test('who had filled it while nobody else was there makes room for those who come', () => {
  const plans = plansOf(createPlanCache({ plansMax: 100, charactersMax: 1_000_000 }))
  for (let n = 0; n < 1_000; n++) has(plans, `attack ${n}`, theirs)
  for (let n = 0; n < 40; n++) has(plans, `ours ${n}`)
  for (let n = 0; n < 40; n++) expect(has(plans, `ours ${n}`)).toBe(true)
})

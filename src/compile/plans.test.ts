/** Plans are cached by kind, rights and catalog, and one caller cannot evict the plans of all others. */
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

/** Reports whether a plan was cached. */
function has(plans: Plans<Plan>, key: string, owner = ours, view = everybody): boolean {
  let made = false
  plans.of(owner, view, key, () => {
    made = true
    return { name: key }
  })
  return !made
}

test('a plan serves every caller with the same rights and only its own kind', () => {
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

test('a new catalog starts with an empty cache, and plans of an old catalog are not cached again', () => {
  const plans = plansOf(createPlanCache())
  const next = { ...everybody, catalog: {} as Catalog }
  expect(has(plans, 'a')).toBe(false)
  expect(has(plans, 'a', ours, next)).toBe(false)
  expect(has(plans, 'a', ours, next)).toBe(true)
  expect(has(plans, 'a')).toBe(false)
  expect(has(plans, 'a')).toBe(false)
  expect(has(plans, 'a', ours, next)).toBe(true)
})

test('a rejected request is not cached', () => {
  const plans = plansOf(createPlanCache())
  const refuse = () => {
    throw new Error('no')
  }
  expect(() => plans.of(ours, everybody, 'a', refuse)).toThrow('no')
  expect(has(plans, 'a')).toBe(false)
})

test('plans can be made recursively', () => {
  const cache = createPlanCache()
  const plans = plansOf(cache)
  plans.of(ours, everybody, 'outer', () => plans.of(ours, everybody, 'inner', () => ({ name: 'both' })))
  expect([has(plans, 'outer'), has(plans, 'inner'), cache.stats().entries]).toEqual([true, true, 2])
})

test('the number of plans, their total size and the size of one plan are limited', () => {
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

test('a plan that is used repeatedly stays', () => {
  const plans = plansOf(createPlanCache({ plansMax: 10, charactersMax: 1_000_000 }))
  has(plans, 'wanted')
  for (let n = 0; n < 1_000; n++) {
    has(plans, `${n}`)
    expect(has(plans, 'wanted')).toBe(true)
  }
})

test('a tenant that keeps sending new shapes, each twice, evicts only its own plans', () => {
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

test('a tenant with few large shapes evicts only its own plans', () => {
  const plans = plansOf(createPlanCache({ plansMax: 1_000, charactersMax: 10_000 }))
  for (let n = 0; n < 5; n++) has(plans, `small ${n}`)
  for (let n = 0; n < 1_000; n++) has(plans, `${n}`.padEnd(1_000, 'x'), theirs)
  for (let n = 0; n < 5; n++) expect(has(plans, `small ${n}`)).toBe(true)
})

test('a tenant that filled the cache alone makes room for others', () => {
  const plans = plansOf(createPlanCache({ plansMax: 100, charactersMax: 1_000_000 }))
  for (let n = 0; n < 1_000; n++) has(plans, `attack ${n}`, theirs)
  for (let n = 0; n < 40; n++) has(plans, `ours ${n}`)
  for (let n = 0; n < 40; n++) expect(has(plans, `ours ${n}`)).toBe(true)
})

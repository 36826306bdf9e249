import { expect, test } from 'vitest'
import { EVERYTHING, type View } from '../../access/rights.ts'
import type { Catalog } from '../../catalog/model.ts'
import { createPlanCache } from '../../compile/plans.ts'
import { ANONYMOUS } from '../../identity/authenticate.ts'
import { createRequestCache, REQUEST_CHARACTERS_MAX } from './request-cache.ts'

const everybody: View = { catalog: {} as Catalog, rights: EVERYTHING }

/** Counts how often the value was computed. */
function counting() {
  let times = 0
  return { make: () => ({ times: ++times }), times: () => times }
}

test('a repeated request is parsed once, and a long request every time', () => {
  const remembered = createRequestCache(createPlanCache(), 'row request', () => 0)
  const { make, times } = counting()
  const ask = (request: string) => remembered.of(ANONYMOUS, everybody, request, make)
  expect(ask('/api/a?x=1')).toBe(ask('/api/a?x=1'))
  ask('/api/a?x=2')
  expect(times()).toBe(2)
  for (let i = 0; i < 2; i++) ask('x'.repeat(REQUEST_CHARACTERS_MAX + 1))
  expect(times()).toBe(4)
})

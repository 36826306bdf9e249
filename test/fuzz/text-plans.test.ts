/**
 * A plan of a query text is never used if the check would have rejected the text or typed a parameter
 * differently: whatever was sent before, the response is that of a new gateway.
 */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { EVERYTHING } from '../../src/access/rights.ts'
import { createPlanCache } from '../../src/compile/plans.ts'
import { STATEMENT_LIMITS } from '../../src/statement-limits.ts'
import { PIPELINE_LIMITS, testPipeline } from '../support/pipeline.ts'
import { type Asked, catalog, recording } from './world.ts'

/**
 * Small, so that the lengths of values decide: all values of a statement together may build 64 times as many
 * bytes.
 */
const limits = { ...STATEMENT_LIMITS, maxBuiltValueBytes: 64 }

const plans = createPlanCache()

function querier(cache = createPlanCache()): Asked {
  const view = () => ({ catalog, rights: EVERYTHING, limits })
  const few = { ...PIPELINE_LIMITS, maxResultRows: 100, maxInValues: 5 }
  return recording(runner => testPipeline({ runner, plans: cache, view, limits: few }))
}

const asked = querier(plans)

const texts = fc.constantFrom(
  'get orders fields $1 as a',
  'get orders fields $1 as a, $2 as b where note = $1',
  'get orders where id = $1 and total > $2',
  'get orders where id in $1',
  'get orders where id in ($1, $2)',
  'get orders where $1 is null or note = $2',
  'get customers fields coalesce($1, $2) as a, tags where tags = $2',
  'get customers fields meta -> $1 as a where docs = $2',
  'get customers fields concat($1, $2, name) as a',
  'get customers fields format(name, $1, $2) as a',
  "get customers fields format('%s %s %s %s %s', $1, $1, $1, $2, $2) as a",
  'get customers fields repeat($1, 3) as a',
  'get customers fields repeat(name, $1) as a',
  'get customers fields cast($1 as text) as a, $2 as b',
  'get customers fields lpad($1, 10) as a limit 3',
  'set orders values note = $1 where id = $2',
  'add orders fields id, note values $1, $2',
  'del orders where note = $1 and total = $2',
  'explain get orders where note = $1',
  'export orders where note = $1',
  'with gone as (del orders where id = $1 returning id) get gone fields id, $2 as b',
  'get orders where nothing = $1',
)

const values = fc.oneof(
  fc.integer(),
  fc.bigInt({ min: -(10n ** 30n), max: 10n ** 30n }),
  fc.double({ noDefaultInfinity: true, noNaN: true }),
  fc.boolean(),
  fc.constant(null),
  fc.string({ maxLength: 5 }),
  // Lengths around the limits of the classes, and of what all values may build.
  fc
    .tuple(fc.constantFrom(900, 1_000, 1_020, 2_046, 4_090), fc.integer({ min: 0, max: 8 }))
    .map(([length, more]) => 'x'.repeat(length + more)),
  fc.array(fc.integer(), { maxLength: 7 }),
  fc.constant({ a: 1 }),
)

const parameters = fc.oneof(
  { arbitrary: fc.tuple(values, values), weight: 5 },
  { arbitrary: fc.tuple(values), weight: 2 },
  { arbitrary: fc.record({ 1: values, 2: values }), weight: 1 },
  { arbitrary: fc.record({ '1': values, x: values }), weight: 1 },
)

const printed = (value: unknown) =>
  JSON.stringify(value, (_, of) => (typeof of === 'bigint' ? `#${of}#` : of)).replace(/"#(-?\d+)#"/g, '$1')

test('a text gets the same response as from a new gateway', { timeout: 120_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(texts, parameters, async (query, given) => {
      const body = `{"query":${JSON.stringify(query)},"parameters":${printed(given)}}`
      const sent = { method: 'POST', path: '/api/_query', body }
      const fresh = await querier()(sent)
      for (let times = 0; times < 2; times++) {
        const { ran, outcome } = await asked(sent)
        expect({ ran, outcome }).toEqual({ ran: fresh.ran, outcome: fresh.outcome })
      }
    }),
    { numRuns: 400 },
  )
  // The property is meaningful only if plans were reused.
  expect(plans.stats().hits.text).toBeGreaterThan(100)
})

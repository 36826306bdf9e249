/**
 * Decision 0005: requests with the same plan key have the same statement, and requests with different
 * statements have different keys.
 */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { summary } from '../../test/fuzz/aggregate-requests.ts'
import { call } from '../../test/fuzz/call-requests.ts'
import { request } from '../../test/fuzz/requests.ts'
import { catalog, incomingOf, type Sent } from '../../test/fuzz/world.ts'
import { write } from '../../test/fuzz/write-requests.ts'
import { PIPELINE_LIMITS } from '../../test/support/pipeline.ts'
import { EVERYTHING } from '../access/rights.ts'
import { createPlanCache } from '../compile/plans.ts'
import { GatewayError } from '../errors.ts'
import { ANONYMOUS } from '../identity/authenticate.ts'
import { Compiler } from './compile.ts'
import { parsePath } from './path.ts'
import { printPlanKey } from './plan-key.ts'
import { createCursorCodec } from './read/cursor.ts'
import { ReadHandler } from './read/read.ts'
import { type DataRoute, readRequest } from './request.ts'
import { CallHandler } from './rpc/call.ts'
import { isStep, type RequestContext, type RequestStep, type StatementPart } from './steps.ts'
import { handleWrite, type WriteRoute } from './write/write.ts'

const limits = PIPELINE_LIMITS
const reads = new ReadHandler({
  limits,
  cursors: createCursorCodec('a key'),
  operatorExplains: false,
  comparesTags: true,
})
const calls = new CallHandler({ limits, qualified: false, allowed: () => null, signatureCheck: false })

/** A statement with the key of its tree, compiled as if the cache were empty. */
interface Keyed {
  readonly key: string
  readonly text: string
}

function compiled(part: StatementPart, asker: RequestContext): readonly Keyed[] {
  if ('statement' in part) return []
  const compiler = new Compiler({ plans: createPlanCache(), searchLanguage: 'english', limits })
  const { text } = compiler.statement(part, asker, 'once').statement
  return [{ key: printPlanKey(part.tree), text }]
}

/** The statements of a request's first step; none if the request is rejected. */
async function keyed(sent: Sent): Promise<readonly Keyed[]> {
  const incoming = incomingOf(sent)
  const asker: RequestContext = { incoming, identity: ANONYMOUS, view: { catalog, rights: EVERYTHING } }
  try {
    const asked = await ask(sent, asker)
    return isStep(asked) ? [...asked.parts].flatMap(part => compiled(part, asker)) : []
  } catch (error) {
    if (error instanceof GatewayError) return []
    throw error
  }
}

function ask(sent: Sent, asker: RequestContext): RequestStep | Promise<RequestStep> {
  const route = parsePath(asker.incoming.path) as DataRoute
  const written = readRequest(asker.incoming, route, { maxQueryParameters: 0 })
  if (route.kind === 'rpc') return calls.toStep(written, route, asker)
  if (sent.method === 'GET') return reads.toStep(written, route, asker)
  return handleWrite(written, route as WriteRoute, asker, limits)
}

const reading = (path: fc.Arbitrary<string>) => path.map((text): Sent => ({ method: 'GET', path: text }))

test.each([
  ['lists and rows', reading(request)],
  ['aggregates and plans', reading(summary)],
  ['writes', write],
  ['calls', call],
] as const)('one plan key has one statement: %s', { timeout: 60_000 }, async (_, sent) => {
  const textOf = new Map<string, string>()
  let again = 0
  await fc.assert(
    fc.asyncProperty(sent, async one => {
      for (const { key, text } of await keyed(one)) {
        if (textOf.has(key)) again += 1
        expect(textOf.get(key) ?? text).toBe(text)
        textOf.set(key, text)
      }
    }),
    { numRuns: 1_500 },
  )
  // The property is meaningful only if keys repeat.
  expect(again).toBeGreaterThan(20)
})

test('a key contains no values and is not much longer than its request', async () => {
  const filters = Array.from({ length: 60 }, (_, n) => `name.ne=secret${n}`).join('&')
  const path = `/api/customers?${filters}&meta->secret=secret&search=secret&limit=5&offset=77&sort=meta->secret`
  const [list] = await keyed({ method: 'GET', path })
  expect(list?.key).not.toMatch(/secret|77/)
  expect(list?.key.length).toBeLessThan(path.length * 2)
})

/**
 * How flows share connections: properties that hold after any sequence of events, and fairness between
 * flows.
 */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { CommandBatch } from './batch.ts'
import { type Carrier, Dispatcher } from './dispatcher.ts'
import type { Flow } from './flow.ts'
import type { PendingRequest } from './pending-request.ts'
import { UNLIMITED_BUDGET } from './result-budget.ts'
import type { Command } from './types.ts'

/** A connection that answers when the test calls `answer`. */
class Line implements Carrier {
  owner: Flow | null = null
  accepting = true
  readonly carried: PendingRequest[] = []

  get depth(): number {
    return this.carried.length
  }

  get isFree(): boolean {
    return this.carried.length === 0
  }

  get streaming(): boolean {
    return this.carried.some(({ exclusive }) => exclusive)
  }

  /** The connection's estimate; what runs can take far longer. */
  waitMs(): number {
    return this.carried.reduce((sum, { expectedMs }) => sum + expectedMs, 0)
  }

  send(exchange: PendingRequest): void {
    for (const { flow } of this.carried) if (flow !== exchange.flow) throw new Error('two flows on one connection')
    this.carried.push(exchange)
  }
}

interface Bench {
  readonly dispatcher: Dispatcher
  readonly lines: Line[]
  submit(flow: string, text: string): PendingRequest
  /** Answers the oldest pending request. */
  answer(line: Line, tookMs?: number): PendingRequest
  close(line: Line): void
  held(flow: string): number
}

function bench(size: number, flowMax: number): Bench {
  const lines: Line[] = []
  let wanted = false
  const dispatcher = new Dispatcher({
    ...{ size, flowMax, flowStreamsMax: 4, waitingMax: 10_000, acquireTimeoutMs: 1_000_000 },
    clock: () => 0,
    budget: UNLIMITED_BUDGET,
    grow() {
      wanted = true
    },
    expired() {},
  })
  /** Opens a connection some time after it was requested. */
  const open = (): void => {
    while (wanted) {
      wanted = false
      if (lines.length === size) return
      const line = new Line()
      lines.push(line)
      dispatcher.add(line)
    }
  }
  return {
    dispatcher,
    lines,
    submit(flow, text) {
      const command: Command = { text, parameters: [], flow }
      const unit = new CommandBatch(dispatcher.flowOf(command.flow), [command], exchange =>
        dispatcher.withdraw(exchange),
      )
      unit.result.catch(() => {})
      dispatcher.submit(unit)
      open()
      return unit
    },
    answer(line, tookMs = 0.01) {
      const exchange = line.carried.shift() as PendingRequest
      dispatcher.answered(line, exchange)
      dispatcher.learn([{ latencyKey: exchange.latencyKey, ms: tookMs }])
      dispatcher.dispatch()
      open()
      return exchange
    },
    close(line) {
      lines.splice(lines.indexOf(line), 1)
      line.accepting = false
      const unsent = line.carried.splice(0)
      dispatcher.remove(line)
      for (const exchange of unsent.toReversed()) dispatcher.putBack(exchange)
      dispatcher.dispatch()
      open()
    },
    held: flow => lines.filter(({ owner }) => owner?.key === flow).length,
  }
}

test('a single flow gets half of the pool, and a second flow is served at once', () => {
  const { submit, held, dispatcher } = bench(10, 5)
  for (let n = 0; n < 40; n++) submit('a', 'slow')
  expect(held('a')).toBe(5)
  expect(dispatcher.waiting).toBe(35)
  submit('b', 'slow')
  expect(held('b')).toBe(1)
  expect(dispatcher.held).toBe(35)
})

test('a statement that is estimated to be fast is still kept apart from other flows', () => {
  const { submit, answer, lines, held } = bench(10, 5)
  for (let n = 0; n < 200; n++) {
    submit('a', 'fast so far')
    answer(lines[0] as Line)
  }
  // These run for seconds, although the estimate is a fraction of a millisecond.
  for (let n = 0; n < 32; n++) submit('a', 'fast so far')
  submit('b', 'fast so far')
  expect(held('b')).toBe(1)
})

test('several busy tenants at the same time leave a connection for one more tenant', () => {
  const { submit, held } = bench(10, 5)
  for (const flow of ['a', 'b', 'c', 'd']) for (let n = 0; n < 40; n++) submit(flow, 'slow')
  expect(['a', 'b', 'c', 'd'].map(held)).toEqual([5, 2, 1, 1])
  submit('e', 'slow')
  expect(held('e')).toBe(1)
})

test('permanently busy tenants reach equal shares', () => {
  const { submit, answer, lines, held } = bench(10, 5)
  const flows = ['a', 'b', 'c']
  for (const flow of flows) for (let n = 0; n < 100; n++) submit(flow, 'slow')
  for (let turn = 0; turn < 60; turn++) {
    const line = lines[turn % lines.length] as Line
    if (line.depth > 0) answer(line, 1_000)
  }
  for (const flow of flows) expect(held(flow)).toBeGreaterThanOrEqual(2)
  for (const flow of flows) expect(held(flow)).toBeLessThanOrEqual(3)
})

test('if all connections are taken, a tenant without one gets the next, however busy the others are', () => {
  const { submit, answer, lines, held } = bench(2, 1)
  const fast = (flow: string) => submit(flow, 'fast')
  for (const flow of ['a', 'b']) fast(flow)
  for (let n = 0; n < 20; n++) for (const flow of ['a', 'b']) fast(flow)
  fast('c')
  for (let turns = 0; held('c') === 0; turns++) {
    expect(turns).toBeLessThan(10)
    for (const flow of ['a', 'b']) fast(flow)
    for (const line of lines) if (line.depth > 0) answer(line)
  }
})

test('one flow cannot fill the whole queue', () => {
  const { dispatcher, submit } = bench(1, 1)
  for (let n = 0; n < 20_000; n++) submit('a', 'slow')
  expect(dispatcher.waiting).toBe(5_000)
  submit('b', 'slow')
  expect(dispatcher.waiting).toBe(5_001)
})

const FLOWS = ['', 'a', 'b', 'c', 'd', 'e']

type Step =
  | { readonly kind: 'submit'; readonly flow: number; readonly text: string }
  | { readonly kind: 'answer'; readonly line: number; readonly tookMs: number }
  | { readonly kind: 'cancel'; readonly exchange: number }
  | { readonly kind: 'close'; readonly line: number }

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('submit' as const),
      flow: fc.nat(FLOWS.length - 1),
      text: fc.constantFrom('fast', 'slow', 'either'),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('answer' as const),
      line: fc.nat(20),
      tookMs: fc.constantFrom(0.01, 0.5, 50),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('cancel' as const), exchange: fc.nat(200) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('close' as const), line: fc.nat(20) }) },
)

test('after any sequence of events each connection serves one flow, shares hold, and every request is served', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 12 }),
      fc.double({ min: 0.1, max: 1, noNaN: true }),
      fc.array(step, { maxLength: 150 }),
      (size, share, steps) => {
        const flowMax = Math.max(1, Math.ceil(size * share))
        const { dispatcher, lines, submit, answer, close, held } = bench(size, flowMax)
        const submitted: PendingRequest[] = []
        const answered = new Set<PendingRequest>()
        const cancelled = new Set<PendingRequest>()
        const check = (): void => {
          for (const flow of FLOWS.slice(1)) expect(held(flow)).toBeLessThanOrEqual(flowMax)
          const carried = lines.flatMap(line => line.carried)
          for (const line of lines) {
            // `Line.send` checks that all pending requests are of one flow.
            expect(line.owner).toBe(line.carried[0]?.flow ?? null)
          }
          const expected = submitted.filter(exchange => !answered.has(exchange) && !cancelled.has(exchange))
          expect(carried.filter(exchange => !cancelled.has(exchange)).length + dispatcher.waiting).toBe(expected.length)
          // No flow without a connection waits while one is free.
          const isFree = lines.length < size || lines.some(line => line.isFree)
          const waiting = expected.filter(exchange => !carried.includes(exchange))
          if (isFree) for (const { flow } of waiting) expect(flow.connections).toBeGreaterThan(0)
        }
        for (const next of steps) {
          const line = lines[('line' in next ? next.line : 0) % Math.max(lines.length, 1)]
          if (next.kind === 'submit') submitted.push(submit(FLOWS[next.flow] as string, next.text))
          else if (next.kind === 'answer' && line !== undefined && line.depth > 0)
            answered.add(answer(line, next.tookMs))
          else if (next.kind === 'close' && line !== undefined) close(line)
          else if (next.kind === 'cancel') {
            const exchange = submitted[next.exchange]
            if (exchange === undefined || answered.has(exchange)) continue
            if (lines.some(({ carried }) => carried.includes(exchange))) continue
            if (!cancelled.has(exchange)) dispatcher.withdraw(exchange)
            cancelled.add(exchange)
          }
          check()
        }
        // Each answer lets another request proceed, so there are no more turns than requests.
        for (let turns = submitted.length; turns >= 0; turns--) {
          const line = lines.find(({ depth }) => depth > 0)
          if (line === undefined) break
          answered.add(answer(line, 50))
          check()
        }
        for (const exchange of submitted) expect(answered.has(exchange) || cancelled.has(exchange)).toBe(true)
      },
    ),
    { numRuns: 500 },
  )
})

test('a flow waits for at most one turn of each other flow', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 6 }), fc.integer({ min: 2, max: 20 }), (size, flows) => {
      const { submit, answer, lines } = bench(size, Math.ceil(size / 2))
      const order: string[] = []
      for (let n = 0; n < flows; n++) for (let i = 0; i < 10; i++) submit(`${n}`, 'slow')
      while (order.length < flows * 5) {
        for (const line of [...lines]) if (line.depth > 0) order.push(answer(line, 50).flow.key)
      }
      const served = Array.from({ length: flows }, (_, n) => order.filter(key => key === `${n}`).length)
      // The flow that was first had up to half of the pool at the beginning.
      expect(Math.max(...served) - Math.min(...served)).toBeLessThanOrEqual(size + 1)
    }),
  )
})

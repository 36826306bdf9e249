/** A request waits for a connection until its own deadline. */
import { expect, test } from 'vitest'
import { CommandBatch } from './batch.ts'
import { Flow } from './flow.ts'
import type { PendingRequest } from './pending-request.ts'
import { WaitQueue } from './wait-queue.ts'

const own = new Flow('')

function unit(deadline: number, flow = own): PendingRequest {
  const made = new CommandBatch(flow, [], () => {})
  made.deadline = deadline
  return made
}

test('a request that is put back with an earlier deadline expires at that deadline', async () => {
  const start = performance.now()
  const expired: PendingRequest[] = []
  const waiting = new WaitQueue({ own, clock: () => performance.now(), expired: exchange => expired.push(exchange) })
  const late = unit(start + 60_000)
  const early = unit(start + 20)
  waiting.add(late)
  waiting.putBack(early)
  await expect.poll(() => expired).toEqual([early])
  expect(performance.now()).toBeGreaterThanOrEqual(start + 20)
  expect(waiting.drain()).toEqual([late])
})

test('if the first request leaves before its deadline, the next one still expires at its own', async () => {
  const start = performance.now()
  const expired: PendingRequest[] = []
  const waiting = new WaitQueue({ own, clock: () => performance.now(), expired: exchange => expired.push(exchange) })
  const gone = unit(start + 20)
  const next = unit(start + 40)
  waiting.add(gone)
  waiting.add(next)
  waiting.remove(gone)
  await expect.poll(() => expired).toEqual([next])
  expect(waiting.length).toBe(0)
})

/** Limits on the changes that wait in a poll, and their count until a response has them. */
import { expect, test } from 'vitest'
import { GatewayError } from '../errors.ts'
import type { ChangeNotification } from '../realtime/visibility-query.ts'
import { createWaitingBytes, type UnreadBudget } from '../realtime/waiting-bytes.ts'
import { createPoll } from './shape-poll.ts'

const KB = 1024

function change(characters: number, old: ChangeNotification['old'] = []): ChangeNotification {
  return { token: `t${characters}`, key: '', row: 'x'.repeat(characters), old, steps: [] } as never
}

/** A poll whose tenant has `max` bytes. */
function pollWithin(max: number) {
  let taken = 0
  const budget: UnreadBudget = {
    whileReading: (_, own) => (taken - own >= max ? new GatewayError('UNAVAILABLE', 'too much') : null),
    take(_, bytes) {
      taken += bytes
    },
    give(_, bytes) {
      taken -= bytes
    },
  }
  const poll = createPoll(createWaitingBytes(budget))
  return { poll, taken: () => taken }
}

const immediate = () => new Promise(setImmediate)

test('changes are counted with their old rows until the response has been handed over', async () => {
  const { poll, taken } = pollWithin(KB)
  poll.receiver.notify([change(10, [{ a: 'xx', b: null }, null])])
  expect(taken()).toBe(12)
  expect(poll.take()).toHaveLength(1)
  expect(taken()).toBe(12)
  await immediate()
  expect(taken()).toBe(0)
  poll.receiver.notify([change(10)])
  poll.discard()
  await immediate()
  expect([taken(), poll.isOver, poll.take()]).toEqual([0, true, []])
})

test('the bytes of a poll do not count against itself', () => {
  const { poll, taken } = pollWithin(1)
  for (let n = 0; n < 2; n++) poll.receiver.notify([change(70 * KB)])
  expect([poll.isOver, taken()]).toEqual([false, 140 * KB])
})

test('a poll over the limit of all ends before the change, and keeps what it has', () => {
  const { poll, taken } = pollWithin(0)
  poll.receiver.notify([change(40 * KB)])
  expect([poll.refusal, taken()]).toEqual([null, 40 * KB])
  poll.receiver.notify([change(40 * KB)])
  expect([poll.refusal?.code, poll.isFull, poll.isOver, taken()]).toEqual(['UNAVAILABLE', true, true, 40 * KB])
  expect(poll.take()).toHaveLength(1)
})

test.each([
  ['4 MiB', [change(3 * KB * KB), change(2 * KB * KB)]],
  ['2 000 changes', Array.from({ length: 2_001 }, () => change(1))],
])('a poll keeps %s, or one delivery', (_, changes) => {
  const { poll } = pollWithin(Number.POSITIVE_INFINITY)
  for (const each of changes) poll.receiver.notify([each])
  expect([poll.isFull, poll.refusal, poll.take().length]).toEqual([true, null, changes.length - 1])
  const { poll: large } = pollWithin(Number.POSITIVE_INFINITY)
  large.receiver.notify(changes)
  expect([large.isFull, large.take().length]).toEqual([false, 1])
})

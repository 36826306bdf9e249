import { expect, test } from 'vitest'
import { createSharedReads, type SharedReads } from './shared-reads.ts'

function world() {
  let now = 0
  const reads = createSharedReads(() => now)
  return {
    reads,
    pass(ms: number) {
      now += ms
    },
  }
}

const step = (from: string, to: string) => ({ stream: 's', from, to, value: `${from} to ${to}` })
const report = (reads: SharedReads, worker: number, from: string, to: string) =>
  reads.report(worker, 's', from, step(from, to))

test('one worker reads, and those that wait receive its result', async () => {
  const { reads, pass } = world()
  expect(await reads.turn(1, 's', 'a', 25)).toEqual({ kind: 'read' })
  const waiting = reads.turn(2, 's', 'a', 25)
  pass(3)
  report(reads, 1, 'a', 'b')
  expect(await waiting).toEqual({ kind: 'result', value: 'a to b', ageMs: 3 })
})

test('a worker that is behind receives the results in order', async () => {
  const { reads, pass } = world()
  for (const [from, to] of [
    ['a', 'b'],
    ['b', 'c'],
  ] as const) {
    await reads.turn(1, 's', from, 25)
    report(reads, 1, from, to)
    pass(25)
  }
  expect(await reads.turn(2, 's', 'a', 25)).toMatchObject({ value: 'a to b' })
  expect(await reads.turn(2, 's', 'b', 25)).toMatchObject({ value: 'b to c', ageMs: 25 })
  expect(await reads.turn(2, 's', 'c', 25)).toEqual({ kind: 'read' })
})

test('the first read of a worker gets the latest shared result', async () => {
  const { reads, pass } = world()
  await reads.turn(1, 's', 'a', 25)
  report(reads, 1, 'a', 'b')
  pass(50)
  expect(await reads.turn(2, 's', '', 25)).toEqual({ kind: 'result', value: 'a to b', ageMs: 50 })
  pass(5_000)
  expect(await reads.turn(3, 's', '', 25)).toEqual({ kind: 'read' })
})

test('a read without changes is used only for a limited time', async () => {
  const { reads, pass } = world()
  await reads.turn(1, 's', 'a', 25)
  report(reads, 1, 'a', 'a')
  pass(24)
  expect(await reads.turn(2, 's', 'a', 25)).toMatchObject({ kind: 'result', ageMs: 24 })
  pass(1)
  expect(await reads.turn(2, 's', 'a', 25)).toEqual({ kind: 'read' })
})

test('when a read fails or its worker ends, the next one reads', async () => {
  const { reads } = world()
  await reads.turn(1, 's', 'a', 25)
  const [second, third] = [reads.turn(2, 's', 'a', 25), reads.turn(3, 's', 'a', 25)]
  reads.report(1, 's', 'a', null)
  expect(await second).toEqual({ kind: 'read' })
  reads.drop(2)
  expect(await third).toEqual({ kind: 'read' })
  // The result of a worker that no longer reads is not used.
  report(reads, 1, 'a', 'x')
  report(reads, 3, 'a', 'b')
  expect(await reads.turn(4, 's', 'a', 25)).toMatchObject({ value: 'a to b' })
})

test('streams have nothing in common', async () => {
  const { reads } = world()
  await reads.turn(1, 's', 'a', 25)
  report(reads, 1, 'a', 'b')
  expect(await reads.turn(2, 'other', 'a', 25)).toEqual({ kind: 'read' })
})

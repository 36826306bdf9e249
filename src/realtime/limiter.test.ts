import { expect, test } from 'vitest'
import { createLimiter } from './limiter.ts'

/** Tasks that end on request. */
function createTasks(limiter: ReturnType<typeof createLimiter>) {
  const begun: string[] = []
  const ends = new Map<string, () => void>()
  return {
    begun,
    start: (owner: string, name: string) =>
      limiter.run(owner, () => {
        begun.push(name)
        return new Promise<void>(resolve => ends.set(name, resolve))
      }),
    async end(name: string) {
      ends.get(name)?.()
      // The limiter continues in a later microtask.
      await new Promise(setImmediate)
    },
  }
}

test('an owner with many tasks leaves slots to others and waits for its turn', async () => {
  const limiter = createLimiter({ slots: 3, slotsPerOwner: 2 })
  const { begun, start, end } = createTasks(limiter)
  for (const name of ['a1', 'a2', 'a3', 'a4', 'a5']) void start('a', name)
  expect([begun, limiter.waiting]).toEqual([['a1', 'a2'], 3])
  for (const name of ['b1', 'b2']) void start('b', name)
  void start('c', 'c1')
  expect([begun, limiter.waiting]).toEqual([['a1', 'a2', 'b1'], 5])
  for (const name of ['a1', 'a2', 'b1', 'b2', 'c1', 'a3', 'a4', 'a5']) await end(name)
  expect(begun).toEqual(['a1', 'a2', 'b1', 'a3', 'b2', 'c1', 'a4', 'a5'])
  expect(limiter.waiting).toBe(0)
})

test('a task that fails frees its slot', async () => {
  const limiter = createLimiter({ slots: 1, slotsPerOwner: 1 })
  await expect(limiter.run('a', () => Promise.reject(new Error('no')))).rejects.toThrow('no')
  expect(await limiter.run('b', () => Promise.resolve('yes'))).toBe('yes')
})

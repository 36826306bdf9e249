/** The queue behaves like an array under any sequence of operations. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Fifo } from './fifo.ts'

test('every sequence of operations has the same effect as on an array', () => {
  const operation = fc.oneof(
    fc.tuple(fc.constant('push' as const), fc.nat(20)),
    fc.tuple(fc.constant('unshift' as const), fc.nat(20)),
    fc.tuple(fc.constant('remove' as const), fc.nat(20)),
    fc.tuple(fc.constant('shift' as const), fc.constant(0)),
  )
  fc.assert(
    fc.property(fc.array(operation, { maxLength: 400, size: 'max' }), operations => {
      const fifo = new Fifo<number>()
      const model: number[] = []
      for (const [name, item] of operations) {
        if (name === 'push') {
          fifo.push(item)
          model.push(item)
        } else if (name === 'unshift') {
          fifo.unshift(item)
          model.unshift(item)
        } else if (name === 'shift') {
          expect(fifo.shift()).toBe(model.shift())
        } else {
          const index = model.indexOf(item)
          expect(fifo.remove(item)).toBe(index !== -1)
          if (index !== -1) model.splice(index, 1)
        }
        expect(fifo.length).toBe(model.length)
        expect(fifo.peek()).toBe(model[0])
      }
      expect(fifo.drain()).toEqual(model)
      expect(fifo.length).toBe(0)
    }),
  )
})

test('order is kept over many operations', () => {
  const fifo = new Fifo<number>()
  for (let index = 0; index < 1000; index++) fifo.push(index)
  for (let index = 0; index < 1000; index++) expect(fifo.shift()).toBe(index)
  expect(fifo.shift()).toBeUndefined()
})

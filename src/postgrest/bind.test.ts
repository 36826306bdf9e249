/** The shape of a request, and its values. */
import { describe, expect, test } from 'vitest'
import { Values } from '../rest/values.ts'
import { bindLevel, LevelBinder } from './bind.ts'
import { parseQueryParameters } from './query-parameters.ts'
import type { RowRange } from './range.ts'

const LIMITS = { maxExpandDepth: 4, maxFilters: 100, maxInValues: 100, legacyTargetNames: false }

test('the limits of all levels are part of the shape, and the offsets are values', () => {
  const { root } = parseQueryParameters(
    'select=id,lines(*)&limit=3&offset=7&lines.limit=2&id=gt.5',
    false,
    LIMITS as never,
  )
  const values = new Values()
  const level = bindLevel(root, root.range, values, { maxInValues: 100 })
  expect([level.limit, level.embedded[0]?.limit]).toEqual([3, 2])
  expect(values.all).toEqual(['5', '7'])
})

describe('requests of one shape', () => {
  const binder = new LevelBinder({ maxInValues: 100 })
  const bind = (query: string, range?: RowRange) => {
    const parameters = parseQueryParameters(query, false, SHARED_LIMITS)
    const values = new Values()
    return { ...binder.bind(parameters, range ?? parameters.root.range, values), values: values.all }
  }
  const SHARED_LIMITS = { ...LIMITS, maxQueryParameters: 100 }

  test('share the level and have their own values, in the order of the level', () => {
    const query = (id: string, name: string, at: string) =>
      `select=data->>${at}&id=eq.${id}&or=(a.eq.1,b.eq.2)&name=not.ilike.${name}&offset=7&tags=cs.{${id}}`
    const first = bind(query('5', 'a*', 'x'))
    const second = bind(query('6', '*b*c', 'x'))
    expect(second.level).toBe(first.level)
    expect(first.values).toEqual(['x', '5', '1', '2', 'a%', '{5}', '7'])
    expect(second.values).toEqual(['x', '6', '1', '2', '%b%c', '{6}', '7'])
    // A key of a JSON value is a value of the statement as well, but names the column of the result.
    expect(bind(query('6', 'b', 'y')).values).toEqual(['y', '6', '1', '2', 'b', '{6}', '7'])
  })

  test.each([
    ['id=eq.5', 'id=gt.5'],
    ['id=eq.5', 'id=not.eq.5'],
    ['id=eq.5', 'ids=eq.5'],
    ['id=eq.5', 'id=eq.5&id=eq.5'],
    ['id=eq.5&limit=1', 'id=eq.5&limit=2'],
    ['id=eq.5', 'id=eq(any).{5}'],
    ['id=in.(5)', 'id=eq.5'],
    ['a=eq.1&b=eq.2', 'b=eq.2&a=eq.1'],
  ])('differ: %s and %s', (one, other) => {
    expect(bind(other).name).not.toBe(bind(one).name)
  })

  test('a list, which is one value, can have any length', () => {
    expect(bind('id=in.(5,6)').values).toEqual(['{"5","6"}'])
    expect(bind('id=in.(5,6,7)').values).toEqual(['{"5","6","7"}'])
  })

  test('a range of the header is not that of an earlier request', () => {
    expect(bind('id=eq.5').level.limit).toBe(null)
    const ranged = bind('id=eq.6', { limit: 3, offset: 2 })
    expect([ranged.level.limit, ranged.values]).toEqual([3, ['6', '2']])
    expect(bind('id=eq.7')).toMatchObject({ level: { limit: null }, values: ['7'] })
  })
})

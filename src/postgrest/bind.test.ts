/** The shape of a request, and its values. */
import { expect, test } from 'vitest'
import { Values } from '../rest/values.ts'
import { bindLevel } from './bind.ts'
import { parseQueryParameters } from './query-parameters.ts'

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

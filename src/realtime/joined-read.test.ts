import { expect, test } from 'vitest'
import { withOwn } from './joined-read.ts'
import { parseSnapshot, type Snapshot, union } from './snapshot.ts'

const RANGE = Array.from({ length: 20 }, (_, index) => BigInt(index))
const isVisible = ({ xmax, open }: Snapshot, xid: bigint) => xid < xmax && !open.includes(xid)
const visible = (snapshot: Snapshot) => RANGE.filter(xid => isVisible(snapshot, xid))

/** The number below which everything is visible. */
const isConsistent = ({ xmin, xmax, open }: Snapshot) =>
  xmin === (open[0] ?? xmax) && open.every((xid, index) => xid < xmax && xid > (open[index - 1] ?? -1n))

test.each([
  ['5:5:', 5n],
  ['5:5:', 8n],
  ['3:9:3,7', 5n],
  ['5:9:5,7', 5n],
  ['3:9:3', 12n],
])('%s with the own transaction %i sees that one too', (text, xid) => {
  const snapshot = parseSnapshot(text)
  const found = withOwn(snapshot, xid)
  if (found === null) throw new Error('the own transaction cannot be added')
  expect(isConsistent(found)).toBe(true)
  expect(visible(found)).toEqual([...new Set([...visible(snapshot), xid])].sort((a, b) => Number(a - b)))
})

test('a transaction that began long before may be one of too many', () => {
  expect(withOwn(parseSnapshot('5:5:'), 1_005n)).not.toBeNull()
  expect(withOwn(parseSnapshot('5:5:'), 1_006n)).toBeNull()
})

const SNAPSHOTS = ['5:5:', '5:9:5,7', '3:9:3', '3:12:3,10,11', '7:8:7', '2:15:2,5,9,14']

test.each(SNAPSHOTS.flatMap(one => SNAPSHOTS.map(other => [one, other])))('%s and %s see together', (one, other) => {
  const [a, b] = [parseSnapshot(one), parseSnapshot(other)]
  const found = union(a, b)
  expect(isConsistent(found)).toBe(true)
  expect(visible(found)).toEqual(RANGE.filter(xid => isVisible(a, xid) || isVisible(b, xid)))
})

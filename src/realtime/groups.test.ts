import { expect, test } from 'vitest'
import type { Change } from './change.ts'
import type { Group } from './group.ts'
import { createGroups } from './groups.ts'

function change(seq: number, value: string): Change {
  const place = { from: 'from', to: seq === 3 ? 'to' : 'from' }
  const routes = { column: 'tenant', values: [JSON.stringify(value)] }
  return {
    ...place,
    seq,
    operation: 'UPDATE',
    key: `{"id": ${seq}}`,
    before: null,
    assigned: null,
    at: '',
    txid: '1',
    routes,
  }
}

/** What each of the groups gets, which see rows of these tenants; null: nobody knows of which. */
function given(changes: readonly Change[], ...tenants: readonly (string | null)[]) {
  const groups = createGroups()
  const got = tenants.map((tenant, index) => {
    const own: [number, string][] = []
    const add = (added: readonly Change[]) => own.push(...added.map(({ seq, to }): [number, string] => [seq, to]))
    const group = { add } as unknown as Group
    groups.add(String(index), group)
    if (tenant !== null) groups.route(group, { column: 'tenant', values: [JSON.stringify(tenant), `#${tenant}`] })
    return own
  })
  const concerned = groups.distribute(changes)
  expect(concerned).toBe(got.filter(own => own.length > 0).length)
  return got
}

const CHANGES = [change(1, 'a'), change(2, 'b'), change(3, 'c')]

test('each group gets what may concern it, and the last of that leads to the end', () => {
  expect(given(CHANGES, 'a', 'b', null, 'd')).toEqual([
    [[1, 'to']],
    [[2, 'to']],
    [
      [1, 'from'],
      [2, 'from'],
      [3, 'to'],
    ],
    [],
  ])
})

test('what concerns no group costs none of them a look', () => {
  expect(given([change(3, 'x')], 'a', 'b')).toEqual([[], []])
})

test('a change of unknown whereabouts, or of another column, concerns every group', () => {
  const everybody = [[[3, 'to']], [[3, 'to']]]
  expect(given([{ ...change(3, 'a'), routes: null }], 'a', 'b')).toEqual(everybody)
  expect(given([{ ...change(3, 'a'), routes: { column: 'owner', values: ['"a"'] } }], 'a', 'b')).toEqual(everybody)
})

test('a value is found by its hash, and a row that moves concerns both', () => {
  const moved = { ...change(3, 'a'), routes: { column: 'tenant', values: ['#a', '"b"'] } }
  expect(given([moved], 'a', 'b', 'c')).toEqual([[[3, 'to']], [[3, 'to']], []])
})

test('a group that is gone gets nothing', () => {
  const groups = createGroups()
  const group = { add: () => expect.unreachable() } as unknown as Group
  groups.add('one', group)
  groups.route(group, { column: 'tenant', values: ['"a"'] })
  groups.delete(group)
  expect([groups.size, groups.distribute([change(3, 'a'), { ...change(3, 'a'), routes: null }])]).toEqual([0, 0])
})

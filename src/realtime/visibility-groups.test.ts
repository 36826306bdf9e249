import { expect, test } from 'vitest'
import type { ChangeEvent } from './change-event.ts'
import type { VisibilityGroup } from './visibility-group.ts'
import { createVisibilityGroups } from './visibility-groups.ts'

function change(seq: number, value: string): ChangeEvent {
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

/** The changes each group receives; groups can see rows of these tenants, and null is an unrouted group. */
function given(changes: readonly ChangeEvent[], ...tenants: readonly (string | null)[]) {
  const groups = createVisibilityGroups()
  const got = tenants.map((tenant, index) => {
    const own: [number, string][] = []
    const add = (added: readonly ChangeEvent[]) => own.push(...added.map(({ seq, to }): [number, string] => [seq, to]))
    const group = { add } as unknown as VisibilityGroup
    groups.add(String(index), group)
    if (tenant !== null) groups.route(group, [{ column: 'tenant', values: [JSON.stringify(tenant), `#${tenant}`] }])
    return own
  })
  const concerned = groups.distribute(changes)
  expect(concerned).toBe(got.filter(own => own.length > 0).length)
  return got
}

const CHANGES = [change(1, 'a'), change(2, 'b'), change(3, 'c')]

test('each group receives the changes that may concern it, and the last one carries the final token', () => {
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

test('a change that concerns no group causes no query', () => {
  expect(given([change(3, 'x')], 'a', 'b')).toEqual([[], []])
})

test('an unrouted change, or one routed by another column, concerns every group', () => {
  const everybody = [[[3, 'to']], [[3, 'to']]]
  expect(given([{ ...change(3, 'a'), routes: null }], 'a', 'b')).toEqual(everybody)
  expect(given([{ ...change(3, 'a'), routes: { column: 'owner', values: ['"a"'] } }], 'a', 'b')).toEqual(everybody)
})

test('a value is found by its hash, and a row that moves between tenants concerns both', () => {
  const moved = { ...change(3, 'a'), routes: { column: 'tenant', values: ['#a', '"b"'] } }
  expect(given([moved], 'a', 'b', 'c')).toEqual([[[3, 'to']], [[3, 'to']], []])
})

test('a removed group receives nothing', () => {
  const groups = createVisibilityGroups()
  const group = { add: () => expect.unreachable() } as unknown as VisibilityGroup
  groups.add('one', group)
  groups.route(group, [{ column: 'tenant', values: ['"a"'] }])
  groups.delete(group)
  expect([groups.size, groups.distribute([change(3, 'a'), { ...change(3, 'a'), routes: null }])]).toEqual([0, 0])
})

test('a group can have values in several columns', () => {
  const groups = createVisibilityGroups()
  const group = (name: string, ...values: readonly [column: string, value: string][]) => {
    const made = { name } as unknown as VisibilityGroup
    groups.add(name, made)
    const list = values.map(([column, value]) => ({ column, values: [value] }))
    groups.route(made, list)
  }
  group('a', ['tenant', 'a'], ['guard', '1'])
  group('b', ['tenant', 'b'], ['guard', '2'])
  group('c', ['tenant', 'c'])
  const concerned = (column: string, value: string) =>
    groups.concernedBy({ column, values: [value] }).map(found => (found as unknown as { name: string }).name)
  expect(concerned('tenant', 'a')).toEqual(['a'])
  // The value of the third group is not known.
  expect(concerned('guard', '2')).toEqual(['c', 'b'])
  expect(concerned('other', '2')).toEqual(['a', 'b', 'c'])
})

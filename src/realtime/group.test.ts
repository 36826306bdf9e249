import { expect, test } from 'vitest'
import type { Change } from './change.ts'
import { distribute, type Group } from './group.ts'
import type { RouteValue } from './route.ts'

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
  const got = tenants.map((): [number, string][] => [])
  const groups = tenants.map((tenant, index) => {
    const route: RouteValue | null = tenant === null ? null : { column: 'tenant', value: JSON.stringify(tenant) }
    const add = (added: readonly Change[]) =>
      got[index]?.push(...added.map(({ seq, to }): [number, string] => [seq, to]))
    return { route, add } as unknown as Group
  })
  distribute(changes, groups)
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

test('what concerns none is looked at by one, who notices a policy that has become another', () => {
  expect(given([change(3, 'x')], 'a', 'b')).toEqual([[[3, 'to']], []])
})

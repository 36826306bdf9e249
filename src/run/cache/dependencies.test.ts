import { expect, test } from 'vitest'
import { catalogOf } from '../../../test/support/model.ts'
import type { Catalog, Dependency } from '../../catalog/model.ts'
import { readDependencies, writeDependencies } from './dependencies.ts'

const NOTHING: Dependency = { ties: [], mentions: [], nondeterminism: [], effect: null }
const NO_EFFECT = { insert: false, update: false, delete: false }

function catalogWith(dependencies: Readonly<Record<number, Partial<Dependency>>>): Catalog {
  const entries = Object.entries(dependencies).map(([oid, part]) => [Number(oid), { ...NOTHING, ...part }] as const)
  return { ...catalogOf(), dependencies: new Map(entries) }
}

function reads(catalog: Catalog, ...start: readonly number[]) {
  const { relations, opaque, deterministic } = readDependencies(catalog, start)
  return { relations: [...relations].sort(), opaque, deterministic }
}

function writes(catalog: Catalog, relation: number, operation: 'insert' | 'update' | 'delete') {
  const relations = writeDependencies(catalog, [{ relation, operation }])
  return relations === null ? 'anything' : [...relations].sort()
}

test('a read depends on views, policies and child tables at any depth, also in cycles', () => {
  const catalog = catalogWith({
    1: { ties: [{ other: 2, how: 'view' }] },
    2: { ties: [{ other: 3, how: 'policy' }] },
    3: {
      ties: [
        { other: 4, how: 'child' },
        { other: 2, how: 'policy' },
      ],
    },
    4: { ties: [{ other: 5, how: 'delete deletes' }] },
  })
  expect(reads(catalog, 1)).toEqual({ relations: [1, 2, 3, 4], opaque: false, deterministic: true })
  expect(reads(catalog, 5, 4)).toEqual({ relations: [4, 5], opaque: false, deterministic: true })
  expect(reads(catalog)).toEqual({ relations: [], opaque: false, deterministic: true })
})

test('functions in views and policies determine whether a read is deterministic', () => {
  const catalog = catalogWith({
    1: { nondeterminism: [{ cause: 'stable', name: 'current_setting' }] },
    2: { nondeterminism: [{ cause: 'stable', name: 'now' }] },
    3: { nondeterminism: [{ cause: 'stable', name: 'made_up_in_a_later_version' }] },
    4: { nondeterminism: [{ cause: 'opaque', name: 'is_member' }] },
    5: { nondeterminism: [{ cause: 'volatile', name: 'current_setting' }] },
    6: { ties: [{ other: 5, how: 'view' }] },
  })
  expect(reads(catalog, 1)).toMatchObject({ opaque: false, deterministic: true })
  expect(reads(catalog, 2)).toMatchObject({ deterministic: false })
  expect(reads(catalog, 3)).toMatchObject({ deterministic: false })
  expect(reads(catalog, 4)).toMatchObject({ opaque: true, deterministic: true })
  expect(reads(catalog, 5)).toMatchObject({ deterministic: false })
  expect(reads(catalog, 6)).toMatchObject({ deterministic: false })
})

test('a write changes child tables, tables under views, and cascades of foreign keys', () => {
  const catalog = catalogWith({
    1: {
      ties: [
        { other: 2, how: 'delete deletes' },
        { other: 3, how: 'delete updates' },
        { other: 4, how: 'update updates' },
        { other: 9, how: 'policy' },
      ],
    },
    2: { ties: [{ other: 5, how: 'delete deletes' }] },
    3: {
      ties: [
        { other: 6, how: 'update updates' },
        { other: 9, how: 'delete deletes' },
      ],
    },
    7: { ties: [{ other: 1, how: 'view' }] },
    8: { ties: [{ other: 7, how: 'child' }] },
  })
  expect(writes(catalog, 1, 'insert')).toEqual([1])
  expect(writes(catalog, 1, 'update')).toEqual([1, 4])
  expect(writes(catalog, 1, 'delete')).toEqual([1, 2, 3, 5, 6])
  expect(writes(catalog, 8, 'delete')).toEqual([1, 2, 3, 5, 6, 7, 8])
})

test('an update of a partitioned table can delete and insert rows', () => {
  const catalog = catalogWith({
    1: {
      ties: [
        { other: 1, how: 'update moves' },
        { other: 2, how: 'delete deletes' },
      ],
    },
  })
  expect(writes(catalog, 1, 'update')).toEqual([1, 2])
  expect(writes(catalog, 1, 'insert')).toEqual([1])
})

test('a write with a trigger at any depth may change any table', () => {
  const catalog = catalogWith({
    1: { effect: { ...NO_EFFECT, insert: true } },
    2: { ties: [{ other: 3, how: 'delete updates' }] },
    3: { effect: { ...NO_EFFECT, update: true } },
  })
  expect(writes(catalog, 1, 'insert')).toBe('anything')
  expect(writes(catalog, 1, 'update')).toEqual([1])
  expect(writes(catalog, 2, 'delete')).toBe('anything')
  expect(writes(catalog, 2, 'update')).toEqual([2])
})

import { describe, expect, test } from 'vitest'
import { catalogOf, tableOf } from '../../test/support/model.ts'
import { type FindPartition, NewPartitions, partitionNamed, READS_PER_SECOND } from './new-partitions.ts'

const CONSTRAINTS = new Map([['low_key', ['id']]])
const low = { schema: 'public', table: 'low', constraint: 'low_key' }

function opened(find: FindPartition = async () => ({ root: 1, constraints: CONSTRAINTS })) {
  const catalog = catalogOf(tableOf('parts', { id: 'int4' }))
  const found: string[] = []
  let time = 0
  const partitions = new NewPartitions({
    now: () => time,
    find: (schema, name) => {
      found.push(`${schema}.${name}`)
      return find(schema, name)
    },
  })
  return { catalog, found, partitions, wait: (ms: number) => (time += ms) }
}

describe('a partition that the catalog does not contain', () => {
  test('is read once, also for errors at the same time', async () => {
    const { catalog, found, partitions } = opened()
    await Promise.all([partitions.learn(low, { catalog }), partitions.learn(low, { catalog })])
    expect(partitionNamed('low', catalog)).toEqual({ table: 'parts', constraints: CONSTRAINTS })
    expect(partitions.learn(low, { catalog })).toBeNull()
    expect(found).toEqual(['public.low'])
  })

  test('is read again after a while if it has another constraint', async () => {
    const { catalog, found, partitions, wait } = opened()
    await partitions.learn(low, { catalog })
    const other = { ...low, constraint: 'late' }
    expect(partitions.learn(other, { catalog })).toBeNull()
    wait(10_000)
    await partitions.learn(other, { catalog })
    expect(found).toHaveLength(2)
  })

  test('stays unknown if it is not a partition, or cannot be read', async () => {
    for (const find of [
      async () => null,
      async () => ({ root: 99, constraints: CONSTRAINTS }),
      () => Promise.reject(),
    ]) {
      const { catalog, partitions } = opened(find)
      await partitions.learn(low, { catalog })
      expect(partitionNamed('low', catalog)).toBeUndefined()
    }
  })

  test('is looked up a few times per second at most', async () => {
    const { catalog, found, partitions, wait } = opened(async () => null)
    for (let n = 0; n < 100; n++) await partitions.learn({ ...low, table: `t${n}` }, { catalog })
    expect(found).toHaveLength(READS_PER_SECOND)
    wait(1_000)
    await partitions.learn(low, { catalog })
    expect(found).toHaveLength(READS_PER_SECOND + 1)
  })
})

test('a constraint that is in the catalog is found without a query', () => {
  const { catalog, found, partitions } = opened()
  expect(partitions.learn({ schema: 'public', table: 'parts', constraint: null }, { catalog })).toBeNull()
  expect(found).toEqual([])
})

import { expect, test } from 'vitest'
import type { Catalog } from '../catalog/model.ts'
import type { Event } from '../events.ts'
import { createSchemaWatch } from './schema-status.ts'

const catalogOf = (fingerprint: string, tables: number) =>
  ({
    ...{ fingerprint, serverVersion: 180_004, schemas: ['public'] },
    tables: new Map(Array.from({ length: tables }, (_, n) => [`t${n}`, {}])),
  }) as unknown as Catalog

const happened = (event: string, detail: Readonly<Record<string, unknown>>): Event => ({
  kind: 'catalog',
  event,
  detail,
})

test('reloads are counted by their result, and only a successful one resets the age of the schema', () => {
  let now = 5
  let catalog = catalogOf('a', 1)
  const watch = createSchemaWatch({ catalog: () => catalog, now: () => now, clock: () => 1_000_000 + now })
  expect(watch.status()).toEqual({
    ...{ fingerprint: 'a', tables: 1, serverVersion: 180_004, version: 1, readAt: new Date(1_000_005), readAtMs: 5 },
    reloads: { changed: 0, unchanged: 0, failed: 0 },
  })

  now = 10
  watch.hear(happened('failed', { reason: 'poll', error: new Error('away') }))
  expect(watch.status()).toMatchObject({ version: 1, readAtMs: 5, reloads: { failed: 1 } })

  now = 20
  watch.hear(happened('loaded', { changed: false }))
  expect(watch.status()).toMatchObject({ version: 1, readAtMs: 20, reloads: { unchanged: 1 } })

  now = 30
  catalog = catalogOf('b', 2)
  watch.hear(happened('loaded', { changed: true }))
  expect(watch.status()).toMatchObject({
    ...{ fingerprint: 'b', tables: 2, version: 2, readAt: new Date(1_000_030), readAtMs: 30 },
    reloads: { changed: 1, unchanged: 1, failed: 1 },
  })
})

test('other events are ignored', () => {
  const watch = createSchemaWatch({ catalog: () => catalogOf('a', 0), now: () => 0, clock: () => 0 })
  watch.hear({ kind: 'database', event: 'loaded', detail: { changed: true } })
  watch.hear(happened('toString', {}))
  expect(watch.status()).toMatchObject({ version: 1, reloads: { changed: 0, unchanged: 0, failed: 0 } })
})

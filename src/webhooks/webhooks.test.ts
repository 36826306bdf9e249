/**
 * A write never waits for its webhooks, and the queue is bounded
 * (docs/guides/webhooks.md#delivery-guarantees).
 */
import { beforeEach, expect, test } from 'vitest'
import { testClock, turn } from '../../test/support/test-clock.ts'
import type { Table } from '../catalog/model.ts'
import type { Event } from '../events.ts'
import { createAddressGuard } from '../outbound/address-guard.ts'
import { DEAD_LETTERS_SHOWN_MAX, operatorRequests } from './operator-requests.ts'
import type { Trigger } from './trigger.ts'
import type { Triggers } from './triggers.ts'
import { CHANGES_MAX, type RowChange, Webhooks } from './webhooks.ts'

const TABLE = { schema: 'public', name: 'notes', resource: 'notes' } as Table

const TRIGGER: Trigger = {
  ...{ name: 'hook', table: 'notes', operations: ['create'], url: new URL('http://192.0.2.1/hook'), retryCount: 0 },
  ...{ headers: {}, enabled: true, columns: null, secrets: [], timeoutMs: 5_000, source: 'gateway', order: 'none' },
}

let events: Event[]
let webhooks: Webhooks
let isStored: boolean
let generation: number
beforeEach(() => {
  events = []
  isStored = false
  generation = 0
  const triggers: Triggers = {
    all: () => [TRIGGER],
    named: () => TRIGGER,
    on: (_, operations) => (operations.includes('create') ? [TRIGGER] : []),
    disable() {},
    isActive: () => true,
    isStored: () => isStored,
    generation: () => generation,
    reload: async () => {},
    refresh: async () => {},
  }
  webhooks = new Webhooks({
    ...{ triggers, guard: createAddressGuard({ allow: [], loopback: 'refused' }), clock: testClock() },
    outbox: null,
    catalog: () => {
      throw new Error('not requested')
    },
    ...{ random: Math.random, userAgent: 'svc/test', emit: event => events.push(event) },
  })
})

const created: RowChange = { operation: 'INSERT', after: '{"id":1}', before: null }
const deleted: RowChange = { operation: 'DELETE', after: null, before: '{"id":1}' }

test('deliveries are created only after the response to the write has been sent', async () => {
  webhooks.committed(TABLE, [created], ['hook'])
  await Promise.resolve()
  expect(await webhooks.stats()).toMatchObject({ ready: 0, inFlight: 0, deadLetters: 0 })
  // An address that does not accept connections.
  while ((await webhooks.stats()).deadLetters === 0) await turn()
  await webhooks.close({ deadlineMs: 0 })
})

test('changes over the limit are not delivered, but counted', async () => {
  const changes = new Array<RowChange>(CHANGES_MAX - 1).fill(deleted)
  webhooks.committed(TABLE, changes, ['hook'])
  webhooks.committed(TABLE, [deleted, deleted, deleted], ['hook'])
  expect((await webhooks.stats()).undelivered).toBe(2)
  expect(events).toEqual([
    {
      ...{ kind: 'webhooks', event: 'changes not delivered' },
      detail: {
        table: 'notes',
        error: new Error('2 changes exceed the limit of 100000 pending changes; no webhooks are sent for them'),
      },
    },
  ])
  await webhooks.close({ deadlineMs: 0 })
})

test('the overview lists some dead letters, counts all of them, and links to the next page', async () => {
  webhooks.committed(TABLE, new Array<RowChange>(DEAD_LETTERS_SHOWN_MAX + 20).fill(created), ['hook'])
  while ((await webhooks.stats()).deadLetters < DEAD_LETTERS_SHOWN_MAX + 20) await turn()
  const list = operatorRequests(webhooks).get('/internal/webhooks')?.respond
  const first = (await list?.(new Map())) as Listed
  expect(first).toMatchObject({ dead_letter_count: DEAD_LETTERS_SHOWN_MAX + 20 })
  expect(first.dead_letters).toHaveLength(DEAD_LETTERS_SHOWN_MAX)
  const second = (await list?.(new Map([['before', first.older_than ?? '']]))) as Listed
  expect(second.older_than).toBeNull()
  const shown = [...first.dead_letters, ...second.dead_letters].map(({ id }) => id)
  expect(new Set(shown).size).toBe(DEAD_LETTERS_SHOWN_MAX + 20)
  expect(await list?.(new Map([['before', 'nothing']]))).toBeNull()
})

interface Listed {
  readonly dead_letters: readonly { readonly id: string }[]
  readonly older_than: string | null
}

test('the listeners of a write are computed once for each generation of the triggers', () => {
  const table = { ...TABLE, primaryKey: [], columnByName: new Map() }
  const inMemory = webhooks.listeners(table, ['INSERT'])
  expect(inMemory).toEqual({ memory: ['hook'], outbox: [] })
  expect(webhooks.listeners(table, ['DELETE'])).toEqual({ memory: [], outbox: [] })
  expect(webhooks.listeners(table, ['INSERT'])).toBe(inMemory)
  isStored = true
  generation += 1
  expect(webhooks.listeners(table, ['INSERT'])).toEqual({ memory: [], outbox: ['hook'] })
})

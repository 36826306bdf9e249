/** A write never waits for its webhooks, and the queue is bounded (docs/guides/webhooks.md#delivery-guarantees). */
import { beforeEach, expect, test } from 'vitest'
import { testClock, turn } from '../../test/support/test-clock.ts'
import type { Table } from '../catalog/model.ts'
import type { Event } from '../events.ts'
import { createAddressGuard } from '../outbound/address-guard.ts'
import { LETTERS_SHOWN_MAX, webhookAnswers } from './answers.ts'
import type { Trigger } from './trigger.ts'
import type { Triggers, Writer } from './triggers.ts'
import { CHANGES_MAX, type RowChange, Webhooks } from './webhooks.ts'

const TABLE = { schema: 'public', name: 'notes', resource: 'notes' } as Table

const TRIGGER: Trigger = {
  ...{ name: 'hook', table: 'notes', operations: ['create'], url: new URL('http://192.0.2.1/hook'), retryCount: 0 },
  ...{ headers: {}, enabled: true, columns: null, secrets: [], timeoutMs: 5_000, source: 'gateway', order: 'none' },
}

let events: Event[]
let webhooks: Webhooks
let writer: Writer
let generation: number
beforeEach(() => {
  events = []
  writer = 'nobody'
  generation = 0
  const triggers: Triggers = {
    all: () => [TRIGGER],
    named: () => TRIGGER,
    on: (_, operations) => (operations.includes('create') ? [TRIGGER] : []),
    disable() {},
    isActive: () => true,
    writerOf: () => writer,
    generation: () => generation,
    reload: async () => {},
    refresh: async () => {},
  }
  webhooks = new Webhooks({
    ...{ triggers, guard: createAddressGuard({ allow: [], loopback: 'refused' }), clock: testClock() },
    ...{ outbox: null, tenantColumn: 'tenant_id', ticket: '' },
    catalog: () => {
      throw new Error('nobody asks')
    },
    ...{ random: Math.random, userAgent: 'svc/test', emit: event => events.push(event) },
  })
})

const created: RowChange = { happened: 'INSERT', after: '{"id":1}', before: null }
const deleted: RowChange = { happened: 'DELETE', after: null, before: '{"id":1}' }

test('nothing is made of a change before its caller has got the answer', async () => {
  webhooks.committed(TABLE, [created], ['hook'])
  await Promise.resolve()
  expect(await webhooks.stats()).toMatchObject({ ready: 0, inFlight: 0, deadLetters: 0 })
  // To an address that is not reached.
  while ((await webhooks.stats()).deadLetters === 0) await turn()
  await webhooks.close({ deadlineMs: 0 })
})

test('of too many changes at once the rest is not told, and counted', async () => {
  const changes = new Array<RowChange>(CHANGES_MAX - 1).fill(deleted)
  webhooks.committed(TABLE, changes, ['hook'])
  webhooks.committed(TABLE, [deleted, deleted, deleted], ['hook'])
  expect((await webhooks.stats()).untold).toBe(2)
  expect(events).toEqual([
    {
      ...{ kind: 'webhooks', event: 'changes untold' },
      detail: { table: 'notes', error: new Error('2 changes at once are too many; nobody is told of them') },
    },
  ])
  await webhooks.close({ deadlineMs: 0 })
})

test('an overview shows so many dead letters, counts all, and says where the others begin', async () => {
  webhooks.committed(TABLE, new Array<RowChange>(LETTERS_SHOWN_MAX + 20).fill(created), ['hook'])
  while ((await webhooks.stats()).deadLetters < LETTERS_SHOWN_MAX + 20) await turn()
  const list = webhookAnswers(webhooks).get('/internal/webhooks')?.answer
  const first = (await list?.(new Map())) as Listed
  expect(first).toMatchObject({ dead_letter_count: LETTERS_SHOWN_MAX + 20 })
  expect(first.dead_letters).toHaveLength(LETTERS_SHOWN_MAX)
  const second = (await list?.(new Map([['before', first.older_than ?? '']]))) as Listed
  expect(second.older_than).toBeNull()
  const shown = [...first.dead_letters, ...second.dead_letters].map(({ id }) => id)
  expect(new Set(shown).size).toBe(LETTERS_SHOWN_MAX + 20)
  expect(await list?.(new Map([['before', 'nothing']]))).toBeNull()
})

interface Listed {
  readonly dead_letters: readonly { readonly id: string }[]
  readonly older_than: string | null
}

test('who is told of a write is worked out once for what is in force', () => {
  const table = { ...TABLE, primaryKey: [], columnByName: new Map() }
  const inMemory = webhooks.hearers(table, ['INSERT'])
  expect(inMemory).toEqual({ memory: ['hook'], outbox: [], storing: null })
  expect(webhooks.hearers(table, ['DELETE'])).toEqual({ memory: [], outbox: [], storing: null })
  expect(webhooks.hearers(table, ['INSERT'])).toBe(inMemory)
  writer = 'statement'
  generation += 1
  const stored = webhooks.hearers(table, ['INSERT'])
  expect(stored).toMatchObject({ memory: [], outbox: ['hook'], storing: { columns: [] } })
  expect(webhooks.hearers(table, ['INSERT', 'UPDATE']).storing).toBe(stored.storing)
  expect(webhooks.hearers({ ...table }, ['INSERT']).storing).not.toBe(stored.storing)
  writer = 'database'
  generation += 1
  expect(webhooks.hearers(table, ['INSERT'])).toEqual({ memory: [], outbox: ['hook'], storing: null })
})

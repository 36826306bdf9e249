/** Claims are bounded, fair, leased, and ordered by key where the trigger requires it (decision 0023). */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { clientFixture, databaseFixture } from '../../../test/support/fixtures.ts'
import { feedUrl, installed } from '../../../test/support/install.ts'
import { createPool, type Pool } from '../../postgres/pool.ts'
import { parseUrl } from '../../postgres/url.ts'
import { CLAIM_BYTES_MAX, type ClaimRequest, claim, ROWS_BYTES_MAX, TENANTS_VISITED_MAX } from './claim.ts'
import {
  purgeDeadLetters,
  readAttempts,
  readDeadLetter,
  readDeadLetters,
  redeliverDeadLetters,
} from './dead-letter-store.ts'
import { readDepth } from './depth.ts'
import { deadLetterOrphans, registerTriggers } from './register.ts'
import { type Attempt, release, type Settlement, writeSettlements } from './settle.ts'
import { type RunInTransaction, transactionRunner } from './transaction.ts'

let pool: Pool
let ask: RunInTransaction
const database = databaseFixture()

beforeAll(() => installed(database))
const admin = clientFixture(() => database.adminUrl)

beforeAll(async () => {
  pool = createPool({ target: parseUrl(feedUrl(database)) })
  ask = transactionRunner(pool)
})
afterAll(() => pool.close({ deadlineMs: 0 }))
beforeEach(() => admin.query('truncate svc.webhook, svc.webhook_dead, svc.webhook_attempt, svc.webhook_trigger'))

/** Stores `count` webhooks of a tenant, oldest first; ids consist of the tenant and a number. */
async function waiting(
  tenant: string | null,
  count: number,
  of: { trigger?: string; key?: string; new?: string } = {},
) {
  await admin.query(
    `insert into svc.webhook (id, trigger, "schema", "table", operation, new, created_at, tenant, key)
     select coalesce($1, 'none') || n, $3, 'public', 't', 'INSERT', $4, now(), $1, $5 from generate_series(1, $2) as n`,
    [tenant, count, of.trigger ?? 'hook', of.new ?? '{}', of.key ?? null],
  )
}

const turn = (of: Partial<ClaimRequest> = {}): ClaimRequest => ({
  trigger: 'hook',
  from: '',
  slots: 4,
  leaseMs: 60_000,
  ...of,
})

async function claimed(turns: readonly ClaimRequest[] = [turn()], gateway = 'me'): Promise<readonly string[]> {
  return (await claim(ask, gateway, turns)).webhooks.map(({ id }) => id)
}

describe('claims', () => {
  test('give a tenant with thousands of webhooks an equal share, and the rest if no other waits', async () => {
    await waiting('a', 3_000)
    await waiting(null, 1)
    await waiting('b', 2)
    expect(await claimed([turn({ slots: 6 })])).toEqual(['a1', 'a2', 'none1', 'b1', 'b2'])
    expect(await claimed([turn({ slots: 6 })])).toEqual(['a3', 'a4', 'a5', 'a6', 'a7', 'a8'])
  })

  test('continue where the last one stopped when there are more tenants than slots or than are visited', async () => {
    for (const tenant of ['a', 'b', 'c']) await waiting(tenant, 2)
    const first = await claim(ask, 'me', [turn({ slots: 2 })])
    expect(first.webhooks.map(({ id }) => id)).toEqual(['a1', 'b1'])
    const from = first.next.get('hook') ?? ''
    expect(from).toBe('c')
    expect(await claimed([turn({ slots: 1, from })])).toEqual(['c1'])

    await admin.query('truncate svc.webhook')
    await admin.query(
      `insert into svc.webhook (id, trigger, "schema", "table", operation, created_at, tenant, due_at)
       select n, 'hook', 's', 't', 'DELETE', now(), to_char(n, 'FM0000'),
         now() + interval '1 hour' from generate_series(1, $1) as n`,
      [TENANTS_VISITED_MAX + 5],
    )
    await waiting('9999', 1)
    const visited = await claim(ask, 'me', [turn()])
    expect([visited.webhooks, visited.next.get('hook')]).toEqual([[], '0065'])
    const rest = await claim(ask, 'me', [turn({ from: '0065' })])
    expect([rest.webhooks.map(({ id }) => id), rest.next.get('hook')]).toEqual([['99991'], ''])
  })

  test('keep a separate position for each trigger', async () => {
    await waiting('a', 3)
    await waiting('b', 3, { trigger: 'other' })
    await waiting('c', 3, { trigger: 'none' })
    expect(await claimed([turn({ slots: 1 }), turn({ trigger: 'other', slots: 2 })])).toEqual(['a1', 'b1', 'b2'])
  })
})

describe('a lease', () => {
  test('keeps other gateways away until it expires by the clock of the database', async () => {
    await waiting('a', 2)
    expect(await claimed([turn({ slots: 1 })])).toEqual(['a1'])
    expect(await claimed([turn()], 'other')).toEqual(['a2'])
    expect(await claimed([turn()], 'other')).toEqual([])
    await admin.query(`update svc.webhook set due_at = now() where leased_by = 'me'`)
    expect(await claimed([turn()], 'other')).toEqual(['a1'])
  })

  test('can be released early', async () => {
    await waiting('a', 2)
    const { webhooks } = await claim(ask, 'me', [turn()])
    await release(
      ask,
      'other',
      webhooks.map(({ seq }) => seq),
    )
    expect(await claimed()).toEqual([])
    await release(
      ask,
      'me',
      webhooks.map(({ seq }) => seq),
    )
    expect(await claimed()).toEqual(['a1', 'a2'])
  })

  test('is never held by two gateways at once', async () => {
    await waiting('a', 400)
    const all = await Promise.all(Array.from({ length: 20 }, (_, n) => claimed([turn({ slots: 20 })], `gateway ${n}`)))
    expect(new Set(all.flat()).size).toBe(all.flat().length)
  })
})

describe('a webhook id', () => {
  const written = (count: number, age = '0') =>
    admin.query(
      `insert into svc.webhook (trigger, "schema", "table", operation, new, created_at)
       select 'hook', 'public', 't', 'INSERT', '{}', now() - $2::interval from generate_series(1, $1)`,
      [count, age],
    )
  const due = () => admin.query('update svc.webhook set due_at = now()')

  test('is derived from stored values and is the same for every attempt and in the dead letter', async () => {
    await written(3)
    const ids = await claimed()
    expect(new Set(ids).size).toBe(3)
    for (const id of ids) expect(id).toMatch(/^msg_[0-9a-f]{32}$/)
    await due()
    const { webhooks } = await claim(ask, 'me', [turn()])
    expect(webhooks.map(({ id }) => id)).toEqual(ids)
    await writeSettlements(
      ask,
      'me',
      webhooks.map(each => settled(each, { kind: 'dead', reason: 'failed' }, failed)),
    )
    expect((await readDeadLetters(ask, null, 10)).map(({ id }) => id).sort()).toEqual([...ids].sort())
    expect(await readAttempts(ask, ids[0] ?? '')).toHaveLength(1)
    expect(await redeliverDeadLetters(ask, null, ['hook'])).toBe(3)
    expect([...(await claimed())].sort()).toEqual([...ids].sort())
  })

  test('is not reused with its sequence number in a database restored from a backup', async () => {
    await written(2)
    const before = await claimed()
    await admin.query(`truncate svc.webhook; select setval('svc.webhook_seq', currval('svc.webhook_seq') - 2)`)
    await written(2)
    const after = await claimed()
    expect(new Set([...before, ...after]).size).toBe(4)
  })

  test('is kept when the webhook has no trigger any more', async () => {
    await written(1, '2 minutes')
    const [id] = await claimed()
    await due()
    expect(await deadLetterOrphans(ask, [])).toBe(1)
    expect(await readDeadLetters(ask, null, 10)).toMatchObject([{ id }])
  })
})

describe('order by key', () => {
  const keyed = { key: '{"id": 1}' }

  test('claims only the first webhook of a key, and the next one as soon as that is settled', async () => {
    await waiting('a', 3, keyed)
    await waiting('b', 1)
    const first = await claim(ask, 'me', [turn({ slots: 10 })])
    expect([first.webhooks.map(({ id }) => id), first.parked]).toEqual([['a1', 'b1'], true])
    expect(await claimed()).toEqual([])
    const [head] = first.webhooks
    await writeSettlements(ask, 'me', [settled(head, { kind: 'again', delayMs: 3_600_000 })])
    expect(await claimed()).toEqual([])
    await writeSettlements(ask, 'me', [settled(head, { kind: 'delivered' })])
    expect(await claimed()).toEqual(['a2'])
  })

  test('continues with the next webhook after one is given up', async () => {
    await waiting('a', 2, keyed)
    const [head] = (await claim(ask, 'me', [turn()])).webhooks
    await writeSettlements(ask, 'me', [settled(head, { kind: 'dead', reason: 'no' })])
    expect(await claimed()).toEqual(['a2'])
  })
})

describe('the size', () => {
  test('of a claim and of each webhook is limited', async () => {
    const half = `"${'x'.repeat(CLAIM_BYTES_MAX / 2)}"`
    await waiting('a', 4, { new: half })
    expect((await claimed([turn({ slots: 10 })])).length).toBe(2)
    await admin.query('truncate svc.webhook')
    await waiting('b', 1, { new: `"${'x'.repeat(ROWS_BYTES_MAX)}"` })
    const { webhooks } = await claim(ask, 'me', [turn()])
    expect(webhooks).toMatchObject([{ id: 'b1', after: null, before: null, bytes: ROWS_BYTES_MAX + 2 }])
  })
})

const failed: Attempt = {
  try: 1,
  outcome: 'refused',
  durationMs: 7,
  status: 500,
  answer: 'no\0',
  message: 'answered 500',
}

function settled(
  of: { readonly seq: string; readonly id: string; readonly key: string | null } | undefined,
  verdict: Settlement['verdict'],
  attempt: Attempt | null = null,
): Settlement {
  if (of === undefined) throw new Error('nothing was claimed')
  return { seq: of.seq, id: of.id, trigger: 'hook', key: of.key, verdict, attempt }
}

describe('settling', () => {
  test('schedules a failed webhook for later with its attempt, if the gateway still holds the lease', async () => {
    await waiting('a', 1)
    const [one] = (await claim(ask, 'me', [turn()])).webhooks
    await writeSettlements(ask, 'other', [settled(one, { kind: 'again', delayMs: 0 }, failed)])
    expect(await claimed()).toEqual([])
    await writeSettlements(ask, 'me', [settled(one, { kind: 'again', delayMs: 0 }, failed)])
    expect((await claim(ask, 'me', [turn()])).webhooks).toMatchObject([{ id: 'a1', tries: 1 }])
    expect(await readAttempts(ask, 'a1')).toMatchObject([{ try: 1, status: 500, answer: 'no\ufffd' }, { try: 1 }])
  })

  test('removes a delivered webhook whichever gateway holds the lease', async () => {
    await waiting('a', 1)
    const [one] = (await claim(ask, 'me', [turn()])).webhooks
    await admin.query('update svc.webhook set due_at = now()')
    expect(await claimed([turn()], 'other')).toEqual(['a1'])
    await writeSettlements(ask, 'me', [settled(one, { kind: 'delivered' })])
    expect((await readDepth(ask)).byTrigger.size).toBe(0)
    await writeSettlements(ask, 'other', [settled(one, { kind: 'dead', reason: 'late' })])
    expect((await readDepth(ask)).deadLetters).toBe(0)
  })

  test('makes a dead letter with the last response that can be redelivered with its id or purged', async () => {
    await waiting('a', 3)
    const { webhooks } = await claim(ask, 'me', [turn()])
    await writeSettlements(
      ask,
      'me',
      webhooks.map(each => settled(each, { kind: 'dead', reason: 'failed' }, failed)),
    )
    expect(await readDeadLetter(ask, 'a1', 100)).toMatchObject({
      id: 'a1',
      tries: 1,
      status: 500,
      answer: 'no\ufffd',
      after: '{}',
    })
    const [newest, ...older] = await readDeadLetters(ask, null, 10)
    expect(await readDeadLetters(ask, newest ?? null, 1)).toEqual(older.slice(0, 1))
    expect(await redeliverDeadLetters(ask, 'a1', ['another trigger'])).toBe(0)
    expect(await redeliverDeadLetters(ask, 'a1', ['hook'])).toBe(1)
    expect((await claim(ask, 'me', [turn()])).webhooks).toMatchObject([{ id: 'a1', tries: 0 }])
    expect(await purgeDeadLetters(ask, null)).toBe(2)
    expect(await readDeadLetters(ask, null, 10)).toEqual([])
  })
})

test('webhooks in the queue are counted by trigger', async () => {
  await waiting('a', 3)
  await waiting('b', 1, { trigger: 'other' })
  await claim(ask, 'me', [turn({ slots: 1 })])
  const { byTrigger, oldestAgeMs } = await readDepth(ask)
  expect(byTrigger.get('hook')).toMatchObject({ ready: 2, waiting: 0, inFlight: 1 })
  expect(byTrigger.get('other')).toMatchObject({ ready: 1, waiting: 0, inFlight: 0 })
  expect(oldestAgeMs).toBeGreaterThanOrEqual(0)
})

test('webhooks without a trigger become dead letters after a while', async () => {
  await waiting('a', 1)
  await waiting('b', 1, { trigger: 'known' })
  await waiting('c', 1, { trigger: 'registered' })
  const registration = {
    schema: 'public',
    table: 't',
    operations: ['INSERT'],
    byKey: false,
    tenantColumn: null,
  } as const
  const gone = await registerTriggers(ask, [{ ...registration, name: 'registered', source: 'gateway' }])
  expect(gone).toEqual([])
  expect(await deadLetterOrphans(ask, ['known'])).toBe(0)
  await admin.query(`update svc.webhook set created_at = now() - interval '2 minutes'`)
  expect(await deadLetterOrphans(ask, ['known'])).toBe(1)
  expect(await readDeadLetters(ask, null, 10)).toMatchObject([
    { id: 'a1', reason: expect.stringContaining('trigger no longer exists') },
  ])
  expect(await registerTriggers(ask, [])).toEqual(['registered'])
})

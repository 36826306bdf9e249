/** Claims are bounded, fair, in order where the trigger asks for that, and leased: nobody else's for a while (decision 0023). */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { clientFixture, databaseFixture } from '../../../test/support/fixtures.ts'
import { feedUrl, installed } from '../../../test/support/install.ts'
import { createPool, type Pool } from '../../postgres/pool.ts'
import { parseUrl } from '../../postgres/url.ts'
import { type Ask, askThrough } from './ask.ts'
import { CLAIM_BYTES_MAX, claim, ROWS_BYTES_MAX, TENANTS_VISITED_MAX, type Turn } from './claim.ts'
import { readDepth } from './depth.ts'
import { purgeLetters, readAttempts, readLetter, readLetters, redeliverLetters } from './letters.ts'
import { buryOrphans, register } from './register.ts'
import { type Attempt, release, type Settlement, settle } from './settle.ts'

let pool: Pool
let ask: Ask
const database = databaseFixture()

beforeAll(() => installed(database))
const admin = clientFixture(() => database.adminUrl)

beforeAll(async () => {
  pool = createPool({ target: parseUrl(feedUrl(database)) })
  ask = askThrough(pool)
})
afterAll(() => pool.close({ deadlineMs: 0 }))
beforeEach(() => admin.query('truncate svc.webhook, svc.webhook_dead, svc.webhook_attempt, svc.webhook_trigger'))

/** `count` of a tenant, the oldest first; ids are the tenant and a number. */
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

const turn = (of: Partial<Turn> = {}): Turn => ({ trigger: 'hook', from: '', places: 4, leaseMs: 60_000, ...of })

async function claimed(turns: readonly Turn[] = [turn()], gateway = 'me'): Promise<readonly string[]> {
  return (await claim(ask, gateway, turns)).webhooks.map(({ id }) => id)
}

describe('turns', () => {
  test('between tenants: who has thousands gets what who has one gets; the rest when nobody else waits', async () => {
    await waiting('a', 3_000)
    await waiting(null, 1)
    await waiting('b', 2)
    expect(await claimed([turn({ places: 6 })])).toEqual(['a1', 'a2', 'none1', 'b1', 'b2'])
    expect(await claimed([turn({ places: 6 })])).toEqual(['a3', 'a4', 'a5', 'a6', 'a7', 'a8'])
  })

  test('go on where the last claim stopped, when there are more tenants than places or than are visited', async () => {
    for (const tenant of ['a', 'b', 'c']) await waiting(tenant, 2)
    const first = await claim(ask, 'me', [turn({ places: 2 })])
    expect(first.webhooks.map(({ id }) => id)).toEqual(['a1', 'b1'])
    const from = first.next.get('hook') ?? ''
    expect(from).toBe('c')
    expect(await claimed([turn({ places: 1, from })])).toEqual(['c1'])

    await admin.query('truncate svc.webhook')
    await admin.query(
      `insert into svc.webhook (id, trigger, "schema", "table", operation, created_at, tenant, due_at)
       select n, 'hook', 's', 't', 'DELETE', now(), to_char(n, 'FM0000'), now() + interval '1 hour' from generate_series(1, $1) as n`,
      [TENANTS_VISITED_MAX + 5],
    )
    await waiting('9999', 1)
    const visited = await claim(ask, 'me', [turn()])
    expect([visited.webhooks, visited.next.get('hook')]).toEqual([[], '0065'])
    const rest = await claim(ask, 'me', [turn({ from: '0065' })])
    expect([rest.webhooks.map(({ id }) => id), rest.next.get('hook')]).toEqual([['99991'], ''])
  })

  test('each trigger has its own', async () => {
    await waiting('a', 3)
    await waiting('b', 3, { trigger: 'other' })
    await waiting('c', 3, { trigger: 'nobody' })
    expect(await claimed([turn({ places: 1 }), turn({ trigger: 'other', places: 2 })])).toEqual(['a1', 'b1', 'b2'])
  })
})

describe('a lease', () => {
  test('keeps others away until it is over, by the clock of the database', async () => {
    await waiting('a', 2)
    expect(await claimed([turn({ places: 1 })])).toEqual(['a1'])
    expect(await claimed([turn()], 'other')).toEqual(['a2'])
    expect(await claimed([turn()], 'other')).toEqual([])
    await admin.query(`update svc.webhook set due_at = now() where leased_by = 'me'`)
    expect(await claimed([turn()], 'other')).toEqual(['a1'])
  })

  test('can be given back', async () => {
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

  test('is never taken by two at once', async () => {
    await waiting('a', 400)
    const all = await Promise.all(Array.from({ length: 20 }, (_, n) => claimed([turn({ places: 20 })], `gateway ${n}`)))
    expect(new Set(all.flat()).size).toBe(all.flat().length)
  })
})

describe('an id', () => {
  const written = (count: number, age = '0') =>
    admin.query(
      `insert into svc.webhook (trigger, "schema", "table", operation, new, created_at)
       select 'hook', 'public', 't', 'INSERT', '{}', now() - $2::interval from generate_series(1, $1)`,
      [count, age],
    )
  const due = () => admin.query('update svc.webhook set due_at = now()')

  test('is made of what is written, the same on every try and for what becomes of it', async () => {
    await written(3)
    const ids = await claimed()
    expect(new Set(ids).size).toBe(3)
    for (const id of ids) expect(id).toMatch(/^msg_[0-9a-f]{32}$/)
    await due()
    const { webhooks } = await claim(ask, 'me', [turn()])
    expect(webhooks.map(({ id }) => id)).toEqual(ids)
    await settle(
      ask,
      'me',
      webhooks.map(each => settled(each, { kind: 'dead', reason: 'failed' }, failed)),
    )
    expect((await readLetters(ask, null, 10)).map(({ id }) => id).sort()).toEqual([...ids].sort())
    expect(await readAttempts(ask, ids[0] ?? '')).toHaveLength(1)
    expect(await redeliverLetters(ask, null, ['hook'])).toBe(3)
    expect([...(await claimed())].sort()).toEqual([...ids].sort())
  })

  test('does not come again with its number, in a database that was set back', async () => {
    await written(2)
    const before = await claimed()
    await admin.query(`truncate svc.webhook; select setval('svc.webhook_seq', currval('svc.webhook_seq') - 2)`)
    await written(2)
    const after = await claimed()
    expect(new Set([...before, ...after]).size).toBe(4)
  })

  test('is that of the webhook that nobody wants any more', async () => {
    await written(1, '2 minutes')
    const [id] = await claimed()
    await due()
    expect(await buryOrphans(ask, [])).toBe(1)
    expect(await readLetters(ask, null, 10)).toMatchObject([{ id }])
  })
})

describe('order by key', () => {
  const keyed = { key: '{"id": 1}' }

  test('only the first is taken; the next when that is settled, at once', async () => {
    await waiting('a', 3, keyed)
    await waiting('b', 1)
    const first = await claim(ask, 'me', [turn({ places: 10 })])
    expect([first.webhooks.map(({ id }) => id), first.parked]).toEqual([['a1', 'b1'], true])
    expect(await claimed()).toEqual([])
    const [head] = first.webhooks
    await settle(ask, 'me', [settled(head, { kind: 'again', delayMs: 3_600_000 })])
    expect(await claimed()).toEqual([])
    await settle(ask, 'me', [settled(head, { kind: 'delivered' })])
    expect(await claimed()).toEqual(['a2'])
  })

  test('one that is given up lets the next go', async () => {
    await waiting('a', 2, keyed)
    const [head] = (await claim(ask, 'me', [turn()])).webhooks
    await settle(ask, 'me', [settled(head, { kind: 'dead', reason: 'no' })])
    expect(await claimed()).toEqual(['a2'])
  })
})

describe('size', () => {
  test('of a claim is limited, of one webhook too', async () => {
    const half = `"${'x'.repeat(CLAIM_BYTES_MAX / 2)}"`
    await waiting('a', 4, { new: half })
    expect((await claimed([turn({ places: 10 })])).length).toBe(2)
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

describe('what came of it', () => {
  test('a failure is due later, with its try; only whoever has the lease may say so', async () => {
    await waiting('a', 1)
    const [one] = (await claim(ask, 'me', [turn()])).webhooks
    await settle(ask, 'other', [settled(one, { kind: 'again', delayMs: 0 }, failed)])
    expect(await claimed()).toEqual([])
    await settle(ask, 'me', [settled(one, { kind: 'again', delayMs: 0 }, failed)])
    expect((await claim(ask, 'me', [turn()])).webhooks).toMatchObject([{ id: 'a1', tries: 1 }])
    expect(await readAttempts(ask, 'a1')).toMatchObject([{ try: 1, status: 500, answer: 'no\ufffd' }, { try: 1 }])
  })

  test('what was delivered is done with, whoever has it by now', async () => {
    await waiting('a', 1)
    const [one] = (await claim(ask, 'me', [turn()])).webhooks
    await admin.query('update svc.webhook set due_at = now()')
    expect(await claimed([turn()], 'other')).toEqual(['a1'])
    await settle(ask, 'me', [settled(one, { kind: 'delivered' })])
    expect((await readDepth(ask)).byTrigger.size).toBe(0)
    await settle(ask, 'other', [settled(one, { kind: 'dead', reason: 'late' })])
    expect((await readDepth(ask)).deadLetters).toBe(0)
  })

  test('a dead letter has the last answer, can be sent again with its id, or thrown away', async () => {
    await waiting('a', 3)
    const { webhooks } = await claim(ask, 'me', [turn()])
    await settle(
      ask,
      'me',
      webhooks.map(each => settled(each, { kind: 'dead', reason: 'failed' }, failed)),
    )
    expect(await readLetter(ask, 'a1', 100)).toMatchObject({
      id: 'a1',
      tries: 1,
      status: 500,
      answer: 'no\ufffd',
      after: '{}',
    })
    const [newest, ...older] = await readLetters(ask, null, 10)
    expect(await readLetters(ask, newest ?? null, 1)).toEqual(older.slice(0, 1))
    expect(await redeliverLetters(ask, 'a1', ['another trigger'])).toBe(0)
    expect(await redeliverLetters(ask, 'a1', ['hook'])).toBe(1)
    expect((await claim(ask, 'me', [turn()])).webhooks).toMatchObject([{ id: 'a1', tries: 0 }])
    expect(await purgeLetters(ask, null)).toBe(2)
    expect(await readLetters(ask, null, 10)).toEqual([])
  })
})

test('the queue is counted by trigger', async () => {
  await waiting('a', 3)
  await waiting('b', 1, { trigger: 'other' })
  await claim(ask, 'me', [turn({ places: 1 })])
  const { byTrigger, oldestAgeMs } = await readDepth(ask)
  expect(byTrigger.get('hook')).toMatchObject({ ready: 2, waiting: 0, inFlight: 1 })
  expect(byTrigger.get('other')).toMatchObject({ ready: 1, waiting: 0, inFlight: 0 })
  expect(oldestAgeMs).toBeGreaterThanOrEqual(0)
})

test('what belongs to no trigger is a dead letter after a while', async () => {
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
  const gone = await register(ask, [{ ...registration, name: 'registered', source: 'gateway' }])
  expect(gone).toEqual([])
  expect(await buryOrphans(ask, ['known'])).toBe(0)
  await admin.query(`update svc.webhook set created_at = now() - interval '2 minutes'`)
  expect(await buryOrphans(ask, ['known'])).toBe(1)
  expect(await readLetters(ask, null, 10)).toMatchObject([
    { id: 'a1', reason: expect.stringContaining('no such trigger') },
  ])
  expect(await register(ask, [])).toEqual(['registered'])
})

/**
 * With the outbox, every acknowledged change is delivered at least once or becomes a dead letter, whatever
 * happens to gateways, database and receivers. A change that was not committed is not delivered
 * (docs/guides/webhooks.md#delivery-guarantees).
 * Many clients write as fast as they are answered, in all ways that the API offers, while a gateway is killed
 * every second, the database restarts, and receivers fail. An audit of the tables records what was actually
 * committed.
 */
import { writeFile } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { setTimeout as pass } from 'node:timers/promises'
import pg from 'pg'
import { Agent, request } from 'undici'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { mintToken } from '../../src/identity/mint.ts'
import { createCondition } from '../support/condition.ts'
import { createDeliveryRecorder } from '../support/delivery-recorder.ts'
import { databaseFixture, folderFixture } from '../support/fixtures.ts'
import { type Fleet, startFleet } from '../support/fleet.ts'
import { configFile, SECRET } from '../support/gateway.ts'
import { installed } from '../support/install.ts'
import { createWriter, NUMBERED_TABLES, type Write } from '../support/numbered-writes.ts'
import { execute, privateServer } from '../support/postgres.ts'
import { killSvc } from '../support/process.ts'
import { type Receiver, type Respond, receiver } from '../support/receiver.ts'

/** The number of acknowledged writes. A write is one request, whether it changes one row or several. */
const ACKNOWLEDGED = 10_000
/** Writing continues until this many gateways have been killed. */
const KILLS = 10
const KILL_EVERY_MS = 1_000

const CLIENTS = 64
/** At least one gateway serves while the others start. */
const GATEWAYS = 4
/** One in this many webhooks fails at its first attempt. */
const FAILS_EVERY = 10

const SIGNING = `whsec_${Buffer.alloc(32, 9).toString('base64')}`
/** Short, because a hanging receiver occupies a slot for this long, and a killed gateway its leases. */
const TIMEOUT_MS = 1_000

const server = databaseFixture(privateServer)
const folder = folderFixture()
beforeAll(async () => {
  await execute(server.adminUrl, NUMBERED_TABLES)
  await installed(server)
})
afterAll(async () => {
  killSvc()
})

/** Ways to fail. With `taken`, the receiver has processed the webhook anyway. */
const FAILURES: readonly { readonly taken: boolean; readonly how: (response: ServerResponse) => void }[] = [
  { taken: false, how: response => response.writeHead(500).end('no\0') },
  { taken: false, how: response => response.writeHead(429, { 'Retry-After': '1' }).end() },
  { taken: false, how: response => response.socket?.destroy() },
  { taken: false, how: response => response.socket?.end('HTTP/1.1 200') },
  // It does not respond.
  { taken: false, how: () => {} },
  // The response is never read completely.
  {
    taken: true,
    how: response => response.writeHead(200, { 'Content-Length': '9' }).write('ha', () => response.destroy()),
  },
  // It responds late, and too late.
  { taken: true, how: response => void setTimeout(() => response.writeHead(200).end(), TIMEOUT_MS / 2) },
  { taken: true, how: response => void setTimeout(() => response.writeHead(200).end(), TIMEOUT_MS * 2) },
]

test('every acknowledged write is delivered, whichever process is killed', { timeout: 900_000 }, async () => {
  const recorder = createDeliveryRecorder(SIGNING)
  const taken = new Set<string>()
  const flaky: Respond = (response, received) => {
    const { change, isFirst } = recorder.record(received)
    const nth = recorder.ids.size / FAILS_EVERY
    const failure = isFirst && Number.isInteger(nth) ? FAILURES[nth % FAILURES.length] : undefined
    if (failure?.taken !== false) taken.add(change)
    if (failure === undefined) response.writeHead(204).end()
    else failure.how(response)
  }
  const dead: Respond = (response, received) => {
    recorder.record(received)
    response.writeHead(503).end()
  }
  const receivers = {
    created: await receiver(flaky, 'nothing'),
    changed: await receiver(flaky, 'nothing'),
    counted: await receiver(flaky, 'nothing'),
    deleted: await receiver(dead, 'nothing'),
  }
  const fleet = startFleet(GATEWAYS, await environmentOf(receivers))
  await fleet.until(GATEWAYS)
  const { acknowledged, refused, surprises } = await write(fleet)
  const { committed, letters, versions } = await outcome()
  await fleet.close()

  expect(surprises).toEqual([])
  expect(recorder.wrong).toEqual([])
  const buried = new Set(letters.map(({ change }) => change))
  const isTold = (change: string): boolean => taken.has(change) || buried.has(change)
  expect([...acknowledged].filter(change => !isTold(change))).toEqual([])
  expect(refused.filter(change => taken.has(change) || recorder.ids.has(change) || buried.has(change))).toEqual([])
  // Regardless of the response.
  expect([...committed].filter(change => !isTold(change))).toEqual([])
  expect([...taken, ...buried, ...recorder.ids.keys()].filter(change => !committed.has(change))).toEqual([])
  // Only deliveries to a receiver that accepts nothing become dead letters, each of them once.
  expect([...taken].filter(change => buried.has(change))).toEqual([])
  expect(letters.filter(({ trigger }) => trigger !== 'deleted')).toEqual([])
  expect(letters).toHaveLength(buried.size)
  expect(letters.filter(({ change, id }) => (recorder.ids.get(change) ?? id) !== id)).toEqual([])
  expect(versions).toEqual(recorder.versions)
  // The test did exercise failures.
  expect(refused.length).toBeGreaterThan(ACKNOWLEDGED / 20)
  expect(buried.size).toBeGreaterThan(ACKNOWLEDGED / 20)
  await Promise.all(Object.values(receivers).map(each => each.close()))
})

interface Written {
  readonly acknowledged: ReadonlySet<string>
  /** Acknowledged by the response. */
  readonly refused: readonly string[]
  /** Responses with a wrong status. */
  readonly surprises: readonly string[]
}

/** Runs until enough writes have been acknowledged and all failures have been caused. */
async function write(fleet: Fleet): Promise<Written> {
  const acknowledged = new Set<string>()
  const refused: string[] = []
  const surprises: string[] = []
  const condition = createCondition()
  let requests = 0
  let done = 0
  let isRestarted = false
  const isOver = (): boolean => done >= ACKNOWLEDGED && fleet.kills() >= KILLS && isRestarted
  const agent = new Agent({ connections: CLIENTS })
  const send = await sender(fleet, agent)

  async function client(): Promise<void> {
    const writer = createWriter(() => ++requests)
    while (!isOver()) {
      await fleet.until(1)
      const next = writer.next()
      const status = await send(next)
      const became = status < 300 ? 'done' : status < 500 ? 'refused' : 'unknown'
      if (became === 'unknown') continue
      if (became !== next.expected) surprises.push(`${status}: ${JSON.stringify(next)}`)
      if (became === 'refused') refused.push(...next.changes)
      else {
        done += 1
        for (const change of next.changes) acknowledged.add(change)
        writer.done(next)
      }
      condition.notify()
    }
  }

  async function killing(): Promise<void> {
    while (!isOver()) {
      // On a machine that is too busy to start a gateway in a second, the next kill waits for it.
      await Promise.all([pass(KILL_EVERY_MS), fleet.until(2)])
      if (!isOver()) fleet.killOldest()
    }
  }

  async function restarting(): Promise<void> {
    await condition.waitUntil(() => done >= ACKNOWLEDGED / 2)
    await server.restart()
    isRestarted = true
  }

  await Promise.all([killing(), restarting(), ...Array.from({ length: CLIENTS }, client)])
  await agent.destroy()
  return { acknowledged, refused, surprises }
}

/** Sends to the running gateways in turn. Returns the status, or 599 if the outcome is unknown. */
async function sender(fleet: Fleet, dispatcher: Agent): Promise<(write: Write) => Promise<number>> {
  const token = await mintToken(SECRET, { tenantId: 't1', expiresInSeconds: 3_600 }, Date.now())
  let turn = 0
  return async ({ method, path, headers, body }) => {
    const urls = fleet.urls()
    const url = `${urls[turn++ % urls.length]}${path}`
    const text = body === undefined ? null : JSON.stringify(body)
    try {
      const options = { dispatcher, method, headers: { ...headers, Authorization: `Bearer ${token}` }, body: text }
      const answer = await request(url, options)
      await answer.body.dump()
      return answer.statusCode
    } catch {
      return 599
    }
  }
}

interface Outcome {
  readonly committed: ReadonlySet<string>
  readonly letters: readonly { readonly trigger: string; readonly id: string; readonly change: string }[]
  /** The counters that have been incremented. */
  readonly versions: ReadonlyMap<number, number>
}

/** Resolves when no delivery is waiting. */
async function outcome(): Promise<Outcome> {
  const client = new pg.Client({ connectionString: server.adminUrl })
  await client.connect()
  const rows = async (text: string) => (await client.query(text)).rows
  // Writes that a gateway sent before it was killed may still be committing.
  const [{ now }] = await rows('select clock_timestamp()::text as now')
  const busy = `select where exists (select from svc.webhook)
    or exists (select from pg_stat_activity where usename = 'app' and xact_start < '${now}')`
  while ((await rows(busy)).length > 0) await pass(100)
  const changes = await rows('select change from audit.change')
  const letters = await rows(
    `select trigger, id, concat_ws(' ', "table", operation, old ->> 'id', old ->> 'write') as change
      from svc.webhook_dead`,
  )
  const counters = await rows('select id, version from counters where version > 0')
  await client.end()
  return {
    committed: new Set(changes.map(({ change }) => change)),
    letters,
    versions: new Map(counters.map(({ id, version }) => [id, version])),
  }
}

/** The environment of the gateways. */
async function environmentOf(
  to: Readonly<Record<'created' | 'changed' | 'counted' | 'deleted', Receiver>>,
): Promise<Readonly<Record<string, string>>> {
  const file = join(folder, 'triggers.yaml')
  const common = { secret: SIGNING, timeout_ms: TIMEOUT_MS, retry_count: 20 }
  const triggers = [
    { ...common, name: 'created', table: 'notes', operations: ['create'], webhook_url: to.created.url },
    { ...common, name: 'changed', table: 'notes', operations: ['update'], webhook_url: to.changed.url },
    {
      ...common,
      name: 'counted',
      table: 'counters',
      operations: ['update'],
      webhook_url: to.counted.url,
      order: 'key',
    },
    { ...common, name: 'deleted', table: 'notes', operations: ['delete'], webhook_url: to.deleted.url, retry_count: 0 },
  ]
  await writeFile(file, JSON.stringify(triggers))
  const config = await configFile(
    [
      `events_path = ${JSON.stringify(file)}`,
      ...['webhook_allow = ["127.0.0.1"]', 'rate_limit_rate = 0', 'tenant_max_concurrent = 0'],
      // Each gateway that starts has to prepare its statements again.
      'max_connections = 3',
    ].join('\n'),
  )
  return { DATABASE_URL: server.url, JWT_SECRET: SECRET, SVC_BIND: '127.0.0.1:0', SVC_CONFIG: config }
}

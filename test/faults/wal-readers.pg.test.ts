/**
 * Several gateways that read one slot of the write-ahead log, and a transaction that is larger than their
 * memory (docs/guides/capture.md#failures). `SVC_LARGE_TRANSACTION=1000000` changes more rows than the
 * default.
 */
import pg from 'pg'
import { expect, test } from 'vitest'
import { fixture, fixtureOfEach } from '../support/fixtures.ts'
import { SECRET } from '../support/gateway.ts'
import { createDatabase, privateServer } from '../support/postgres.ts'
import { killSvc, type Svc, startSvc } from '../support/process.ts'
import { readerOf, walDatabase } from '../support/wal-capture.ts'

const server = fixture(() => privateServer({ settings: ['wal_level = logical'] }))
const created = fixtureOfEach(
  () => createDatabase(server.port, 'template1'),
  opened => opened.drop(),
)
const database = fixtureOfEach(
  () => walDatabase(created),
  async opened => {
    killSvc()
    await opened.close()
  },
)

test('of gateways that find the slot dropped, one creates it, and one reads', async () => {
  const first = await database.reading()
  await first.close()
  await database.dropSlot()
  const before = await database.bulkEntries()
  const gateways = await Promise.all(Array.from({ length: 4 }, () => database.open()))
  const readers = () => Promise.all(gateways.map(readerOf))
  await expect.poll(async () => (await readers()).filter(({ reading }) => reading).length, { timeout: 20_000 }).toBe(1)
  await database.ask('insert into notes values (2)')
  await expect.poll(database.inserted, { timeout: 20_000 }).toEqual([1, 2])
  const found = await readers()
  expect(found.map(({ problem }) => problem)).toEqual([null, null, null, null])
  expect(found.reduce((sum, { resyncs }) => sum + Number(resyncs), 0)).toBe(1)
  expect(await database.bulkEntries()).toBe(before + 1)
  expect(database.warnings.filter(({ message }) => message.includes('are not read'))).toEqual([])
}, 60_000)

interface Process {
  readonly svc: Svc
  readonly url: string
}

test('a gateway that reads is killed, and another one continues without a loss or a repetition', async () => {
  await database.install()
  const start = async (): Promise<Process> => {
    const environment = { DATABASE_URL: created.url, JWT_SECRET: SECRET, SVC_BIND: '127.0.0.1:0' }
    const svc = startSvc(['serve'], environment)
    return { svc, url: await svc.says(/"url":"(http:\/\/127\.0\.0\.1:\d+)"/) }
  }
  let running: readonly Process[] = await Promise.all([start(), start(), start()])
  const holders = async (): Promise<readonly Process[]> => {
    const states = await Promise.all(running.map(readerOf))
    const found = running.filter((_, index) => states[index]?.reading === true)
    expect(found.length).toBeLessThan(2)
    return found
  }
  const writer = new pg.Client({ connectionString: created.adminUrl })
  await writer.connect()
  let written = 0
  let isWriting = true
  const writing = (async () => {
    while (isWriting) await writer.query('insert into notes values ($1)', [++written])
  })()
  for (let kills = 0; kills < 2; kills++) {
    await expect.poll(async () => (await holders()).length, { timeout: 20_000 }).toBe(1)
    const logged = (await database.inserted()).length
    await expect.poll(async () => (await database.inserted()).length, { timeout: 20_000 }).toBeGreaterThan(logged)
    const [holder] = await holders()
    holder?.svc.child.kill('SIGKILL')
    running = running.filter(each => each !== holder)
  }
  await expect.poll(async () => (await holders()).length, { timeout: 20_000 }).toBe(1)
  isWriting = false
  await writing
  await writer.end()
  await expect.poll(async () => (await database.inserted()).length, { timeout: 20_000 }).toBe(written)
  expect(await database.inserted()).toEqual(Array.from({ length: written }, (_, index) => index + 1))
}, 120_000)

/** The statement's changes have twice their bytes, before and after. */
const ROWS = Number(process.env.SVC_LARGE_TRANSACTION ?? 200_000)
const ROW_BYTES = 600
/** The same for any number of rows. */
const GROWTH_BYTES_MAX = 60_000_000

test(`a statement of ${ROWS} rows is decoded in bounded memory, and others follow in order`, {
  timeout: ROWS,
}, async () => {
  await database.ask('create table large (id int primary key, n int, body text); grant all on large to app')
  await database.ask(`insert into large select n, 0, repeat('x', ${ROW_BYTES}) from generate_series(1, ${ROWS}) n`)
  const { gateway, socket } = await database.followed()
  const held = () => process.memoryUsage().heapUsed + process.memoryUsage().external
  const before = held()
  let peak = before
  const sampling = setInterval(() => {
    peak = Math.max(peak, held())
  }, 5)
  await database.ask('update large set n = n + 1')
  for (let id = 2; id <= 20; id++) await database.ask(`insert into notes values (${id})`)
  const ids: number[] = []
  while (ids.at(-1) !== 20) ids.push((await socket.nextOf('notification')).key.id)
  clearInterval(sampling)
  expect(ids).toEqual(Array.from({ length: 19 }, (_, index) => index + 2))
  const [{ rows, bulk, last }] = await database.ask(`select count(*) filter (where operation = 'U')::int as rows,
    count(*) filter (where operation = 'B' and writer is not null)::int as bulk, max(seq) as last
    from svc.change where "table" = 'large'`)
  expect([rows, bulk]).toEqual([1_000, 1])
  expect(
    await database.ask(`select from svc.change where "table" = 'notes' and key ->> 'id' = '2'
    and seq < ${last}`),
  ).toEqual([])
  expect(peak - before).toBeLessThan(GROWTH_BYTES_MAX)
  expect(await readerOf(gateway)).toMatchObject({ resyncs: 0 })
})

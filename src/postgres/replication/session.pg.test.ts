/** Replication sessions with a PostgreSQL that has `wal_level = logical`. */
import pg from 'pg'
import { afterEach, expect, test } from 'vitest'
import { fixture } from '../../../test/support/fixtures.ts'
import { execute, privateServer, testDatabase } from '../../../test/support/postgres.ts'
import { POSTGRES_MAJOR } from '../../../test/support/postgres-version.ts'
import { parseUrl } from '../url.ts'
import type { StreamOptions } from './commands.ts'
import { parseLsn } from './lsn.ts'
import { type Tuple, UNCHANGED } from './pgoutput.ts'
import { openReplication, type ReplicationOptions, type ReplicationSession } from './session.ts'
import { type ReplicationStream, type StreamItem, WAITING_BYTES_MAX } from './stream.ts'

const server = fixture(() =>
  privateServer({
    settings: ['wal_level = logical', 'max_prepared_transactions = 10', 'logical_decoding_work_mem = 64kB'],
  }),
)
const PROTOCOL: StreamOptions['protocol'] = POSTGRES_MAJOR >= 16 ? 4 : POSTGRES_MAJOR >= 15 ? 3 : 2
const BASE = { protocol: PROTOCOL, from: 0n, streaming: false, twoPhase: false, messages: false } as const
const sessions: ReplicationSession[] = []
let number = 0

/** A table, a publication and a slot of one test. */
interface Captured {
  readonly table: string
  readonly slot: string
}

afterEach(async () => {
  for (const session of sessions.splice(0)) session.close()
  await expect.poll(() => ask('select count(*)::int as n from pg_replication_slots where active')).toEqual([{ n: 0 }])
  await ask('select pg_drop_replication_slot(slot_name) from pg_replication_slots')
})

function ask(sql: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
  return execute(server.adminUrl, sql)
}

async function open(options: Partial<ReplicationOptions> = {}): Promise<ReplicationSession> {
  const session = await openReplication({ target: parseUrl(server.adminUrl), ...options })
  sessions.push(session)
  return session
}

async function capture(columns = 'id int primary key, note text'): Promise<Captured> {
  const name = `captured_${++number}`
  await ask(`create table ${name} (${columns}); create publication ${name} for table ${name}`)
  const session = await open()
  await session.createSlot({ name, temporary: false })
  session.close()
  return { table: name, slot: name }
}

/** A slot is free only when the server has noticed the end of its last session. */
async function start(
  { slot }: Captured,
  options: Partial<StreamOptions> & Partial<ReplicationOptions> = {},
): Promise<{ readonly session: ReplicationSession; readonly stream: ReplicationStream }> {
  const isActive = () => ask(`select active from pg_replication_slots where slot_name = '${slot}'`)
  await expect.poll(isActive).toEqual([{ active: false }])
  const session = await open(options)
  return { session, stream: await session.start({ ...BASE, slot, publications: [slot], ...options }) }
}

async function next(stream: ReplicationStream): Promise<StreamItem> {
  for (;;) {
    const item = await stream.next()
    if (item.kind !== 'caughtUp') return item
  }
}

/** The items up to and including the first of a kind. */
async function until<K extends StreamItem['kind']>(
  stream: ReplicationStream,
  kind: K,
): Promise<{ readonly items: readonly StreamItem[]; readonly last: Extract<StreamItem, { kind: K }> }> {
  const items: StreamItem[] = []
  for (;;) {
    const item = await next(stream)
    items.push(item)
    if (item.kind === kind) return { items, last: item as Extract<StreamItem, { kind: K }> }
  }
}

/** Changes as text: `insert 1,one`. */
function changes(items: readonly StreamItem[]): readonly string[] {
  return items.flatMap(item => {
    if (item.kind === 'insert') return [`insert ${print(item.new)}`]
    if (item.kind === 'update') return [`update ${print(item.old ?? item.key)} to ${print(item.new)}`]
    if (item.kind === 'delete') return [`delete ${print(item.old ?? item.key)}`]
    if (item.kind === 'truncate') return [`truncate ${item.relations.map(({ name }) => name)}`]
    return item.kind === 'message' ? [`message ${item.prefix} ${item.content}`] : []
  })
}

function print(tuple: Tuple | null): string {
  return tuple?.map(value => (value === UNCHANGED ? 'unchanged' : (value?.toString() ?? 'null'))).join() ?? '–'
}

test('changes arrive in commit order, with the transaction that made them', async () => {
  const captured = await capture()
  const { table } = captured
  const { stream } = await start(captured, { messages: true })
  const [{ xid } = {}] = await ask(
    `insert into ${table} select n, 'row ' || n from generate_series(1, 2) n
      returning pg_current_xact_id()::text as xid`,
  )
  await ask(`begin; update ${table} set note = null where id = 1; update ${table} set id = 3 where id = 2; commit`)
  await ask(`begin; delete from ${table} where id = 3; truncate ${table}; commit`)
  await ask(`select pg_logical_emit_message(true, 'svc', 'hello')`)
  const one = await until(stream, 'commit')
  expect(one.items.map(({ kind }) => kind)).toEqual(['begin', 'relation', 'insert', 'insert', 'commit'])
  expect(one.items[0]).toMatchObject({ xid: Number(xid) })
  expect(one.items[1]).toMatchObject({
    relation: {
      schema: 'public',
      name: table,
      identity: 'default',
      columns: [{ name: 'id', isKey: true }, { isKey: false }],
    },
  })
  expect(changes(one.items)).toEqual(['insert 1,row 1', 'insert 2,row 2'])
  const two = await until(stream, 'commit')
  expect(changes(two.items)).toEqual(['update – to 1,null', 'update 2,null to 3,row 2'])
  expect(two.last.at).toBeGreaterThan(one.last.end - 1n)
  expect(changes((await until(stream, 'commit')).items)).toEqual(['delete 3,null', `truncate ${table}`])
  expect(changes((await until(stream, 'commit')).items)).toEqual(['message svc hello'])
})

test('replica identity FULL has old rows, and the values that an update left alone', async () => {
  const captured = await capture('id int primary key, n int, long text')
  const { table } = captured
  const long = 'x'.repeat(10_000)
  await ask(`alter table ${table} alter long set storage external; insert into ${table} values (1, 1, '${long}')`)
  const { stream } = await start(captured)
  await until(stream, 'commit')
  await ask(`update ${table} set n = 2`)
  expect(changes((await until(stream, 'commit')).items)).toEqual(['update – to 1,2,unchanged'])
  await ask(`alter table ${table} replica identity full`)
  // Until PostgreSQL 14, transactions without changes are sent too.
  if (POSTGRES_MAJOR < 15) expect(changes((await until(stream, 'commit')).items)).toEqual([])
  await ask(`update ${table} set n = 3`)
  await ask(`delete from ${table}`)
  expect(changes((await until(stream, 'commit')).items)).toEqual([`update 1,2,${long} to 1,3,${long}`])
  expect(changes((await until(stream, 'commit')).items)).toEqual([`delete 1,3,${long}`])
})

test('a table changed in the middle of a transaction is described again', async () => {
  const captured = await capture()
  const { table } = captured
  const { stream } = await start(captured)
  await ask(`begin; insert into ${table} values (1, 'one'); alter table ${table} add more int default 7;
    insert into ${table} values (2, 'two'); alter table ${table} drop note; insert into ${table} values (3, 8); commit`)
  const { items } = await until(stream, 'commit')
  expect(changes(items)).toEqual(['insert 1,one', 'insert 2,two,7', 'insert 3,8'])
})

test('what was not confirmed is sent again; after a crash, everything behind the stored position', async () => {
  const captured = await capture()
  const { table } = captured
  const first = await start(captured)
  await ask(`insert into ${table} values (1, 'one')`)
  await ask(`insert into ${table} values (2, 'two')`)
  const { last } = await until(first.stream, 'commit')
  await until(first.stream, 'commit')
  first.stream.confirm(last.end)
  first.session.close()

  const second = await start(captured)
  expect(changes((await until(second.stream, 'commit')).items)).toEqual(['insert 2,two'])
  await server.kill()
  await expect(until(second.stream, 'commit')).rejects.toThrow('the connection to the database was lost')
  await server.start()

  // The server forgets confirmations since its last checkpoint, so a reader starts where it has stored.
  const third = await start(captured, { from: last.end })
  const { items, last: end } = await until(third.stream, 'commit')
  expect(changes(items)).toEqual(['insert 2,two'])
  third.stream.confirm(end.end)
  await third.stream.stop()
  const [{ position } = {}] = await ask(
    `select confirmed_flush_lsn::text as position from pg_replication_slots where slot_name = '${captured.slot}'`,
  )
  expect(parseLsn(String(position))).toBeGreaterThanOrEqual(end.end)
})

test('a stopped stream frees its slot, and the session takes commands again', async () => {
  const captured = await capture()
  const { session, stream } = await start(captured)
  await expect(session.run('select 1')).rejects.toThrow('the replication session is busy (stream)')
  await stream.stop()
  await expect(stream.next()).rejects.toThrow('the replication stream was stopped')
  expect(await session.run(`select active from pg_replication_slots where slot_name = '${captured.slot}'`)).toEqual([
    ['f'],
  ])
  await session.run(`DROP_REPLICATION_SLOT ${captured.slot}`)
  await expect(session.run(`DROP_REPLICATION_SLOT ${captured.slot}`)).rejects.toMatchObject({ sqlstate: '42704' })
})

test('a slot has one reader; the next one gets it when the first is gone', async () => {
  const captured = await capture()
  const holder = await start(captured)
  const other = await open()
  const options = { ...BASE, slot: captured.slot, publications: [captured.slot] }
  await expect(other.start(options)).rejects.toMatchObject({ sqlstate: '55006' })
  const ended = expect(holder.stream.next().then(() => next(holder.stream))).rejects.toMatchObject({
    sqlstate: '57P01',
  })
  await ask(`select pg_terminate_backend(active_pid) from pg_replication_slots where slot_name = '${captured.slot}'`)
  await ended
  await expect
    .poll(() => other.start(options).catch(() => null), { timeout: 10_000 })
    .toMatchObject({ ready: expect.any(Number) })
})

test('a slow reader pauses the server: a large transaction takes bounded memory', async () => {
  const captured = await capture()
  const { stream } = await start(captured)
  const rows = 100_000
  await ask(`insert into ${captured.table} select n, repeat('x', 100) from generate_series(1, ${rows}) n`)
  let inserted = 0
  let most = 0
  for (;;) {
    const { kind } = await next(stream)
    most = Math.max(most, stream.ready)
    if (kind === 'insert') inserted++
    if (kind === 'commit') break
    // The socket delivers more between two turns of the event loop.
    if (inserted % 1000 === 0) await new Promise(setImmediate)
  }
  expect(inserted).toBe(rows)
  // Each message counts at least 256 bytes, and one chunk of the socket may follow after the limit.
  expect(most).toBeGreaterThan(100)
  expect(most).toBeLessThan(WAITING_BYTES_MAX / 256 + 1000)
})

test('status updates continue behind a reader that takes nothing', async () => {
  const captured = await capture()
  const { stream } = await start(captured, { statusIntervalMs: 20 })
  await ask(`insert into ${captured.table} select n, repeat('x', 100) from generate_series(1, 50000) n`)
  await expect.poll(() => stream.ready).toBeGreaterThan(1000)
  const replies = new Set<string>()
  await expect
    .poll(async () => {
      const [row] = await ask('select reply_time::text as at from pg_stat_replication')
      return replies.add(String(row?.at)).size
    })
    .toBeGreaterThan(3)
  expect((await until(stream, 'commit')).items).toHaveLength(50_003)
})

test('with streaming, large transactions arrive in blocks, and end with their commit or abort', async () => {
  const captured = await capture()
  const { table } = captured
  const { stream } = await start(captured, { streaming: true })
  const insert = (from: number) =>
    `insert into ${table} select n, repeat('x', 100) from generate_series(${from}, ${from + 2999}) n;`
  const writer = new pg.Client(server.adminUrl)
  await writer.connect()
  try {
    await writer.query(`begin; ${insert(1)}`)
    const open = await until(stream, 'streamStop')
    expect(open.items[0]).toMatchObject({ kind: 'streamStart', isFirst: true })
    await writer.query('rollback')
    const { last: aborted } = await until(stream, 'streamAbort')
    expect(aborted.subtransaction).toBe(aborted.xid)
    await writer.query(`begin; ${insert(1)} savepoint here; ${insert(4001)} rollback to here; ${insert(8001)} commit`)
  } finally {
    await writer.end()
  }
  const { items, last } = await until(stream, 'streamCommit')
  // A server may have noticed by itself what was rolled back.
  const undone = new Set(items.flatMap(item => (item.kind === 'streamAbort' ? [item.subtransaction] : [])))
  const kept = items.filter(item => item.kind === 'insert' && !undone.has(item.xid ?? 0))
  expect(kept).toHaveLength(6000)
  expect(items).toContainEqual({ kind: 'streamStart', xid: last.xid, isFirst: true })
})

test.skipIf(POSTGRES_MAJOR < 15)('a prepared transaction arrives before it is committed or rolled back', async () => {
  const captured = await capture()
  const { table } = captured
  const { stream } = await start(captured, { twoPhase: true })
  await ask(`begin; insert into ${table} values (1, 'one'); prepare transaction 'kept'`)
  expect(changes((await until(stream, 'prepare')).items)).toEqual(['insert 1,one'])
  await ask(`commit prepared 'kept'`)
  expect((await until(stream, 'commitPrepared')).last).toMatchObject({ gid: 'kept' })
  await ask(`begin; insert into ${table} values (2, 'two'); prepare transaction 'undone'`)
  await until(stream, 'prepare')
  await ask(`rollback prepared 'undone'`)
  expect((await until(stream, 'rollbackPrepared')).last).toMatchObject({ gid: 'undone' })
})

test('without two-phase, a prepared transaction arrives when it is committed', async () => {
  const captured = await capture()
  const { stream } = await start(captured)
  await ask(`begin; insert into ${captured.table} values (1, 'one'); prepare transaction 'later'`)
  await ask(`insert into ${captured.table} values (2, 'two')`)
  await ask(`commit prepared 'later'`)
  expect(changes((await until(stream, 'commit')).items)).toEqual(['insert 2,two'])
  expect(changes((await until(stream, 'commit')).items)).toEqual(['insert 1,one'])
})

test('a message beyond the limit is reported and skipped, and the stream continues', async () => {
  const captured = await capture()
  const { stream } = await start(captured, { messageBytesMax: 100_000 })
  await ask(`insert into ${captured.table} values (1, 'one'), (2, repeat('x', 200000)), (3, 'three')`)
  const { items } = await until(stream, 'commit')
  expect(items.map(({ kind }) => kind)).toEqual(['begin', 'relation', 'insert', 'skipped', 'insert', 'commit'])
  expect(items[3]).toMatchObject({ bytes: expect.toSatisfy((bytes: number) => bytes > 200_000) })
})

test('an idle stream reports how far the server has read, so that the slot can follow', async () => {
  const captured = await capture()
  const { stream } = await start(captured, { statusIntervalMs: 20 })
  await ask('create table elsewhere as select n from generate_series(1, 1000) n')
  const [{ position } = {}] = await ask('select pg_current_wal_flush_lsn()::text as position')
  const target = parseLsn(String(position))
  for (;;) {
    const item = await stream.next()
    if (item.kind === 'caughtUp' && item.position >= target) break
  }
  stream.confirm(target)
  const confirmed = () =>
    ask(
      `select confirmed_flush_lsn >= '${position}' as done from pg_replication_slots
      where slot_name = '${captured.slot}'`,
    )
  await expect.poll(confirmed).toEqual([{ done: true }])
})

test('errors of the server keep their SQLSTATE, and the session remains usable', async () => {
  const session = await open()
  await expect(session.start({ ...BASE, slot: 'missing', publications: ['p'] })).rejects.toMatchObject({
    sqlstate: '42704',
  })
  expect(await session.createSlot({ name: 'short_lived', temporary: true })).toMatch(/^[0-9A-F]+\/[0-9A-F]+$/)
  await expect(session.run('select 1/0')).rejects.toMatchObject({ sqlstate: '22012' })
  expect(await session.run('select 1, null')).toEqual([['1', null]])
  await expect(session.run(`select repeat('x', 2000000)`)).rejects.toThrow('returned more than 1048576 bytes')
  await expect(session.run('select 1')).rejects.toThrow('the connection to the database was lost')
})

test('an aborted session rejects what is waiting', async () => {
  const captured = await capture()
  const controller = new AbortController()
  const { stream } = await start(captured, { signal: controller.signal })
  const waiting = until(stream, 'commit')
  controller.abort(new Error('the gateway stops'))
  await expect(waiting).rejects.toThrow('the gateway stops')
})

test('a server without logical decoding, and a role without REPLICATION, refuse with their reasons', async () => {
  const database = await testDatabase()
  try {
    await expect(openReplication({ target: parseUrl(database.url) })).rejects.toThrow(/wal ?sender/i)
    const session = await openReplication({ target: parseUrl(database.adminUrl) })
    const slot = session.createSlot({ name: 'impossible', temporary: true })
    await expect(slot).rejects.toMatchObject({ sqlstate: '55000' })
    session.close()
  } finally {
    await database.drop()
  }
})

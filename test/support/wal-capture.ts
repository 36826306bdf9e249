/** A database whose changes are captured from the write-ahead log, for tests of what can go wrong with it. */
import { expect } from 'vitest'
import type { Event } from '../../src/events.ts'
import { runCommand } from './cli.ts'
import { type TestGateway, testGateway } from './gateway.ts'
import { execute } from './postgres.ts'
import { openSocket, type TestSocket } from './socket.ts'

/** Time for the reader to notice something, which it looks for once a second. */
const NOTICE_MS = 20_000

export interface WalDatabaseOptions {
  readonly url: string
  /** Read before each statement: another server can take over. */
  readonly adminUrl: string
}

export interface WalDatabase {
  // biome-ignore lint/suspicious/noExplicitAny: a test checks the shape of rows by its expectations
  ask(sql: string): Promise<readonly any[]>
  /** Runs a command of `svc` for the database. */
  svc(argv: readonly string[], environment?: Readonly<Record<string, string>>): Promise<Ended>
  /** `svc install --capture wal`. */
  install(): Promise<void>
  /** Installs, and opens a gateway that reads the log and has logged the row with id 1. */
  reading(): Promise<TestGateway>
  /** The same with a socket that is subscribed, and has received the row. */
  followed(): Promise<{ readonly gateway: TestGateway; readonly socket: TestSocket }>
  /** Opens a gateway in this process. */
  open(toml?: string): Promise<TestGateway>
  /** The warnings of all gateways. */
  readonly warnings: readonly Extract<Event, { kind: 'warning' }>[]
  /** Opens a socket that is subscribed to table `notes`. */
  subscribe(gateway: Pick<TestGateway, 'url' | 'token'>): Promise<TestSocket>
  /** Drops the slot, which no session may use any more. */
  dropSlot(): Promise<void>
  /** The ids of rows that were inserted into `notes`, in the order of the log. */
  inserted(): Promise<readonly number[]>
  /** The number of entries that make subscribers of `notes` read again. */
  bulkEntries(): Promise<number>
  close(): Promise<void>
}

interface Ended {
  readonly code: number
  readonly out: string
  readonly error: string
}

/** Creates table `notes`. */
export async function walDatabase(target: WalDatabaseOptions): Promise<WalDatabase> {
  const closers: (() => Promise<unknown>)[] = []
  const warnings: Extract<Event, { kind: 'warning' }>[] = []
  const ask = (sql: string) => execute(target.adminUrl, sql)
  await ask(
    'create table notes (id int primary key, body text); grant all on notes to app; ' +
      'grant usage on schema public to app',
  )
  const svc = async (argv: readonly string[], environment: Readonly<Record<string, string>> = {}) => {
    const { code, out, error } = await runCommand(argv, {
      environment: { DATABASE_URL: target.url, SVC_ADMIN_DATABASE_URL: target.adminUrl, ...environment },
    })
    return { code, out: out.join('\n'), error: error.join('\n') }
  }
  const database: WalDatabase = {
    ...{ ask, svc, warnings },
    async install() {
      expect(await svc(['install', '--capture', 'wal'])).toMatchObject({ code: 0, error: '' })
    },
    async reading() {
      await database.install()
      const gateway = await database.open()
      await isReading(gateway)
      await ask('insert into notes values (1)')
      await expect.poll(database.inserted, { timeout: NOTICE_MS }).toEqual([1])
      return gateway
    },
    async followed() {
      await database.install()
      const gateway = await database.open()
      await isReading(gateway)
      const socket = await database.subscribe(gateway)
      await ask('insert into notes values (1)')
      expect(await socket.nextOf('notification')).toMatchObject({ key: { id: 1 } })
      return { gateway, socket }
    },
    async open(toml = '') {
      const gateway = await testGateway(target.url, {
        toml,
        emit(event) {
          if (event.kind === 'warning') warnings.push(event)
        },
      })
      closers.push(() => gateway.close())
      return gateway
    },
    async subscribe(gateway) {
      const socket = await openSocket(gateway.url, { token: await gateway.token({ tenantId: 't1' }) })
      closers.push(() => socket.close())
      socket.say({ type: 'subscribe', channel: 'svc_table_notes' })
      await socket.nextOf('subscribed')
      return socket
    },
    async dropSlot() {
      await expect.poll(() => ask('select from pg_replication_slots where active'), { timeout: NOTICE_MS }).toEqual([])
      await ask('select pg_drop_replication_slot(slot_name) from pg_replication_slots')
    },
    async inserted() {
      const rows = await ask(`select (key ->> 'id')::int as id from svc.change
        where "table" = 'notes' and operation = 'I' order by xid, seq`)
      return rows.map(({ id }) => id as number)
    },
    async bulkEntries() {
      return (await ask(`select from svc.change where "table" = 'notes' and operation = 'B'`)).length
    },
    async close() {
      for (const close of closers.splice(0).toReversed()) await close()
      await svc(['uninstall', '--force'])
    },
  }
  return database
}

/** The reader of a gateway, as `/health/internal` reports it. */
export async function readerOf(gateway: Pick<TestGateway, 'url'>): Promise<Readonly<Record<string, unknown>>> {
  const response = await fetch(`${gateway.url}/health/internal`)
  const { capture } = (await response.json()) as { capture: { wal: Readonly<Record<string, unknown>> } }
  return capture.wal
}

/** Resolves when a gateway has the slot. */
export async function isReading(gateway: Pick<TestGateway, 'url'>): Promise<void> {
  await expect.poll(() => readerOf(gateway), { timeout: NOTICE_MS }).toMatchObject({ reading: true, problem: null })
}

/**
 * Set-up shared by most database tests. A fixture is opened before the first test of the file or `describe`
 * that declares it and closed after the last.
 */
import { mkdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest'
import { type GatewayOptions, SECRET, type TestGateway, testGateway } from './gateway.ts'
import { execute, type TestDatabase, testDatabase } from './postgres.ts'
import { type Svc, startSvc } from './process.ts'
import { uniqueName } from './server.ts'

interface Closable {
  close(): Promise<unknown>
}

type Dropped = Pick<TestDatabase, 'drop'>
type Database = Pick<TestDatabase, 'adminUrl'> & (Dropped | Closable)

/**
 * A database: empty, or opened by a function (for a server, its database `postgres`), after running the given
 * SQL.
 */
export function databaseFixture(sql?: string): TestDatabase
export function databaseFixture<T extends Dropped>(open: () => Promise<T>): T
export function databaseFixture<T extends Database>(open: () => Promise<T>, sql?: string): T
export function databaseFixture(from: string | (() => Promise<Dropped | Database>) = '', more = ''): object {
  const [open, sql] = typeof from === 'string' ? [testDatabase, from] : [from, more]
  const database = fixture<Dropped | Closable>(open, opened => ('drop' in opened ? opened.drop() : opened.close()))
  if (sql !== '') beforeAll(() => execute((database as Database).adminUrl, sql))
  return database
}

/**
 * The gateway of a database. Options that are known only at start-up come from a function, which runs after
 * every `beforeAll` and fixture declared above it.
 */
export function gatewayFixture(
  database: Pick<TestDatabase, 'url'>,
  options: GatewayOptions | (() => GatewayOptions | Promise<GatewayOptions>) = {},
): TestGateway {
  return fixture(async () => testGateway(database.url, typeof options === 'function' ? await options() : options))
}

/** A connection of the `pg` package. */
export function clientFixture(url: () => string): pg.Client {
  return fixture(
    async () => {
      const client = new pg.Client({ connectionString: url() })
      await client.connect()
      return client
    },
    client => client.end(),
  )
}

/** The program as a separate process that serves a database. It is ended with SIGKILL. */
export function serviceFixture(database: Pick<TestDatabase, 'url'>): Svc & { readonly url: string } {
  return fixture(
    async () => {
      const svc = startSvc(['serve'], { DATABASE_URL: database.url, JWT_SECRET: SECRET, SVC_BIND: '127.0.0.1:0' })
      return { ...svc, url: await svc.says(/(http:\/\/127\.0\.0\.1:\d+)/) }
    },
    async svc => {
      svc.child.kill('SIGKILL')
      await svc.exited
    },
  )
}

/**
 * The path of a folder that exists in hooks and tests. The path is known immediately, so constants can refer
 * to files in it.
 */
export function folderFixture(parent: string = tmpdir()): string {
  const path = join(parent, uniqueName('svc'))
  beforeAll(() => mkdir(path, { recursive: true, mode: 0o700 }))
  afterAll(() => rm(path, { recursive: true, force: true, maxRetries: 10 }))
  return path
}

/**
 * Any other object that is opened and closed: a receiver, a session, a server. Fixtures are closed in reverse
 * order, each one even if closing another failed. The result is a proxy for the opened object and can be used
 * in hooks and tests only.
 */
export function fixture<T extends Closable>(open: () => T | Promise<T>): T
export function fixture<T extends object>(open: () => T | Promise<T>, close: (opened: T) => Promise<unknown>): T
export function fixture(
  open: () => object | Promise<object>,
  close: (opened: never) => Promise<unknown> = (opened: Closable) => opened.close(),
): object {
  return openedBy(open, close, { before: beforeAll, after: afterAll })
}

/** The same, opened before each test and closed after it. */
export function fixtureOfEach<T extends object>(open: () => T | Promise<T>, close: (opened: T) => Promise<unknown>): T {
  return openedBy(open, close, { before: beforeEach, after: afterEach }) as T
}

interface Hooks {
  before(open: () => Promise<void>): void
  after(close: () => Promise<void>): void
}

function openedBy(
  open: () => object | Promise<object>,
  close: (opened: never) => Promise<unknown>,
  { before, after }: Hooks,
): object {
  let opened: object | null = null
  before(async () => {
    opened = null
    opened = await open()
  })
  after(async () => {
    if (opened !== null) await close(opened as never)
  })
  const now = (): object => {
    if (opened === null)
      throw new Error('a fixture can be used in hooks and tests only; move the access into one of them')
    return opened
  }
  return new Proxy(
    {},
    {
      get(_, name) {
        const value: unknown = Reflect.get(now(), name)
        // Methods of classes need the object itself as `this`, because of private members.
        return typeof value === 'function' ? value.bind(now()) : value
      },
      set: (_, name, value) => Reflect.set(now(), name, value),
      has: (_, name) => Reflect.has(now(), name),
      ownKeys: () => Reflect.ownKeys(now()),
      getOwnPropertyDescriptor(_, name) {
        const property = Reflect.getOwnPropertyDescriptor(now(), name)
        return property && { ...property, configurable: true }
      },
    },
  )
}

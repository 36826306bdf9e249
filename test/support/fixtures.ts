/** What most tests with PostgreSQL need: opened before the first test of the file (or `describe`) that asks for it, closed behind the last. */
import { afterAll, beforeAll } from 'vitest'
import { type GatewayOptions, type TestGateway, testGateway } from './gateway.ts'
import { execute, type TestDatabase, testDatabase } from './postgres.ts'

/** A database: empty, or with what this SQL makes, or the one that a function opens. */
export function databaseFixture(sql?: string): TestDatabase
export function databaseFixture<T extends Pick<TestDatabase, 'drop'>>(open: () => Promise<T>): T
export function databaseFixture(from: string | (() => Promise<Pick<TestDatabase, 'drop'>>) = ''): object {
  if (typeof from !== 'string') return openedForTests(from, database => database.drop())
  const made = async (): Promise<TestDatabase> => {
    const database = await testDatabase()
    if (from !== '') await execute(database.adminUrl, from)
    return database
  }
  return openedForTests(made, database => database.drop())
}

/** The gateway of a database, with options that may be known only when it starts. `beforeAll` above this line has run by then. */
export function gatewayFixture(
  database: Pick<TestDatabase, 'url'>,
  options: GatewayOptions | (() => GatewayOptions | Promise<GatewayOptions>) = {},
): TestGateway {
  return openedForTests(
    async () => testGateway(database.url, typeof options === 'function' ? await options() : options),
    gateway => gateway.close(),
  )
}

/** Stands for what will be open when a test or a later hook looks at it. What was opened last is closed first, also when another could not be. */
function openedForTests<T extends object>(open: () => Promise<T>, close: (opened: T) => Promise<void>): T {
  let opened: T | null = null
  beforeAll(async () => {
    opened = await open()
  })
  afterAll(async () => {
    if (opened !== null) await close(opened)
  })
  const now = (): T => {
    if (opened === null) throw new Error('a fixture is open in hooks and tests only; read it there')
    return opened
  }
  return new Proxy({} as T, {
    get: (_, name) => Reflect.get(now(), name),
    ownKeys: () => Reflect.ownKeys(now()),
    getOwnPropertyDescriptor: (_, name) => {
      const property = Reflect.getOwnPropertyDescriptor(now(), name)
      return property && { ...property, configurable: true }
    },
  })
}

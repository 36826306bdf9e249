/** PostgreSQL for tests: a new database in the server of the run, or a private server. */
import { inject } from 'vitest'
import { execute } from './execute.ts'
import { PLAIN_ROLE } from './roles.ts'
import { startTestServer, type TestServer, type TestServerOptions, uniqueName, urlOf } from './server.ts'

export { execute }

export interface TestDatabase {
  readonly host: string
  readonly port: number
  readonly database: string
  /**
   * Connects as role `app`, which is not a superuser, has no BYPASSRLS, owns nothing, and has only CONNECT
   * and USAGE on `public`.
   */
  readonly url: string
  /** Connects as superuser `postgres`. */
  readonly adminUrl: string
  drop(): Promise<void>
}

/**
 * Creates an empty database that no other test uses. Roles belong to the whole server, so give new roles
 * unique names.
 */
export async function testDatabase(): Promise<TestDatabase> {
  const { port } = await ask<{ port: number }>('/server')
  return createDatabase(port, 'template0')
}

/** Starts a private server for tests of faults, TLS and authentication. Close it in `afterAll`. */
export async function privateServer(options: TestServerOptions = {}): Promise<TestServer> {
  const { folder } = await ask<{ folder: string }>('/template')
  return startTestServer(folder, options)
}

export async function createDatabase(port: number, template: string): Promise<TestDatabase> {
  const database = uniqueName('test')
  const server = urlOf(port, 'postgres', 'postgres')
  await execute(server, `create database ${database} template ${template}`)
  return {
    ...{ host: '127.0.0.1', port, database },
    url: urlOf(port, PLAIN_ROLE, database),
    adminUrl: urlOf(port, 'postgres', database),
    async drop() {
      await execute(server, `drop database if exists ${database} with (force)`)
    },
  }
}

/** Asks the broker of the run (see global-setup.ts). */
export async function ask<T>(path: '/template' | '/server' | '/sample'): Promise<T> {
  const response = await fetch(inject('broker') + path)
  if (!response.ok) throw new Error(`the test server is not available: ${await response.text()}`)
  return (await response.json()) as T
}

/** A gateway with the door for clients of PostgREST, and roles for its callers. */
import { beforeAll } from 'vitest'
import { databaseFixture, gatewayFixture } from './fixtures.ts'
import type { TestGateway } from './gateway.ts'
import { installed } from './install.ts'
import { execute } from './postgres.ts'
import { uniqueName } from './server.ts'

export interface PostgrestFixture {
  readonly gateway: TestGateway
  readonly anon: string
  readonly author: string
  /** The URL of a connection that can do everything. */
  adminUrl(): string
  /** Runs SQL as the owner of the database, which can contain `:anon` and `:author` as well. */
  run(sql: string): Promise<void>
  /** Sends a request without a token, below the prefix. */
  ask(path: string, options?: AskOptions): Promise<PostgrestReply>
}

export interface AskOptions {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  readonly token?: string
}

export interface PostgrestReply {
  readonly status: number
  /** The reason phrase of the status line. */
  readonly reason: string
  readonly headers: Headers
  readonly text: string
  // biome-ignore lint/suspicious/noExplicitAny: a test checks the shape of a response by its expectations
  readonly json: any
}

/**
 * `sql` can contain the names of roles, `:anon` and `:author`. `toml`: further lines of `[postgrest]`.
 * `captured`: tables of `public` whose changes are captured.
 */
export function postgrestFixture(sql: string, toml = '', captured: readonly string[] = []): PostgrestFixture {
  const anon = uniqueName('anon')
  const author = uniqueName('author')
  const database = databaseFixture()
  const named = (text: string) => text.replaceAll(':anon', anon).replaceAll(':author', author)
  beforeAll(async () => {
    const authenticator = decodeURIComponent(new URL(database.url).username)
    await execute(
      database.adminUrl,
      `create role ${anon} nologin; create role ${author} nologin; grant ${anon}, ${author} to "${authenticator}";
       ${named(sql)}`,
    )
    if (captured.length > 0)
      await installed(
        database,
        captured.map(table => ({ schema: 'public', table })),
      )
  })
  const gateway = gatewayFixture(database, {
    toml: `[postgrest]\nenabled = true\nanon_role = "${anon}"\n${toml}`,
  })
  return {
    ...{ gateway, anon, author },
    run: async text => void (await execute(database.adminUrl, named(text))),
    adminUrl: () => database.adminUrl,
    async ask(path, { method = 'GET', headers = {}, body, token } = {}) {
      const response = await fetch(`${gateway.url}/rest/v1${path}`, {
        method,
        headers: { ...headers, ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }) },
        ...(body === undefined ? {} : { body }),
      })
      const text = await response.text()
      return {
        status: response.status,
        reason: response.statusText,
        headers: response.headers,
        text,
        get json() {
          return JSON.parse(text)
        },
      }
    },
  }
}

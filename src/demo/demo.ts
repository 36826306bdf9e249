/**
 * `svc demo`: the gateway with an embedded PostgreSQL and sample data, and commands to paste into another
 * terminal.
 */
import { createHmac } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Config } from '../config/config.ts'
import type { Environment } from '../config/expand.ts'
import { loadConfig } from '../config/load.ts'
import { type GatewayOptions, startGateway } from '../gateway/gateway.ts'
import { CONSOLE_PATH } from '../http/console.ts'
import { createHosts } from '../http/hosts.ts'
import { mintToken } from '../identity/mint.ts'
import { installScript } from '../install/script.ts'
import type { OperatorRoutes } from '../ops/operator-routes.ts'
import { BOARD_PATH, createBoard } from './board.ts'
import { APP_ROLE, type Embedded, startEmbedded } from './embedded.ts'
import { EmbeddedError } from './error.ts'
import { cacheFolder } from './folders.ts'
import { obstacleTo } from './free-port.ts'
import { runStatements } from './run-statements.ts'
import { SAMPLE_TENANTS, type SampleTenant } from './sample.ts'

export interface DemoOptions {
  /** The first port to try; the next free one is taken. */
  readonly port?: number | undefined
  /** True to create the sample data again. */
  readonly fresh?: boolean | undefined
  /** The environment of the process, for the user's cache folder and SVC_LOG_LEVEL. */
  readonly environment?: Environment | undefined
  /** The folder for the data, instead of the user's cache folder. */
  readonly cache?: string | undefined
  print(line: string): void
  /** Makes a name in the printed text stand out; unchanged by default. */
  readonly emphasize?: (text: string) => string
}

export interface Demo {
  readonly url: string
  close(): Promise<void>
}

const DEFAULT_PORT = 8080
const PORTS_TRIED_MAX = 100
const TOKEN_SECONDS = 30 * 24 * 3600
/** The clerks can explain requests, because the data is a sample. */
const SCOPES = ['svc:explain']
/**
 * Log lines of requests would hide the printed commands, and the reader cannot act on warnings about this
 * database.
 */
const LOG_LEVEL = 'error'

export async function startDemo(options: DemoOptions): Promise<Demo> {
  const { print, environment = {}, emphasize = text => text } = options
  const cache = options.cache ?? (await cacheFolder(environment))
  const embedded = await startEmbedded({ cache, fresh: options.fresh ?? false, print })
  try {
    // At every start, because the cached data may be from an older sample without it.
    const chosen = [{ schema: 'public', table: null }]
    await runStatements(embedded.adminUrl, installScript({ role: APP_ROLE, selected: chosen, superuser: true }))
    const first = options.port ?? DEFAULT_PORT
    const port = await freePortFrom(first)
    const notice = port === first ? null : `Port ${first} is in use; using ${port}.`
    if (notice !== null) print(notice)
    const gateway = await startGateway(configOf(embedded, port, environment), {
      routes: sampleBoard(embedded),
      callers: sampleCallers(embedded),
      notice,
    })
    for (const line of await welcome(gateway.url, embedded, emphasize)) print(line)

    let closing = false
    void embedded.ended.then(() => {
      if (!closing) print(`PostgreSQL has ended; its messages are in ${join(embedded.folder, 'server.log')}`)
    })
    return {
      url: gateway.url,
      async close() {
        closing = true
        await gateway.close()
        await embedded.close()
      },
    }
  } catch (error) {
    await embedded.close()
    throw error
  }
}

/**
 * Uses defaults and ignores any svc.toml, because the demo shows the product and not the settings of the
 * reader.
 */
function configOf(embedded: Embedded, port: number, environment: Environment): Config {
  const { config } = loadConfig({
    workingDirectory: embedded.folder,
    environment: {
      DATABASE_URL: embedded.url,
      JWT_SECRET: embedded.jwtSecret,
      SVC_BIND: `127.0.0.1:${port}`,
      SVC_LOG_LEVEL: environment.SVC_LOG_LEVEL ?? LOG_LEVEL,
    },
  })
  // The sample tokens name roles of the application, so all requests keep the role of the connection.
  const jwtRoleClaim = { kind: 'constant', value: decodeURIComponent(new URL(embedded.url).username) } as const
  return {
    ...config,
    adminToken: adminTokenOf(embedded),
    gateway: { ...config.gateway, console: { ...config.gateway.console, enabled: true } },
    shapes: { ...config.shapes, enabled: true },
    postgrest: { ...config.postgrest, enabled: true, jwtRoleClaim },
  }
}

async function freePortFrom(first: number): Promise<number> {
  const last = Math.min(first + PORTS_TRIED_MAX, 65_536) - 1
  for (let port = first; port <= last; port++) {
    if ((await obstacleTo(port)) === null) return port
  }
  throw new EmbeddedError(`no free port from ${first} to ${last}; give another one with --port`)
}

/**
 * The printed text. Every `curl` line works when pasted, because it reads the token from a file beside the
 * data.
 */
async function welcome(url: string, embedded: Embedded, emphasize: Emphasize): Promise<readonly string[]> {
  const [bikes, coffee] = SAMPLE_TENANTS as [SampleTenant, SampleTenant]
  const one = await credential(bikes, embedded)
  const two = await credential(coffee, embedded)
  // Responses do not end with a newline, so one is added before the prompt.
  const curl = (header: string, path: string): string =>
    `curl -s -w '\\n' -H ${quote(`@${header}`)} ${quote(url + path)}`
  const order =
    `{"customer_id": 1, "created_by": "${bikes.userId}", "status": "pending", ` +
    '"currency": "EUR", "total": 249.9, "number": "NEW-'
  return [
    '',
    `The gateway listens on ${url}`,
    '',
    ...aligned(emphasize, [
      ['Start page', `${url}/`],
      ['Console', url + CONSOLE_PATH],
      ['Live orders', url + BOARD_PATH],
      ['API reference', `${url}/docs`],
    ]),
    '',
    'Tokens of a clerk of each of two shops, and of the operator (the admin token):',
    '',
    ...aligned(emphasize, [
      [bikes.name, one.token],
      [coffee.name, two.token],
      ['Operator', adminTokenOf(embedded)],
    ]),
    '',
    'Paste into another terminal: a list, one order of the other shop with its lines, and a new order',
    '',
    `  ${curl(one.header, '/api/orders?limit=3')}`,
    `  ${curl(two.header, '/api/orders/13001?expand=nested:order_items.product')}`,
    `  ${curl(one.header, '/api/orders')} -H 'Content-Type: application/json' ` +
      `-d ${quote(order)}$(date +%s)${quote('"}')}`,
    '',
    'Ctrl-C stops everything. To use your own database: DATABASE_URL=… JWT_SECRET=… npx svc serve',
    '',
  ]
}

type Emphasize = (text: string) => string

/** Rows of a name and a value, with the values below each other. */
function aligned(emphasize: Emphasize, rows: readonly (readonly [name: string, value: string])[]): readonly string[] {
  const width = Math.max(...rows.map(([name]) => name.length))
  return rows.map(([name, value]) => `  ${emphasize(name.padEnd(width))}  ${value}`)
}

async function credential(tenant: SampleTenant, embedded: Embedded): Promise<{ token: string; header: string }> {
  const token = await clerkToken(tenant, embedded, TOKEN_SECONDS)
  const header = join(embedded.folder, `${tenant.slug}.header`)
  await writeFile(header, `Authorization: Bearer ${token}\n`, { mode: 0o600 })
  return { token, header }
}

function clerkToken(tenant: SampleTenant, { jwtSecret }: Embedded, expiresInSeconds: number): Promise<string> {
  const claims = { tenantId: tenant.id, userId: tenant.userId, role: 'clerk', scopes: SCOPES, expiresInSeconds }
  return mintToken(jwtSecret, claims, Date.now())
}

/** The same at every start with the same data, as the clerks' tokens. */
function adminTokenOf({ jwtSecret }: Embedded): string {
  return createHmac('sha256', jwtSecret).update('svc demo admin token').digest('base64url')
}

/** The lifetime of a token that a page offers. */
const VISIT_SECONDS = 3_600

/** The clerks whom visitors can be. */
const VISITED = SAMPLE_TENANTS.slice(0, 2)

/**
 * The callers of the page at `/`. A page of another site could reach the demo through DNS rebinding, so the
 * `Host` of a request for their tokens must be a name of this machine.
 */
function sampleCallers(embedded: Embedded): NonNullable<GatewayOptions['callers']> {
  const hosts = createHosts([])
  return async ({ host }) => {
    if (!hosts.isOurHost(host, undefined)) return []
    return Promise.all(
      VISITED.map(async tenant => ({
        title: `a clerk of ${tenant.name}`,
        token: await clerkToken(tenant, embedded, VISIT_SECONDS),
      })),
    )
  }
}

/** The page of open orders, which writes as a superuser on request. */
function sampleBoard(embedded: Embedded): OperatorRoutes {
  return createBoard({
    shops: VISITED.map(tenant => ({ ...tenant, token: () => clerkToken(tenant, embedded, VISIT_SECONDS) })),
    execute: statement => runStatements(embedded.adminUrl, [statement]),
  })
}

/** Quotes a text for a POSIX shell. */
function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}

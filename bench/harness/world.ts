/**
 * The shared environment of benchmarks: one database, one caller, gateways and other servers as separate
 * processes.
 */
import { writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort } from '../../src/demo/free-port.ts'
import { mintToken } from '../../src/identity/mint.ts'
import { capture, type Sent } from './capture.ts'
import { assertIsolated, type Database, ensureStreamTable, startDatabase, TENANT } from './database.ts'
import { goProgram } from './go.ts'
import { type Service, startService } from './processes.ts'
import { JSON_TYPE, type Sending } from './sending.ts'
import { type Standby, startStandby } from './standby.ts'
import { makeWriteTables } from './write-tables.ts'

export interface World {
  /** The duration of one measurement under load. */
  readonly seconds: number
  /** The folder for files of this run. */
  readonly folder: string
  database(): Promise<Database>
  /** A standby of the database. */
  standby(): Promise<Standby>
  /** The caller's token, which every request has. */
  headers(): Promise<Readonly<Record<string, string>>>
  /**
   * One gateway for all benchmarks without special settings, so that it is as warm as a real one and has seen
   * varied requests.
   */
  gateway(): Promise<Service>
  startGateway(options?: GatewayOptions): Promise<Service>
  /** A server of `references/`. */
  startReference(name: string, ready?: Ready): Promise<Service>
  /** The server written in Go (`references/go/server`). */
  startGoReference(): Promise<Service>
  /** The statements of one request, session settings first. */
  sent(path: string, sending?: Sending): Promise<readonly Sent[]>
  close(): Promise<void>
}

/** The path that a running server answers; `/health` with 200 by default. */
export interface Ready {
  readonly path: string
  readonly status: number
}

export interface GatewayOptions {
  readonly logLevel?: 'warn' | 'info'
  /** Lines of `[gateway]` in `svc.toml`, and of tables after it. */
  readonly settings?: readonly string[]
  /** Answered 200 as soon as the gateway is ready. */
  readonly path?: string
  /** The URL of another database than the shared one. */
  readonly databaseUrl?: string
  /** The folder for `--cpu-prof` files, which are written when the gateway ends. */
  readonly profileFolder?: string | undefined
}

/**
 * For a gateway that reads the whole table of the streams, which the cost guard would reject. Others keep the
 * guard.
 */
export const COST_GUARD_OFF: readonly string[] = ['explain_max_cost = 0', 'explain_max_rows = 0']

export interface WorldOptions {
  readonly seconds: number
  readonly folder: string
  /** The folder for profiles of the shared gateway; null for none. */
  readonly profileFolder: string | null
  print(line: string): void
}

/** The log file of the gateway and of every other server. */
export const CONNECTIONS_MAX = 10
export const SECRET: string = 'only-for-benchmarks-on-this-machine'
const TOKEN_SECONDS = 24 * 3600
const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))

export function createWorld(options: WorldOptions): World {
  const services: Service[] = []
  let opened: Database | null = null
  let copied: Standby | null = null
  const database = once(async () => {
    opened = await startDatabase(options.print)
    await ensureStreamTable(opened, options.print)
    await makeWriteTables(opened)
    await assertIsolated(opened)
    return opened
  })
  const standby = once(async () => {
    copied = await startStandby(await database())
    return copied
  })
  const headers = once(async () => ({ Authorization: `Bearer ${await token()}` }))
  let numbered = 0

  async function start(
    name: string,
    args: readonly string[],
    more: Partial<Parameters<typeof startService>[0]>,
  ): Promise<Service> {
    numbered += 1
    const service = await startService({
      name,
      args,
      port: await freePort(),
      path: '/health',
      logFile: join(options.folder, `${numbered}-${name}.log`),
      environment: {},
      ...more,
    })
    services.push(service)
    return service
  }

  async function startGateway({
    logLevel = 'warn',
    settings = [],
    path = '/health',
    databaseUrl,
    profileFolder,
  }: GatewayOptions = {}) {
    const port = await freePort()
    const file = join(options.folder, `svc-${port}.toml`)
    const off = ['rate_limit_rate', 'tenant_max_concurrent', 'address_max_sockets'].filter(
      key => !settings.some(line => line.startsWith(`${key} `)),
    )
    const lines = [...off.map(key => `${key} = 0`), `max_connections = ${CONNECTIONS_MAX}`, ...settings]
    await writeFile(file, `[gateway]\n${lines.join('\n')}\n`)
    const profile = profileFolder === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profileFolder}`]
    return start('gateway', [...profile, MAIN, 'serve', '--config', file], {
      port,
      path,
      headers: await headers(),
      environment: {
        DATABASE_URL: databaseUrl ?? (await database()).url,
        JWT_SECRET: SECRET,
        SVC_BIND: `127.0.0.1:${port}`,
        SVC_LOG_LEVEL: logLevel,
      },
    })
  }

  async function forReference() {
    const port = await freePort()
    const environment = {
      DATABASE_URL: (await database()).url,
      JWT_SECRET: SECRET,
      PORT: String(port),
      CONNECTIONS_MAX: String(CONNECTIONS_MAX),
      NODE_ENV: 'production',
    }
    return { port, environment }
  }

  return {
    seconds: options.seconds,
    folder: options.folder,
    database,
    standby,
    headers,
    gateway: once(() => startGateway({ profileFolder: options.profileFolder ?? undefined })),
    startGateway,
    async startReference(name, ready = { path: '/health', status: 200 }) {
      const script = fileURLToPath(new URL(`../references/${name}.js`, import.meta.url))
      return start(name, [script], { ...(await forReference()), ...ready })
    },
    async startGoReference() {
      return start('go', [], { program: await goProgram('server'), ...(await forReference()) })
    },
    async sent(path, sending) {
      const ask = await headers()
      const sent = await capture(await database(), async () => {
        const gateway = await startGateway({ settings: COST_GUARD_OFF })
        return { request: async () => void (await fetchOk(gateway.url + path, ask, sending)), stop: gateway.stop }
      })
      if (sent.length < 2)
        throw new Error(`${path} made PostgreSQL log ${sent.length} statements; expected the settings and a query`)
      return sent
    },
    async close() {
      await Promise.all(services.map(service => service.stop()))
      await copied?.close()
      await opened?.close()
    },
  }
}

/** The body of a response, which must be successful. */
export function fetchOk(
  url: string,
  headers: Readonly<Record<string, string>>,
  { method, body }: { readonly method: string; readonly body: string | null } = GET,
): Promise<string> {
  const type = body === null ? {} : JSON_TYPE
  return new Promise((resolve, reject) => {
    const asking = request(url, { method, agent: false, headers: { ...headers, ...type } }, response => {
      let answer = ''
      response.setEncoding('utf8').on('data', (chunk: string) => {
        answer += chunk
      })
      response.once('error', reject)
      response.once('end', () => {
        const { statusCode = 0 } = response
        if (statusCode >= 200 && statusCode < 300) resolve(answer)
        else reject(new Error(`${method} ${url} answered ${statusCode}: ${answer.slice(0, 500)}`))
      })
    })
    asking.once('error', reject)
    asking.end(body)
  })
}

const GET = { method: 'GET', body: null }

/** Every claim has a value, because pgbench cannot pass empty ones. */
function token(): Promise<string> {
  const claims = {
    tenantId: TENANT.id,
    userId: TENANT.userId,
    agentId: 'agent-1',
    role: 'clerk',
    scopes: ['orders:read'],
  }
  return mintToken(SECRET, { ...claims, expiresInSeconds: TOKEN_SECONDS }, Date.now())
}

/** Runs the function at the first call. Every call returns that result. */
function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | null = null
  return () => {
    made ??= make()
    return made
  }
}

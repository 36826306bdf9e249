/** A real gateway for tests, in this process, on a separate port. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { loadConfig } from '../../src/config/load.ts'
import type { Emit } from '../../src/events.ts'
import { type Gateway, type GatewayOptions as StartOptions, startGateway } from '../../src/gateway/gateway.ts'
import { type Pages, routesOf } from '../../src/http/pages.ts'
import { mintToken, type TokenRequest } from '../../src/identity/mint.ts'
import type { OperatorRoutes } from '../../src/ops/operator-routes.ts'
import { withViews } from './postgres-version.ts'

export const SECRET = 'a-secret-for-tests-of-at-least-32-bytes'

export interface TestGateway {
  readonly url: string
  readonly gateway: Gateway
  /** Signs a token with these claims. */
  token(claims: Partial<TokenRequest>): Promise<string>
  /**
   * Sends a GET with a token for the claims in `as`, or without a token for null. By default the tenant is
   * `t1`.
   */
  get(path: string, options?: AskOptions): Promise<Reply>
  close(): Promise<void>
}

export interface AskOptions {
  readonly as?: Partial<TokenRequest> | null
  readonly headers?: Readonly<Record<string, string>>
  readonly method?: string
  readonly body?: string | Uint8Array<ArrayBuffer>
}

export interface Reply {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** The body parsed as JSON. Throws if it is not JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: a test checks the shape of a response by its expectations
  readonly json: any
}

export interface GatewayOptions {
  /** Lines of `svc.toml` below `[gateway]`, for settings that have no environment variable. */
  readonly toml?: string
  readonly environment?: Readonly<Record<string, string>>
  /** Receives every event instead of the log. */
  readonly emit?: Emit
  readonly pages?: Pages
  readonly routes?: OperatorRoutes
  readonly callers?: StartOptions['callers']
}

export async function testGateway(databaseUrl: string, options: GatewayOptions = {}): Promise<TestGateway> {
  const file = await configFile(withoutLimits(options.toml ?? ''))
  const { config } = loadConfig({
    file,
    environment: {
      DATABASE_URL: databaseUrl,
      JWT_SECRET: SECRET,
      SVC_BIND: '127.0.0.1:0',
      SVC_LOG_LEVEL: 'silent',
      ...options.environment,
    },
    workingDirectory: tmpdir(),
  })
  await rm(dirname(file), { recursive: true })
  const { environment = {}, emit, pages = new Map(), routes = routesOf(pages), callers } = options
  const gateway = await startGateway(config, {
    ...{ environment, routes },
    ...(emit === undefined ? {} : { emit }),
    ...(callers === undefined ? {} : { callers }),
  })
  const token = (claims: Partial<TokenRequest>) => mintToken(SECRET, { expiresInSeconds: 600, ...claims }, Date.now())
  // Tokens of different seconds are different callers for the result cache.
  const tokens = new Map<string, Promise<string>>()
  const tokenFor = (claims: Partial<TokenRequest>): Promise<string> => {
    const key = JSON.stringify(claims)
    const signed = tokens.get(key) ?? token(claims)
    tokens.set(key, signed)
    return signed
  }
  return {
    url: gateway.url,
    gateway,
    token,
    async get(path, { as = { tenantId: 't1' }, headers = {}, method = 'GET', body } = {}) {
      const authorization: Record<string, string> = as === null ? {} : { Authorization: `Bearer ${await tokenFor(as)}` }
      const response = await fetch(gateway.url + path, {
        method,
        headers: { ...authorization, ...headers },
        ...(body === undefined ? {} : { body }),
      })
      const text = await response.text()
      return {
        status: response.status,
        headers: response.headers,
        text,
        get json() {
          return JSON.parse(text)
        },
      }
    },
    close: () => gateway.close(),
  }
}

/**
 * Tests send more requests from one address and as one tenant than an ordinary client. Tests of rate limits
 * set their own.
 */
function withoutLimits(toml: string): string {
  const off = ['rate_limit_rate', 'tenant_max_concurrent'].filter(key => !toml.includes(key))
  return [...off.map(key => `${key} = 0`), toml].join('\n')
}

/** Creates a file `svc.toml` with these lines below `[gateway]`. */
export async function configFile(gatewayLines: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-config-'))
  const file = join(folder, 'svc.toml')
  await writeFile(file, `[gateway]\n${withViews(gatewayLines)}\n`)
  return file
}

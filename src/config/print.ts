/**
 * The effective configuration as TOML, for `svc check --print`. The output is valid in `svc.toml`, except
 * for the secrets.
 */
import type { Bind, ClaimSource, Config, RequiredClaim } from './config.ts'
import { MASK, maskDatabaseUrl } from './mask.ts'
import {
  ACCESS,
  CACHE,
  CONSOLE,
  GATEWAY,
  ISSUER,
  MCP,
  OPENAPI,
  POSTGREST,
  PROCESS,
  REPLICA,
  ROLE_OVERRIDE,
  type Setting,
  type SettingsOf,
  SHAPES,
  SHARED,
  TABLE,
  TRACING,
} from './settings.ts'

/** The text of a configuration, without secrets. */
export function printConfig(config: Config): string {
  const overrides = [...config.gateway.roleOverrides].map(([role, override]) =>
    section(`gateway.role_overrides.${JSON.stringify(role)}`, lines(ROLE_OVERRIDE, override)),
  )
  const tables = [...config.gateway.tables].map(([name, table]) =>
    section(`gateway.tables.${JSON.stringify(name)}`, lines(TABLE, table)),
  )
  return [
    ...comments(config),
    section('gateway', [...lines(PROCESS, config), ...lines(GATEWAY, config.gateway)]),
    ...config.gateway.issuers.map(issuer => section('[gateway.issuers]', lines(ISSUER, issuer))),
    ...config.gateway.replicas.map(replica => section('[gateway.replicas]', lines(REPLICA, replica))),
    section('gateway.console', lines(CONSOLE, config.gateway.console)),
    section('gateway.tracing', lines(TRACING, config.gateway.tracing)),
    section('gateway.shared', lines(SHARED, config.gateway.shared)),
    section('gateway.openapi', lines(OPENAPI, config.gateway.openapi)),
    section('gateway.cache', lines(CACHE, config.gateway.cache)),
    ...overrides,
    ...tables,
    section('access', lines(ACCESS, config.access)),
    section('postgrest', lines(POSTGREST, config.postgrest)),
    section('shapes', lines(SHAPES, config.shapes)),
    section('mcp', lines(MCP, config.mcp)),
  ].join('\n')
}

/** Settings that only the environment can set have no key. */
function comments(config: Config): readonly string[] {
  return (Object.entries(PROCESS) as [keyof typeof PROCESS, Setting<unknown>][])
    .filter(([, setting]) => setting.key === null)
    .map(([field, setting]) => `# ${setting.environment} = ${printValue(config[field], setting) ?? 'not set'}`)
}

function section(name: string, content: readonly string[]): string {
  return `\n[${name}]\n${content.join('\n')}`
}

/** TOML has no null, so an unset setting becomes a comment. */
function lines<T>(table: SettingsOf<T>, values: T): readonly string[] {
  return (Object.entries(table) as [keyof T, Setting<unknown>][])
    .filter(([, setting]) => setting.key !== null)
    .map(([field, setting]) => {
      const name = setting.key?.split('.').at(-1)
      const value = printValue(values[field], setting)
      return value === null ? `# ${name} is not set` : `${name} = ${value}`
    })
}

function printValue(value: unknown, setting: Setting<unknown>): string | null {
  if (value === null) return null
  if (setting.secret !== true) return printPlain(value)
  if (value instanceof Map) return printPlain(new Map([...value.keys()].map(key => [key, MASK])))
  return JSON.stringify(setting.kind === GATEWAY.databaseUrl.kind ? maskDatabaseUrl(value as string) : MASK)
}

/** JSON of these values is valid TOML too. */
export function printPlain(value: unknown): string {
  return isBind(value)
    ? JSON.stringify(printBind(value))
    : Array.isArray(value)
      ? `[${value.map(printPlain).join(', ')}]`
      : value instanceof Map
        ? printTable(value)
        : isClaim(value)
          ? printClaim(value)
          : JSON.stringify(value)
}

function printTable(table: ReadonlyMap<string, unknown>): string {
  const entries = [...table].map(([key, value]) => `${JSON.stringify(key)} = ${printPlain(value)}`)
  return entries.length === 0 ? '{}' : `{ ${entries.join(', ')} }`
}

function isClaim(value: unknown): value is ClaimSource | RequiredClaim {
  return typeof value === 'object' && value !== null && ('claim' in value || 'kind' in value)
}

function printClaim(value: ClaimSource | RequiredClaim): string {
  if (!('kind' in value)) return JSON.stringify(value.value)
  return value.kind === 'constant' ? `{ value = ${JSON.stringify(value.value)} }` : JSON.stringify(value.claim.text)
}

function isBind(value: unknown): value is Bind {
  return typeof value === 'object' && value !== null && 'host' in value && 'port' in value
}

/** An address and port as `HOST:PORT`. */
export function printBind({ host, port }: Bind): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}

/**
 * `svc token revoke`: writes a row into the table of revoked tokens
 * (docs/guides/authentication.md#revoke-tokens).
 */
import { parseTableName } from '../catalog/table-names.ts'
import type { Config } from '../config/config.ts'
import { loadConfig } from '../config/load.ts'
import { quoteIdentifier, quoteLiteral } from '../language/sql/quote.ts'
import { openDatabase } from './database.ts'
import { UsageError } from './failure.ts'
import { EXIT, type World } from './world.ts'

export interface RevokeCommand {
  readonly file: string | undefined
  readonly jti: string | undefined
  readonly sub: string | undefined
  /** Only tokens issued before this time, with `sub`; now by default. */
  readonly before: Date | undefined
}

export async function revoke(command: RevokeCommand, world: World): Promise<number> {
  const { jti, sub, before } = command
  if ((jti === undefined) === (sub === undefined))
    throw new UsageError('give --jti ID, or --sub SUBJECT [--before TIME]')
  if (jti !== undefined && before !== undefined)
    throw new UsageError('--before can only be used with --sub; --jti selects a single token')
  const { config } = loadConfig({ ...world, file: command.file })
  const url = config.adminDatabaseUrl ?? config.gateway.databaseUrl
  if (url === null) throw new UsageError('no database is configured: set DATABASE_URL, or SVC_ADMIN_DATABASE_URL')
  const time = (before ?? new Date()).toISOString()
  const values = [jti, sub].map(value => (value === undefined ? 'null' : quoteLiteral(value)))
  const database = await openDatabase(url, config.gateway)
  try {
    await database.transaction([
      `insert into ${tableOf(config)} (jti, sub, iat) values (${values.join(', ')}, ` +
        `${quoteLiteral(time)}::timestamptz)`,
    ])
  } finally {
    await database.close()
  }
  const isPublished = await publish(config, world)
  const what = jti === undefined ? `all tokens of "${sub}" that were issued before ${time}` : `the token "${jti}"`
  world.out(`revoked ${what}, ${isPublished ? 'at every gateway now' : 'within 10 seconds at every gateway'}`)
  return EXIT.ok
}

/** Reports whether the gateways have been asked to read the table now; they read it periodically anyway. */
async function publish({ gateway: { shared } }: Config, world: World): Promise<boolean> {
  if (shared.url === null) return false
  const { publishRevocation } = await import('../shared/shared-state.ts')
  try {
    await publishRevocation(shared.url, shared.prefix, PUBLISH_MS)
    return true
  } catch (error) {
    world.error(`gateway.shared.url cannot be reached: ${(error as Error).message}`)
    return false
  }
}

const PUBLISH_MS = 2_000

function tableOf({ gateway }: Config): string {
  const { jwtDenylistTable: name, schemas } = gateway
  if (name === null)
    throw new UsageError('jwt_denylist_table is not set: name the table of revoked tokens in [gateway]')
  const { schema, table } = parseTableName(name, schemas)
  return `${quoteIdentifier(schema)}.${quoteIdentifier(table)}`
}

/**
 * `svc openapi` (docs/reference/cli.md#svc-openapi): prints the OpenAPI document of the configured database
 * for one kind of caller.
 */
import { createPolicies } from '../access/policy/policies.ts'
import { EVERYTHING, type Rights } from '../access/rights.ts'
import { introspect } from '../catalog/introspect.ts'
import type { Catalog } from '../catalog/model.ts'
import type { Config } from '../config/config.ts'
import { loadConfig } from '../config/load.ts'
import { policyFiles } from '../config/policy-files.ts'
import { openApiDocument } from '../openapi/document.ts'
import { loadFunctionList } from '../rest/rpc/function-list.ts'
import { VERSION } from '../version.ts'
import { openDatabase } from './database.ts'
import { UsageError } from './failure.ts'
import { writeText } from './text-file.ts'
import { EXIT, type World } from './world.ts'

export interface OpenApiCommand {
  readonly config: string | undefined
  /** The role of the caller; undefined for a caller without restrictions by policies. */
  readonly role: string | undefined
  readonly scopes: readonly string[]
  /** Null: standard output. */
  readonly out: string | null
}

export async function openapi(command: OpenApiCommand, world: World): Promise<number> {
  const { config } = loadConfig({ ...world, file: command.config })
  const text = `${JSON.stringify(JSON.parse((await documentOf(command, config)).toString()), null, 2)}\n`
  if (command.out === null) world.out(text.trimEnd())
  else await writeText(command.out, text, world)
  return EXIT.ok
}

async function documentOf(command: OpenApiCommand, config: Config): Promise<Buffer> {
  const { gateway, adminToken } = config
  if (gateway.databaseUrl === null) {
    throw new UsageError('no database is configured: set DATABASE_URL or [gateway] database_url')
  }
  const database = await openDatabase(gateway.databaseUrl, gateway)
  try {
    const catalog = await introspect(database.query, gateway)
    const { rpcAllowlistPath, schemas } = gateway
    const view = { catalog, rights: await rightsOf(command, config, catalog) }
    return openApiDocument(view, {
      ...gateway,
      ...gateway.openapi,
      version: VERSION,
      adminGuard: adminToken !== null,
      allowed: rpcAllowlistPath === null ? null : await loadFunctionList(rpcAllowlistPath, schemas[0] ?? 'public'),
    })
  } finally {
    await database.close()
  }
}

async function rightsOf({ role, scopes }: OpenApiCommand, config: Config, catalog: Catalog): Promise<Rights> {
  if (role === undefined && scopes.length === 0) return EVERYTHING
  const { searchLanguage } = config.gateway
  const policies = await createPolicies({
    ...policyFiles(config),
    schema: () => ({ catalog, searchLanguage }),
    onProblem: () => {},
  })
  return policies.rightsOf({ role: role ?? '', scopes })
}

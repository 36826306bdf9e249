/** The schema, contracts and OpenAPI documents: what a caller may see and call. */
import { canSee, type View } from '../access/rights.ts'
import { canUpdate } from '../access/writable.ts'
import { describe } from '../catalog/describe.ts'
import { describeFunctions } from '../catalog/describe-functions.ts'
import type { Catalog } from '../catalog/model.ts'
import type { Config } from '../config/config.ts'
import { documentFor } from '../http/document.ts'
import type { Documents } from '../http/other-routes.ts'
import { isDocumented } from '../rest/rpc/documented.ts'
import type { FunctionList } from '../rest/rpc/function-list.ts'
import { callName } from '../rest/rpc/names.ts'
import { VERSION } from '../version.ts'

interface Parts {
  readonly config: Config
  readonly catalog: () => Catalog
  /** The functions that may be called; null: all. */
  readonly functions: () => FunctionList | null
}

/** Creates the documents of the gateway. */
export function createDocuments({ config, catalog, functions }: Parts): Documents {
  const { gateway } = config
  const common = { sources: () => [catalog(), functions()], keyOf: ({ rights }: View) => rights.key }
  let openApi: Promise<(view: View) => Buffer> | null = null
  // Loaded at the first request for it, because few requests need it.
  const loadOpenApi = async () => {
    const { openApiDocument } = await import('../openapi/document.ts')
    const settings = { ...gateway, ...gateway.openapi, version: VERSION, adminGuard: config.adminToken !== null }
    return documentFor<View>({
      ...common,
      make: view => openApiDocument(view, { ...settings, allowed: functions() }),
    })
  }
  return {
    schema: documentFor<View>({
      ...common,
      make: view =>
        JSON.stringify(
          describe(
            view.catalog,
            (table, column) => canSee(table, column, view.rights),
            (table, column) => canUpdate(table, column.name, view.rights),
          ),
        ),
    }),
    contracts: documentFor<View>({
      ...common,
      make: view =>
        JSON.stringify(
          describeFunctions(view.catalog, {
            canCall: of => isDocumented(of, view, { allowed: functions() }),
            nameOf: of => callName(of, { qualified: gateway.rpcRequireSchemaQualified }),
          }),
        ),
    }),
    openapi: async view => {
      openApi ??= loadOpenApi()
      return (await openApi)(view)
    },
  }
}

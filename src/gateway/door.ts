/** Opens the entry point for clients of PostgREST: its schema, plans and callers. */
import type { Policies } from '../access/policy/policies.ts'
import { introspect, type Query, readFingerprint } from '../catalog/introspect.ts'
import type { DatabaseFunction } from '../catalog/model.ts'
import { type CatalogSource, createCatalogSource } from '../catalog/reload.ts'
import { createPlanCache, type PlanCache } from '../compile/plans.ts'
import type { Config } from '../config/config.ts'
import type { Emit } from '../events.ts'
import type { Denylist } from '../identity/denylist.ts'
import type { Issuers } from '../identity/issuers.ts'
import { createTokenVerifier } from '../identity/jwt.ts'
import type { ProtectedResource } from '../identity/resource.ts'
import { createAuthenticate } from '../postgrest/authenticate.ts'
import { createDoor, type Door } from '../postgrest/door.ts'
import type { UnsentSettings } from '../postgrest/session.ts'
import type { Runner } from '../run/run.ts'
import { RoleSettings } from './role-settings.ts'

/** The parts of the entry point that live as long as the gateway. */
export interface OpenedDoor {
  readonly catalog: CatalogSource
  readonly plans: PlanCache
  readonly roleSettings: RoleSettings
}

/** Reads the schema of the entry point. Null if it is not enabled. */
export async function openDoor(config: Config, query: Query, emit: Emit): Promise<OpenedDoor | null> {
  if (!config.postgrest.enabled) return null
  const { schemas, schemaPollSecs, jwtDenylistTable, tables } = config.gateway
  // The gateway's first schema comes first, so that its tables have the same resource names here as in the
  // REST API. Policies, subscriptions and webhooks use these names.
  const first = schemas.slice(0, 1)
  const options = {
    ...{ schemas: [...new Set([...first, ...config.postgrest.schemas])], exposedViews: [], allViews: true },
    ...{ jwtDenylistTable, tables, dependencies: true },
  }
  const roleSettings = new RoleSettings()
  const catalog = await createCatalogSource({
    load: async () => {
      await roleSettings.read(query)
      return introspect(query, options)
    },
    fingerprint: async () => {
      await roleSettings.read(query)
      return readFingerprint(query, options)
    },
    pollSeconds: schemaPollSecs,
    onEvent: ({ kind, ...detail }) => emit({ kind: 'catalog', event: `postgrest ${kind}`, detail }),
  })
  return { catalog, plans: createPlanCache(), roleSettings }
}

/** The dependencies of the connected entry point. */
export interface DoorConnection {
  readonly config: Config
  readonly opened: OpenedDoor
  readonly issuers: Issuers['all']
  readonly denylist: Denylist
  readonly resource: ProtectedResource | null
  readonly policies: Policies
  readonly isExposed: (of: DatabaseFunction) => boolean
  readonly reads: Runner
  readonly requests: Runner
  readonly unsent: UnsentSettings
}

/** Connects the entry point with the parts of the gateway. */
export function connectDoor(parts: DoorConnection): Door {
  const { config, opened, issuers, denylist, resource, policies, isExposed, reads, requests, unsent } = parts
  const { gateway, postgrest } = config
  const tokens = createTokenVerifier(ownTokens(config), issuers, () => Date.now(), denylist)
  const canVerify = issuers.length > 0 || gateway.jwtSecrets.size > 0 || config.jwtSecret !== null
  return createDoor({
    ...{ config: postgrest, limits: gateway, searchLanguage: gateway.searchLanguage },
    ...{ publicUrl: gateway.publicUrl, allowsAnyOrigin: gateway.corsAllowedOrigins.length === 0 },
    now: () => performance.now(),
    authenticate: createAuthenticate(canVerify ? tokens : null),
    resource,
    settingsOfRole: role => opened.roleSettings.of(role),
    statementTimeoutMs: gateway.statementTimeoutMs,
    unsent,
    view: identity => ({ catalog: opened.catalog.current(), rights: policies.rightsOf(identity), limits: gateway }),
    ...{ plans: opened.plans, isExposed, reads, requests },
  })
}

/** The settings of tokens, replaced by those of the entry point where it has its own. */
function ownTokens(config: Config): Parameters<typeof createTokenVerifier>[0] {
  const { jwtAudience, jwtSecretIsBase64 } = config.postgrest
  const { gateway } = config
  const decoded = (secret: string | null): string | Buffer | null =>
    secret !== null && jwtSecretIsBase64 ? Buffer.from(secret, 'base64') : secret
  return {
    jwtSecret: decoded(config.jwtSecret),
    jwtSecretPrevious: decoded(config.jwtSecretPrevious),
    gateway: { ...gateway, jwtAudience },
    isAudienceOptional: true,
  }
}

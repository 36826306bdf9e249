/** The limits in force, as `/health/internal` reports them: by their keys in the file. */
import type { GatewayConfig } from './config.ts'
import { GATEWAY } from './settings.ts'

type NumberKey = keyof {
  [K in keyof typeof GATEWAY as GatewayConfig[K] extends number ? K : never]: true
}

const LIMITS: readonly NumberKey[] = [
  'maxConnections',
  'feedMaxConnections',
  'walKeepMb',
  'acquireTimeoutMs',
  'statementTimeoutMs',
  'drainTimeoutMs',
  'rateLimitRate',
  'rateLimitBurst',
  'tenantMaxConcurrent',
  'tenantMaxStreams',
  'streamMinBytesPerSec',
  'streamMinRateWindowSecs',
  'maxClientConnections',
  'addressMaxClientConnections',
  'addressMaxSockets',
  'tenantMaxSockets',
  'tenantMaxSubscriptions',
  'tenantMaxSubscriptionGroups',
  'tenantMaxWaitingShapes',
  'tenantMaxLiveQueries',
  'maxLiveQueries',
  'maxSockets',
  'socketMaxSubscriptions',
  'socketMaxLiveQueries',
  'tenantMaxUnroutedQueriesPerSec',
  'unroutedResyncIntervalMs',
  'maxInflightBodyBytes',
  'addressMaxInflightBodyBytes',
  'maxUnsentBytes',
  'tenantMaxUnsentBytes',
  'connectionMaxUnsentBytes',
  'connectionMaxConcurrent',
  'connectionMaxPipelined',
  'largeBodyBytes',
  'explainMaxCost',
  'explainMaxRows',
  'defaultLimit',
  'maxResultRows',
  'maxResultBytes',
  'maxBatchRows',
  'maxBatchKeySets',
  'maxBatchOperations',
  'maxBatchReferences',
  'maxInspectSteps',
  'maxImportBytes',
  'maxImports',
  'tenantMaxImports',
  'maxExpandDepth',
  'maxFilters',
  'maxInValues',
  'maxJoins',
  'maxRelations',
  'maxBuiltValueBytes',
  'maxCollectedBytes',
  'maxCopiedValues',
  'maxSeriesRows',
  'maxPatternBytes',
  'maxContainedElements',
  'maxExpressions',
  'maxParameters',
  'maxNumericProducts',
  'maxRepeatedCharacters',
  'maxRepetitions',
  'maxQueryParameters',
  'maxTextFormBytes',
]

/** The limits of a configuration by their keys. */
export function limitsOf(gateway: GatewayConfig): Readonly<Record<string, number>> {
  return Object.fromEntries(LIMITS.map(name => [keyOf(name), gateway[name]]))
}

/** `gateway.max_connections` is reported as `max_connections`. */
function keyOf(name: NumberKey): string {
  return (GATEWAY[name].key ?? name).replace(/^gateway\./, '')
}

/**
 * A gateway's pipeline in isolation: everything between the HTTP server and the runner, which need not
 * execute anything.
 */
import { EVERYTHING, type View } from '../../src/access/rights.ts'
import { createPlanCache, type PlanCache } from '../../src/compile/plans.ts'
import type { Answer, Incoming } from '../../src/exchange.ts'
import { ImportStatuses } from '../../src/http/import-status.ts'
import { createPipeline } from '../../src/http/pipeline.ts'
import { noProgress } from '../../src/http/reports.ts'
import { ANONYMOUS } from '../../src/identity/authenticate.ts'
import type { Identity } from '../../src/identity/identity.ts'
import { createImportSlots } from '../../src/limits/import-slots.ts'
import { QueryHandler } from '../../src/query/query.ts'
import { Compiler } from '../../src/rest/compile.ts'
import { createCursorCodec } from '../../src/rest/read/cursor.ts'
import { ReadHandler } from '../../src/rest/read/read.ts'
import type { ReadLimits } from '../../src/rest/read/request.ts'
import type { RequestLimits } from '../../src/rest/request.ts'
import { CallHandler } from '../../src/rest/rpc/call.ts'
import type { WriteLimits } from '../../src/rest/write/write.ts'
import { IdempotencyKeys } from '../../src/run/idempotency.ts'
import type { Runner } from '../../src/run/run.ts'

export const PIPELINE_LIMITS: ReadLimits &
  WriteLimits &
  RequestLimits & { readonly maxParameters: number; readonly maxTextFormBytes: number } = {
  ...{ defaultLimit: 50, maxResultRows: 1_000, maxExpandDepth: 4, maxFilters: 64, maxInValues: 100 },
  maxBatchRows: 100,
  tables: new Map(),
  ...{ maxParameters: 1_000, maxQueryParameters: 1_000, maxTextFormBytes: 1_048_576 },
  maxBatchKeySets: 8,
}

export interface TestPipelineParts {
  readonly runner: Runner
  readonly view: (identity: Identity) => View
  readonly identity?: Identity
  readonly limits?: typeof PIPELINE_LIMITS
  readonly plans?: PlanCache
  readonly signatureCheck?: boolean
  readonly cachesRequests?: boolean
}

/** Allows every request. Throws or rejects like a request that fails. */
export function testPipeline(parts: TestPipelineParts): (incoming: Incoming) => Promise<Answer> {
  const { runner, view, identity = ANONYMOUS, limits = PIPELINE_LIMITS, plans = createPlanCache() } = parts
  const common = { plans, limits, searchLanguage: 'english' }
  const pipeline = createPipeline({
    ...{ view, plans, runner, reads: runner, cachesRequests: parts.cachesRequests ?? true },
    ...{ authenticate: () => identity, explainEndpoint: 'on', isAdmin: () => false, approvals: null, door: null },
    ...{ shapes: null, shapesPath: null, broadcasts: null, events: unreached },
    read: new ReadHandler({
      limits,
      cursors: createCursorCodec('a key'),
      operatorExplains: false,
      comparesTags: !(parts.cachesRequests ?? true),
    }),
    requestLimits: limits,
    writeLimits: limits,
    call: new CallHandler({
      limits,
      qualified: false,
      allowed: () => null,
      signatureCheck: parts.signatureCheck ?? true,
    }),
    text: new QueryHandler({
      ...{ ...common, view, approvals: null, explains: true },
      ...{ isCallable: () => true, allowed: () => null },
    }),
    compiler: new Compiler(common),
    newPartitions: { learn: () => null },
    batch: {
      ...{
        maxBatchOperations: 100,
        maxBatchReferences: 1_000,
        maxResultBytes: 1_048_576,
        reports: { errorAnswer: unreached, ended() {} },
      },
      ...{ countRequest: () => true, countBytes: () => () => {}, now: () => 0, pause: async () => {}, random: () => 0 },
    },
    inspect: {
      ...{ isEnabled: false, isOpen: false, maxInspectSteps: 0, caches: false, now: () => 0 },
      limits: { explainMaxCost: 0, explainMaxRows: 0, roleOverrides: new Map() },
    },
    imports: {
      slots: createImportSlots({ max: 0, shareMax: 0 }),
      ...{ maxImportBytes: 0, importTimeoutMs: 600_000, now: () => 0 },
      ...{ statuses: new ImportStatuses(), findElsewhere: null },
    },
    idempotencyKeys: new IdempotencyKeys({
      ...{ database: { run: unreached }, ticket: '', isInstalled: () => false, onUnknownTicket: unreached },
      limits: { idempotencyTtlSecs: 60, idempotencyMaxResponseBytes: 1_024, tenantMaxIdempotencyKeys: 0 },
    }),
    documents: { schema: unreached, contracts: unreached, openapi: unreached },
    ...{ assertRoom() {}, health: { answer: unreached }, internal: new Map() },
  })
  return async incoming => pipeline(incoming, noProgress())
}

function unreached(): never {
  throw new Error('the test does not expect this call')
}

/** The rights of callers who can read everything. */
export function everything(catalog: View['catalog']): () => View {
  return () => ({ catalog, rights: EVERYTHING })
}

/**
 * The entry point for clients of PostgREST: requests below a prefix, in its dialect, which use the same
 * trees, statements and runners as every other request.
 */
import type { View } from '../access/rights.ts'
import type { DatabaseFunction } from '../catalog/model.ts'
import type { PlanCache } from '../compile/plans.ts'
import type { PostgrestConfig } from '../config/config.ts'
import type { Answer, Incoming } from '../exchange.ts'
import type { Identity } from '../identity/identity.ts'
import { type ProtectedResource, withMetadataUrl } from '../identity/resource.ts'
import { headerOf } from '../rest/header.ts'
import type { RequestContext, RequestStep } from '../rest/steps.ts'
import type { Runner } from '../run/run.ts'
import { LevelBinder } from './bind.ts'
import { respondError } from './error-response.ts'
import { unsupportedMethod } from './errors.ts'
import { Heads } from './heads.ts'
import { keptByText } from './kept.ts'
import { convertLargeBody } from './large-body.ts'
import { rulesOfResult, rulesOfRows } from './media-handlers.ts'
import type { ResponseMediaType } from './media-types.ts'
import { tableIn } from './names.ts'
import { respondOptions } from './options.ts'
import { planStep } from './plan.ts'
import { parsePreferences } from './preferences.ts'
import { type ParameterLimits, parseQueryParameters } from './query-parameters.ts'
import { readTableStep } from './read.ts'
import { type DoorRequest, negotiated, type RawDoorRequest, type RequestHead, resourceOf, schemaOf } from './request.ts'
import { respondPreflight, withCommonHeaders } from './response-headers.ts'
import { negotiateRoot, RootDocuments, readRoot } from './root/root.ts'
import { callFunction, type Negotiate } from './rpc/call.ts'
import type { IsExposed } from './rpc/resolve.ts'
import {
  createRoles,
  type DatabaseCaller,
  type SessionReply,
  Sessions,
  type SettingsOfRole,
  type UnsentSettings,
  withSubscriberSession,
} from './session.ts'
import { Statements } from './statements.ts'
import { HoistedSettings } from './stored-settings.ts'
import { Timings } from './timings.ts'
import { writeTable } from './write.ts'

/** The limits of requests. */
export interface DoorLimits extends ParameterLimits {
  readonly maxResultRows: number
  readonly maxBatchRows: number
  readonly maxBatchKeySets: number
}

/** The dependencies of the entry point. */
export interface DoorParts {
  readonly config: PostgrestConfig
  readonly limits: DoorLimits
  readonly searchLanguage: string
  /** The public address of the gateway, without a path; null if it is not configured. */
  readonly publicUrl: string | null
  /** True if pages of any origin can send requests, because the gateway has no rules for origins. */
  readonly allowsAnyOrigin: boolean
  /** The time in milliseconds of a monotonic clock. */
  readonly now: () => number
  /** Verifies the token of a request; synchronous for one that was verified before. */
  readonly authenticate: (headers: Incoming['headers'], connection: object) => Identity | Promise<Identity>
  /** The metadata that a 401 response links to; null for none. */
  readonly resource: Pick<ProtectedResource, 'metadataUrl'> | null
  readonly settingsOfRole: SettingsOfRole
  readonly statementTimeoutMs: number
  /** The settings that nothing in the database reads; requests need not make them. */
  readonly unsent: UnsentSettings
  /** The schema and rights of a caller. */
  readonly view: (identity: Identity) => View
  /** Decides which functions can be called, in addition to the privileges of the role. */
  readonly isExposed: IsExposed
  readonly plans: PlanCache
  /** For reads: permit, cost guard, run. */
  readonly reads: Runner
  /** For writes and calls: permit and run. */
  readonly requests: Runner
}

/** The entry point, as the pipeline calls it. */
export interface Door {
  /** The name of all its routes, for logs and metrics. */
  readonly route: string
  owns(path: string): boolean
  /**
   * The caller of a request.
   * @throws {GatewayError} `UNAUTHORIZED`, also as a rejection.
   */
  identify(head: Pick<Incoming, 'headers' | 'connection'>): Identity | Promise<Identity>
  /** An identified caller with the session in which the rows of a schema are read for subscriptions. */
  subscriber(identity: Identity, schema: string): Identity
  /** The first step of a request, or its response. */
  toStep(incoming: Incoming, identity: Identity): PreparedStep | Answer
  /** Converts a large body, in several turns of the event loop; null if there is nothing to convert. */
  prepare(incoming: Incoming): Promise<void> | null
  /** The response to a request that needs no caller; null for any other request. */
  preflight(incoming: Incoming): Answer | null
  /** Adds the headers of every response. */
  finish(answer: Answer, incoming: Incoming): Answer
  /** The response to a failed request. `identity`: null if the caller is not known. */
  respondError(error: unknown, identity: Identity | null, incoming: Incoming): Answer
}

/** A step with its caller and runner. */
export interface PreparedStep {
  readonly step: RequestStep
  readonly context: RequestContext
  readonly runner: Runner
}

/** Creates the entry point. */
export function createDoor(parts: DoorParts): Door {
  const { config, limits } = parts
  const { prefix } = config
  const roleOf = createRoles(config)
  const callers = new WeakMap<Identity, DatabaseCaller>()
  const sessions = new Sessions(config, parts.settingsOfRole, parts.unsent, parts.statementTimeoutMs)
  const hoisted = new HoistedSettings(config.hoistedTxSettings)
  const statements = new Statements(parts.plans, parts.searchLanguage)
  const bindLimits = { maxRows: smaller(config.maxRows, limits.maxResultRows), maxInValues: limits.maxInValues }
  const reading = {
    ...{ statements, ...bindLimits, binder: new LevelBinder(bindLimits) },
    exactUpTo: config.maxRows === 0 ? 0 : bindLimits.maxRows,
    aggregatesEnabled: config.aggregatesEnabled,
    isExposed: parts.isExposed,
  }
  // Separate binders, because the ranges of reads, calls and writes of one query string differ.
  const calling = { ...reading, binder: new LevelBinder(bindLimits) }
  const writing = { ...limits, ...reading, binder: new LevelBinder(bindLimits), safeUpdates: config.safeUpdates }
  const parameterRules = { ...limits, legacyTargetNames: config.legacyTargetNames }
  const describing = {
    ...{ config, isExposed: parts.isExposed, documents: new RootDocuments(), publicUrl: parts.publicUrl },
  }
  const timings = config.serverTiming ? new Timings(parts.now) : null
  const headerRules = {
    allowsAnyOrigin: parts.allowsAnyOrigin,
    // The gateway adds this header itself.
    traceHeader: config.traceHeader?.toLowerCase() === 'x-request-id' ? null : config.traceHeader,
  }
  const preferenceRules = { canOverrideTx: config.txEnd.endsWith('-allow-override') }
  const preferencesOf = keptByText(header => parsePreferences(header, preferenceRules))

  function known(identity: Identity): Identity {
    const caller = roleOf(identity)
    // A request with a body is identified twice, and most tokens are sent again.
    if (!callers.has(caller.identity)) callers.set(caller.identity, caller)
    return caller.identity
  }

  function callerOf(identity: Identity): DatabaseCaller {
    const caller = callers.get(identity)
    if (caller === undefined) throw new Error('a caller of this door must be identified by it')
    return caller
  }

  const heads = new Heads<RequestHead>(head => ({
    resource: resourceOf(head.path, prefix),
    schema: schemaOf(head, config.schemas),
    preferences: preferencesOf(headerOf(head.headers, 'prefer') ?? ''),
    ...{ settings: null, query: null },
  }))
  const namesSchema = config.schemas.length > 1

  function read(incoming: Incoming): RawDoorRequest {
    const head = heads.of(incoming)
    const { resource, schema, preferences } = head
    const hasArguments = resource.kind !== 'table' && incoming.method !== 'POST'
    const parameters = parseQueryParameters(incoming.query, hasArguments, parameterRules, head)
    return { incoming, head, resource, schema, namesSchema, preferences, parameters }
  }

  function toStep(incoming: Incoming, identity: Identity): PreparedStep | Answer {
    const caller = callerOf(identity)
    const request = timings === null ? read(incoming) : timings.measure(incoming, 'parse', () => read(incoming))
    const prepare = () => answerRequest(request, caller)
    if (timings === null) return prepare()
    // Finding the methods of a resource needs no plan.
    const asked = incoming.method === 'OPTIONS' ? prepare() : timings.measure(incoming, 'plan', prepare)
    return 'status' in asked ? asked : { ...asked, step: timings.step(incoming, asked.step) }
  }

  function answerRequest(request: RawDoorRequest, caller: DatabaseCaller): PreparedStep | Answer {
    const { incoming } = request
    const reply: SessionReply = { headers: null, status: null }
    const identity = sessions.of(caller, incoming, request.head, request.schema, request.preferences, reply)
    // The rights of the caller are kept by the object that its requests share.
    const context: RequestContext = { incoming, identity, view: parts.view(caller.identity) }
    const ofCall = (of: DatabaseFunction): RequestContext => {
      const session = identity.session && hoisted.add(identity.session, of, request.preferences.timeoutMs)
      return session === undefined || session === identity.session
        ? context
        : { ...context, identity: { ...identity, session } }
    }
    const { resource } = request
    if (incoming.method === 'OPTIONS') return respondOptions(request, context.view)
    if (resource.kind === 'root') {
      if (incoming.method !== 'GET' && incoming.method !== 'HEAD') throw unsupportedMethod(incoming.method)
      if (config.rootSpec === null) {
        const step = readRoot(withType(request, rootType(incoming)), context, reply, describing)
        return { step, context, runner: parts.requests }
      }
      const { step, of } = callFunction(...rootCall(request, config.rootSpec), context, reply, calling)
      return { step, context: ofCall(of), runner: parts.requests }
    }
    const { planEnabled } = config
    const planned = ({ step, asked }: Asked, runner: Runner, within = context): PreparedStep => {
      const { plan } = asked.mediaType
      if (plan === undefined) return { step, context: within, runner }
      return { step: planStep(step, asked, plan, within, reply), context: within, runner: parts.reads }
    }
    if (resource.kind === 'function') {
      const negotiate: Negotiate = of =>
        negotiated(request, rulesOfResult(of, request.parameters, context.view, planEnabled))
      const called = callFunction(negotiate, request, resource.name, context, reply, calling)
      return planned(called, parts.requests, ofCall(called.of))
    }
    switch (incoming.method) {
      case 'GET':
      case 'HEAD': {
        const table = tableIn(request.schema, resource.name, context.view)
        const asked = negotiated(request, rulesOfRows(table, request.parameters, context.view, planEnabled))
        return planned({ step: readTableStep(asked, resource.name, context, reply, reading), asked }, parts.reads)
      }
      case 'POST':
      case 'PATCH':
      case 'PUT':
      case 'DELETE': {
        const table = tableIn(request.schema, resource.name, context.view)
        const asked = negotiated(request, rulesOfRows(table, request.parameters, context.view, planEnabled))
        const step = writeTable(asked, resource.name, context, reply, writing)
        return 'status' in step ? step : planned({ step, asked }, parts.requests)
      }
      default:
        throw unsupportedMethod(incoming.method)
    }
  }

  function finish(answer: Answer, incoming: Incoming, of: 'result' | 'error' = 'result'): Answer {
    const complete = withCommonHeaders(answer, incoming, headerRules)
    return timings === null ? complete : timings.printed(incoming, complete, of)
  }

  function withMetadata(answer: Answer, incoming: Incoming): Answer {
    const { 'WWW-Authenticate': challenge } = answer.headers
    if (parts.resource === null || answer.status !== 401 || challenge === undefined) return answer
    const url = parts.resource.metadataUrl(incoming)
    return { ...answer, headers: { ...answer.headers, 'WWW-Authenticate': withMetadataUrl(challenge, url) } }
  }

  return {
    route: `${prefix}/`,
    owns: path => path === prefix || path.startsWith(`${prefix}/`),
    identify(head) {
      const { headers, connection } = head
      const authenticate = () => parts.authenticate(headers, connection)
      const identity = timings === null ? authenticate() : timings.measure(head, 'jwt', authenticate)
      return identity instanceof Promise ? identity.then(known) : known(identity)
    },
    subscriber: (identity, schema) => withSubscriberSession(callerOf(identity), schema, config, parts.settingsOfRole),
    toStep,
    prepare: incoming => convertLargeBody(incoming, limits.maxBatchRows || Number.POSITIVE_INFINITY),
    preflight: incoming => (parts.allowsAnyOrigin ? respondPreflight(incoming) : null),
    finish: (answer, incoming) => finish(answer, incoming),
    respondError(error, identity, incoming) {
      const answer = respondError(error, {
        verbosity: config.errorVerbosity,
        isAuthenticated: identity !== null && identity.role !== config.anonRole,
        view: identity === null ? null : parts.view(identity),
      })
      return finish(withMetadata(answer, incoming), incoming, 'error')
    },
  }
}

/** A function at the root returns one value, which has the media type of the document. */
function rootType({ headers }: Incoming): ResponseMediaType {
  return { form: 'array', stripsNulls: false, contentType: negotiateRoot(headerOf(headers, 'accept')).contentType }
}

function withType(request: RawDoorRequest, mediaType: ResponseMediaType): DoorRequest {
  return { ...request, mediaType }
}

/** A step and the request that it answers. */
interface Asked {
  readonly step: RequestStep
  readonly asked: DoorRequest
}

/** The request that calls the function named by the configuration, as `name` or `schema.name`. */
function rootCall(request: RawDoorRequest, name: string): readonly [Negotiate, RawDoorRequest, string] {
  const dot = name.indexOf('.')
  const called = dot < 0 ? request : { ...request, schema: name.slice(0, dot) }
  return [() => withType(called, rootType(request.incoming)), called, name.slice(dot + 1)]
}

/** The smaller of two limits, of which 0 means none. */
function smaller(a: number, b: number): number {
  if (a === 0 || b === 0) return a + b
  return Math.min(a, b)
}

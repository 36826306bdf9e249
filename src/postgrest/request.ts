/** Parses a request: its resource, schema, preferences and media type. */
import type { Incoming } from '../exchange.ts'
import { headerOf } from '../rest/header.ts'
import { decodePercent } from '../rest/parameters/query-string.ts'
import { invalidPath, unknownSchema } from './errors.ts'
import type { Head } from './heads.ts'
import { type MediaRules, negotiateMediaType, type ResponseMediaType } from './media-types.ts'
import type { PostgrestPreferences } from './preferences.ts'
import type { LegacyName, QueryParameters, QuerySlot } from './query-parameters.ts'
import type { SettingsSlot } from './session.ts'

/** The resource that a path names. */
export type Resource =
  | { readonly kind: 'root' }
  | { readonly kind: 'table'; readonly name: string }
  | { readonly kind: 'function'; readonly name: string }

/**
 * The head of a request, parsed, without the media type. The last settings and query are kept with it,
 * because mostly the same request follows.
 */
export interface RequestHead extends SettingsSlot, QuerySlot {
  readonly resource: Resource
  readonly schema: string
  readonly preferences: PostgrestPreferences
}

/** A parsed request. No name in it has been looked up. */
export interface DoorRequest {
  readonly incoming: Incoming
  readonly head: RequestHead
  readonly resource: Resource
  readonly schema: string
  /** True if the response names the schema, because a client can choose one. */
  readonly namesSchema: boolean
  readonly preferences: PostgrestPreferences
  readonly mediaType: ResponseMediaType
  readonly parameters: QueryParameters
}

/** A request whose media type depends on a resource that has not been looked up yet. */
export type RawDoorRequest = Omit<DoorRequest, 'mediaType'>

/**
 * Chooses the media type of the response.
 * @throws {PostgrestError} `PGRST107` if none is acceptable.
 */
export function negotiated(request: RawDoorRequest, rules: MediaRules): DoorRequest {
  const { incoming, head, resource, schema, namesSchema, preferences, parameters } = request
  const mediaType = negotiateMediaType(headerOf(incoming.headers, 'accept'), rules)
  return { incoming, head, resource, schema, namesSchema, preferences, parameters, mediaType }
}

/**
 * The resource of a path below the prefix.
 * @throws {PostgrestError} `PGRST125` for any other path.
 */
export function resourceOf(path: string, prefix: string): Resource {
  const below = path.slice(prefix.length + 1)
  if (below === '') return { kind: 'root' }
  const slash = below.indexOf('/')
  if (slash < 0) return { kind: 'table', name: decodePercent(below, 'path') }
  const second = below.slice(slash + 1)
  if (below.slice(0, slash) !== 'rpc' || second === '' || second.includes('/')) throw invalidPath()
  return { kind: 'function', name: decodePercent(second, 'path') }
}

/** Methods whose body belongs to the schema that `Content-Profile` names. */
const WRITES: ReadonlySet<string> = new Set(['POST', 'PATCH', 'PUT', 'DELETE'])

/**
 * The schema of a request: the one that its profile header names, or the first.
 * @throws {PostgrestError} `PGRST106` for a schema that is not served.
 */
export function schemaOf(incoming: Head, schemas: readonly string[]): string {
  const name = WRITES.has(incoming.method) ? 'content-profile' : 'accept-profile'
  const profile = headerOf(incoming.headers, name)
  if (profile === undefined) return schemas[0] ?? ''
  // Node reads header bytes as Latin-1.
  const schema = Buffer.from(profile, 'latin1').toString('utf8')
  if (schemas.includes(schema)) return schema
  throw unknownSchema(schema, schemas)
}

/** The headers of a response that is being built. */
type OpenHeaders = Record<string, string>

/** Adds the headers of a body: its type, and its schema if clients can choose one. */
export function addType(headers: OpenHeaders, { mediaType, namesSchema, schema }: DoorRequest): void {
  headers['Content-Type'] = mediaType.contentType
  if (namesSchema) headers['Content-Profile'] = Buffer.from(schema).toString('latin1')
}

/** Adds `Warning` (RFC 7234, 5.5) for parameters that name aliased relations by their own name. */
export function addWarning(headers: OpenHeaders, { parameters }: Pick<DoorRequest, 'parameters'>): void {
  const { legacyNames } = parameters.shared
  if (legacyNames.length > 0) headers.Warning = printWarning(legacyNames)
}

function printWarning(legacyNames: readonly LegacyName[]): string {
  const renamed = legacyNames.map(({ name, alias }) => `\`${printable(name)}\` to \`${printable(alias)}\``)
  const text =
    'Embedded resource was referenced by relation name even though it has an alias. This is deprecated and will ' +
    `stop working in a future release. Update ${renamed.join(', ')} in query string filters, orders or limits.`
  return `299 PostgREST "${text}"`
}

/** A name within quotation marks in a header. */
function printable(name: string): string {
  return /^[\w.-]+$/.test(name) ? name : encodeURIComponent(name)
}

/** The `Range` header, which has a meaning for GET only (RFC 9110, 14.2). */
export function rangeHeaderOf({ method, headers }: Incoming): string | undefined {
  return method === 'GET' ? headerOf(headers, 'range') : undefined
}

/** Answers requests for the root: the OpenAPI document of the schema, for the role of the request. */
import { LRUCache } from 'lru-cache'
import { isKnown } from '../../access/rights.ts'
import type { Catalog, DatabaseFunction, Table } from '../../catalog/model.ts'
import { privilegesOf } from '../../compile/privileges.ts'
import type { PostgrestConfig } from '../../config/config.ts'
import type { Answer, Incoming } from '../../exchange.ts'
import type { RequestStep } from '../../rest/steps.ts'
import { VERSION } from '../../version.ts'
import { rootDisabled } from '../errors.ts'
import { acceptable } from '../media-types.ts'
import { printApplied } from '../preferences.ts'
import { relationshipsOf } from '../relationships.ts'
import { addType, type DoorRequest } from '../request.ts'
import { withReply } from '../respond.ts'
import type { IsExposed } from '../rpc/resolve.ts'
import type { SessionReply } from '../session.ts'
import type { Caller } from '../statements.ts'
import { type Described, type DocumentAddress, describeRoot } from './openapi-2.ts'
import { toOpenApi3 } from './openapi-3.ts'

/** The settings of the root. */
export type RootConfig = Pick<
  PostgrestConfig,
  'openapiMode' | 'openapiSecurityActive' | 'openapiServerProxyUri' | 'extraSearchPath' | 'prefix'
>

/** The dependencies of the root. */
export interface RootParts {
  readonly config: RootConfig
  readonly isExposed: IsExposed
  readonly documents: RootDocuments
  /** The public address of the gateway, without a path; null if it is not configured. */
  readonly publicUrl: string | null
}

/** A form of the document. */
interface RootForm {
  readonly version: 2 | 3
  readonly contentType: string
}

const OPENAPI_2: RootForm = { version: 2, contentType: 'application/openapi+json; charset=utf-8' }

const FORMS: ReadonlyMap<string, RootForm> = new Map<string, RootForm>([
  ['application/openapi+json', OPENAPI_2],
  ['*/*', OPENAPI_2],
  ['application/*', OPENAPI_2],
  ['application/json', { version: 2, contentType: 'application/json; charset=utf-8' }],
  ['application/vnd.oai.openapi+json', { version: 3, contentType: 'application/vnd.oai.openapi+json; charset=utf-8' }],
])

/**
 * The form that `Accept` asks for; OpenAPI 2.0 by default.
 * @throws {PostgrestError} `PGRST107` for any other media type.
 */
export function negotiateRoot(accept: string | undefined): RootForm {
  return acceptable(accept, ({ name }) => FORMS.get(name) ?? null) ?? OPENAPI_2
}

/** Limit on the cached documents of one catalog, which differ by form, schema and privileges. */
const DOCUMENTS_MAX = 16

/** The documents made for a catalog, by what they depend on. */
export class RootDocuments {
  readonly #made = new WeakMap<Catalog, LRUCache<string, Buffer>>()

  /** The document of this key; made on the first request. */
  of(catalog: Catalog, key: string, make: () => Buffer): Buffer {
    const known = this.#made.get(catalog) ?? new LRUCache<string, Buffer>({ max: DOCUMENTS_MAX })
    this.#made.set(catalog, known)
    const found = known.get(key)
    if (found !== undefined) return found
    const made = make()
    known.set(key, made)
    return made
  }
}

/**
 * The step that answers a read of the root.
 * @throws {PostgrestError} `PGRST126` if the document is disabled.
 */
export function readRoot(request: DoorRequest, caller: Caller, reply: SessionReply, parts: RootParts): RequestStep {
  const { openapiMode } = parts.config
  if (openapiMode === 'disabled') throw rootDisabled()
  const { incoming, schema } = request
  const form = negotiateRoot(incoming.headers.accept)
  const { catalog, rights } = caller.view
  const tables = [...catalog.tables.values()].filter(table => table.schema === schema && isKnown(table, rights))
  const functions = [...catalog.functions.values()]
    .flat()
    .filter(of => of.schema === schema && parts.isExposed(of) && isDescribed(of))
  const oids = { tables: tables.map(({ oid }) => oid), functions: functions.map(({ oid }) => oid) }
  return {
    runs: 'call',
    parts: [privilegesOf({ schema, ...oids })],
    how: { access: 'read only', format: 'text' },
    failed(error) {
      throw error
    },
    respond({ rows }) {
      const [tableList, functionList, comment] = (rows[0] ?? []).map(cell => cell?.toString() ?? null)
      const ignores = openapiMode === 'ignore-privileges'
      const visible = {
        tables: ignores ? oids.tables : oidsOf(tableList ?? null),
        functions: ignores ? oids.functions : oidsOf(functionList ?? null),
      }
      const address = addressOf(incoming, parts)
      const key = JSON.stringify([schema, form.version, visible, comment, address])
      const body = parts.documents.of(catalog, key, () => {
        const described = describe(visible, { tables, functions }, catalog)
        return printed({ ...described, comment: comment ?? null, address, ...shared(parts.config, schema) }, form)
      })
      return withReply(answer(request, form, body), reply)
    },
  }
}

/** Excludes functions with several inputs of which one has no name, which cannot be called. */
function isDescribed({ inputs }: DatabaseFunction): boolean {
  return inputs.every(({ name }, index) => name !== null || (index === 0 && inputs.length === 1))
}

function shared({ openapiSecurityActive, extraSearchPath }: RootConfig, schema: string) {
  return { version: VERSION, securityActive: openapiSecurityActive, searchPath: [schema, ...extraSearchPath] }
}

interface Visible {
  readonly tables: readonly number[]
  readonly functions: readonly number[]
}

function describe(
  visible: Visible,
  all: { readonly tables: readonly Table[]; readonly functions: readonly DatabaseFunction[] },
  catalog: Catalog,
): Pick<Described, 'tables' | 'functions' | 'relationships'> {
  const tables = new Set(visible.tables)
  const functions = new Set(visible.functions)
  // A path has one entry: the first overload of a name.
  const called = all.functions.filter(({ oid }) => functions.has(oid))
  const byName = new Map(called.toReversed().map(of => [of.name, of]))
  return {
    tables: all.tables.filter(({ oid }) => tables.has(oid)),
    functions: [...byName.values()].toReversed(),
    relationships: table => relationshipsOf(table, catalog).filter(({ to }) => to.schema === table.schema),
  }
}

function printed(described: Described, { version }: RootForm): Buffer {
  const document = describeRoot(described)
  return Buffer.from(JSON.stringify(version === 2 ? document : toOpenApi3(document)))
}

function oidsOf(list: string | null): readonly number[] {
  const parsed: unknown = list === null ? [] : JSON.parse(list)
  return Array.isArray(parsed) ? parsed.map(Number) : []
}

/** A host with a port, as OpenAPI 2.0 accepts it. */
const HOST = /^[^{}/ :\\]+(?::\d+)?$/

/** The configured address, or the one that the request was sent to. */
function addressOf({ headers }: Incoming, { config, publicUrl }: RootParts): DocumentAddress {
  const { openapiServerProxyUri: proxy, prefix } = config
  const url = proxy ?? (publicUrl === null ? null : `${publicUrl.replace(/\/$/, '')}${prefix}`)
  if (url === null) {
    const host = headers.host !== undefined && HOST.test(headers.host) ? headers.host : 'localhost'
    return { scheme: 'http', host, path: prefix }
  }
  const { protocol, hostname, port, pathname } = new URL(url)
  const scheme = protocol === 'https:' ? 'https' : 'http'
  return { scheme, host: `${hostname}:${port || (scheme === 'https' ? '443' : '80')}`, path: pathname }
}

function answer(request: DoorRequest, { contentType }: RootForm, body: Buffer): Answer {
  const headers: Record<string, string> = {}
  addType(headers, { ...request, mediaType: { ...request.mediaType, contentType } })
  const applied = printApplied(request.preferences, [])
  if (applied !== null) headers['Preference-Applied'] = applied
  return { status: 200, headers, body: request.incoming.method === 'HEAD' ? null : body }
}

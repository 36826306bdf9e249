/** The document of `GET /api/_openapi` (docs/guides/openapi.md): everything that one caller can ask of this gateway, from the live catalogue. */
import type { View } from '../access/rights.ts'
import type { FunctionList } from '../rest/rpc/function-list.ts'
import { callName } from '../rest/rpc/names.ts'
import { isOffered } from '../rest/rpc/offered.ts'
import { createSharedFilters } from './filters.ts'
import { functionPart } from './functions.ts'
import { type GatewayOptions, gatewayPart } from './gateway-routes.ts'
import { HEADERS } from './headers.ts'
import type { Part } from './model.ts'
import type { PageLimits } from './parameters.ts'
import { printObject, printParts } from './print.ts'
import type { ReadOptions } from './reads.ts'
import { callerSecurity, SECURITY_SCHEMES } from './security.ts'
import { canRead, seenTables } from './seen.ts'
import { tablePart } from './table.ts'

/** Settings are named as in the configuration. */
export interface DocumentOptions extends ReadOptions, GatewayOptions, PageLimits {
  /** Of the gateway. */
  readonly version: string
  readonly requireAuth: boolean
  readonly rpcRequireSchemaQualified: boolean
  /** The functions that may be called; null: all of them. */
  readonly allowed: FunctionList | null
}

/** JSON. The same for callers with the same rights; it names nothing that they may not see. */
export function openApiDocument(view: View, options: DocumentOptions): Buffer {
  const { tags, paths, schemas, parameters, responses } = printParts(partsOf(view, options))
  const document = printObject([
    ['openapi', '"3.0.3"'],
    ['info', JSON.stringify({ title: 'Data gateway', version: options.version, description: DESCRIPTION })],
    ['servers', '[{"url":"/"}]'],
    ['tags', tags],
    ['security', JSON.stringify(callerSecurity(options.requireAuth))],
    ['paths', paths],
    [
      'components',
      printObject([
        ['schemas', schemas],
        ['parameters', parameters],
        ['responses', responses],
        ['headers', JSON.stringify(HEADERS)],
        ['securitySchemes', JSON.stringify(SECURITY_SCHEMES)],
      ]),
    ],
  ])
  return Buffer.concat(document)
}

/** One after the other, so that each can be forgotten when it has been printed. */
function* partsOf(view: View, options: DocumentOptions): Generator<Part> {
  const filters = createSharedFilters()
  const tables = seenTables(view, filters)
  for (const seen of tables.values()) yield tablePart(seen, tables, options)
  for (const all of view.catalog.functions.values()) {
    const overloads = all.filter(of => isOffered(of, view, options))
    const [first] = overloads
    if (first === undefined) continue
    yield functionPart(callName(first, { qualified: options.rpcRequireSchemaQualified }), overloads, { view, tables })
  }
  const readable = [...tables.values()].find(canRead)
  yield gatewayPart(options, readable?.table ?? null, filters.parameters())
}

const DESCRIPTION = `The tables of a PostgreSQL database as a REST API.

- Rows are JSON as PostgreSQL writes it. Numbers keep all their digits: an \`int64\` and a \`number\` without a format can have more than a double-precision number holds.
- Every error is \`{"error": {code, message, status, request_id, details?, hint?}}\`.
- Every response has the headers \`X-Request-Id\`, the name of the request in the log, and \`X-Response-Time\`, in milliseconds. A request can bring an \`X-Request-Id\` of its own: 1 to 128 of \`A-Za-z0-9._-\`.
- \`GET\` is possible as \`HEAD\` as well.
- What the document lists for \`select\`, \`sort\` and \`expand\` are the plain names. The notation goes further: aliases, paths into JSON (\`meta->>theme\`), related rows of related rows (\`nested:items.product\`).`

/**
 * The document of `GET /api/_openapi` (docs/guides/openapi.md): everything that one caller may request from
 * this gateway, from the current catalog.
 */
import type { View } from '../access/rights.ts'
import { isDocumented } from '../rest/rpc/documented.ts'
import type { FunctionList } from '../rest/rpc/function-list.ts'
import { callName } from '../rest/rpc/names.ts'
import { createSharedFilters } from './filters.ts'
import { functionPart } from './functions.ts'
import { type GatewayRoutesOptions, gatewayPart } from './gateway-routes.ts'
import { HEADERS } from './headers.ts'
import type { DocumentPart } from './model.ts'
import type { PageLimits } from './parameters.ts'
import { printObject, printParts } from './print.ts'
import type { ReadOptions } from './reads.ts'
import { callerSecurity, SECURITY_SCHEMES } from './security.ts'
import { tablePart } from './table.ts'
import { visibleTables } from './visible-tables.ts'

/** Options, named as in the configuration. */
export interface DocumentOptions extends ReadOptions, GatewayRoutesOptions, PageLimits {
  /** The version of the gateway. */
  readonly version: string
  readonly requireAuth: boolean
  readonly title: string
  /** Markdown before the description of the conventions; null for none. */
  readonly description: string | null
  readonly rpcRequireSchemaQualified: boolean
  /** The functions that may be called; null allows all. */
  readonly allowed: FunctionList | null
}

/**
 * Builds the document as JSON. It is the same for callers with the same rights, and names nothing that they
 * may not see.
 */
export function openApiDocument(view: View, options: DocumentOptions): Buffer {
  const { tags, paths, schemas, parameters, responses } = printParts(partsOf(view, options))
  const document = printObject([
    ['openapi', '"3.0.3"'],
    ['info', JSON.stringify({ title: options.title, version: options.version, description: descriptionOf(options) })],
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

/** The parts one after the other, so that each can be released after it has been printed. */
function* partsOf(view: View, options: DocumentOptions): Generator<DocumentPart> {
  const filters = createSharedFilters()
  const tables = visibleTables(view, filters)
  for (const seen of tables.values()) yield tablePart(seen, tables, options)
  for (const all of view.catalog.functions.values()) {
    const overloads = all.filter(of => isDocumented(of, view, options))
    const [first] = overloads
    if (first === undefined) continue
    yield functionPart(callName(first, { qualified: options.rpcRequireSchemaQualified }), overloads, { view, tables })
  }
  yield gatewayPart(options, tables, filters.parameters())
}

function descriptionOf({ description }: Pick<DocumentOptions, 'description'>): string {
  return description === null ? CONVENTIONS : `${description}\n\n${CONVENTIONS}`
}

const CONVENTIONS = `The tables of a PostgreSQL database as a REST API.

- Rows are JSON as PostgreSQL prints it. Numbers keep all digits: an \`int64\` and a \`number\` without a format \
can exceed double precision.
- Every error is \`{"error": {code, message, status, request_id, details?, hint?}}\`.
- Every response has the headers \`X-Request-Id\`, the id of the request in the log, and \`X-Response-Time\`, in \
milliseconds. A request can send its own \`X-Request-Id\`: 1 to 128 of \`A-Za-z0-9._-\`.
- \`HEAD\` is accepted wherever \`GET\` is.
- For \`select\`, \`sort\` and \`expand\`, the document lists plain names only. The syntax also allows aliases, \
paths into JSON (\`meta->>theme\`), and nested relations (\`nested:items.product\`).
- \`expand=nested:items(line,amount)\` returns these columns of the related rows. \`items.amount=gte.10\`, \
\`items.sort=-line\`, \`items.limit=5\` and \`items.offset=5\` choose them, also as members of \`filters\`.
- Several rows are written together, or none of them.
- A PATCH can add to a number, \`{"stock": {"$inc": -1}}\`, or change parts of values, as \
\`application/merge-patch+json\` or \`application/json-patch+json\`.
- A POST of \`text/csv\` or \`application/x-ndjson\` imports rows.
- Reads that send the \`X-Svc-LSN\` of a write see it.`

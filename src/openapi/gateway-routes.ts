/**
 * Routes that belong to no table or function (docs/reference/rest-api.md#routes): queries, documents, health
 * and metrics.
 */

import type { Table } from '../catalog/model.ts'
import { formatDotted } from '../language/format/format-name.ts'
import { CONTRACTS_DOCUMENT, SCHEMA_DOCUMENT } from './documents.ts'
import { ERROR_RESPONSE } from './errors.ts'
import { headersWith } from './headers.ts'
import {
  type DocumentPart,
  GATEWAY_TAG,
  type PathItem,
  parameterRef,
  type ResponseObject,
  responseRef,
  type SchemaObject,
  schemaRef,
} from './model.ts'
import { distinctTexts, type PageLimits, sharedParameters } from './parameters.ts'
import { COUNT, envelope, jsonResponse, noContent } from './responses.ts'
import { ADMIN_SECURITY, NO_SECURITY } from './security.ts'
import { ANY_ROW, SHARED_SCHEMAS } from './shared-schemas.ts'
import { canCreate, canRead, type VisibleTables } from './visible-tables.ts'

/** Options of these routes. */
export interface GatewayRoutesOptions extends PageLimits {
  /** True if `/metrics` and `/health/internal` require the admin token. */
  readonly adminGuard: boolean
}

/**
 * The part with these routes and the components that all parts refer to. `filters`: the parameters that
 * tables refer to.
 */
export function gatewayPart(
  options: GatewayRoutesOptions,
  tables: VisibleTables,
  filters: DocumentPart['parameters'],
): DocumentPart {
  const { adminGuard } = options
  const seen = [...tables.values()]
  const first = seen.find(canRead)?.table ?? null
  const imported = seen.filter(one => canCreate(one) && one.has('list')).map(({ table }) => table.resource)
  return {
    tag: { name: GATEWAY_TAG, description: 'Queries in the query language, documents about the schema, and metrics.' },
    paths: [
      ['/api/_query', queryPath(first === null ? {} : { example: exampleQuery(first) })],
      ['/api/_batch', batchPath(first === null ? {} : { example: { operations: [{ query: exampleQuery(first) }] } })],
      ['/api/_inspect', INSPECT],
      ...(imported.length === 0 ? [] : [['/api/{table}', importPath(distinctTexts(imported))] as const]),
      ['/api/_imports/{id}', IMPORT_STATUS],
      ['/api/_schema', document('schema', 'The tables, columns, keys and relations that you can see', SCHEMA_DOCUMENT)],
      ['/api/_rpc/contracts', document('contracts', 'The functions that you can call', CONTRACTS_DOCUMENT)],
      ['/api/_openapi', document('openapi', 'This document, limited to what you can see', ANY_ROW)],
      ['/health', HEALTH],
      ['/health/internal', internal('healthInternal', 'State of the gateway', 'application/json', adminGuard)],
      ['/metrics', internal('metrics', 'Metrics in the text format of Prometheus', 'text/plain', adminGuard)],
    ],
    schemas: SHARED_SCHEMAS,
    parameters: [...sharedParameters(options), ...filters],
    responses: [
      ['error', ERROR_RESPONSE],
      ['aggregate', AGGREGATE],
      ['plan', PLAN],
      ['done', DONE],
      ['imported', IMPORTED],
      ['unchanged', NOT_MODIFIED],
    ],
  }
}

function exampleQuery({ schema, name, resource }: Table): string {
  return `get ${formatDotted(resource === name ? [name] : [schema, name])} limit 1`
}

function queryPath(text: Pick<SchemaObject, 'example'>): PathItem {
  return {
    post: {
      operationId: 'query',
      tags: [GATEWAY_TAG],
      summary: 'Run a query',
      parameters: ['most', 'once'].map(parameterRef),
      requestBody: {
        required: true,
        content: {
          'application/json': {
            schema: {
              type: 'object',
              properties: {
                query: { type: 'string', ...text },
                parameters: {
                  description: 'An array for `$1`, `$2` and so on, an object for `:name`.',
                  anyOf: [{ type: 'array', items: {}, maxItems: 1_000 }, { type: 'object' }],
                },
              },
              required: ['query'],
              additionalProperties: false,
            },
          },
          'text/plain': { schema: { type: 'string', ...text } },
        },
      },
      responses: {
        200: {
          description: 'The rows; for `export` as NDJSON, one per line.',
          headers: headersWith('X-Cache'),
          content: {
            'application/json': {
              schema: envelope({ data: { type: 'array', items: schemaRef('svc-row') }, count: COUNT }),
            },
            'application/x-ndjson': { schema: schemaRef('svc-row') },
          },
        },
      },
    },
  }
}

/** docs/reference/batches.md */
function batchPath(example: Pick<SchemaObject, 'example'>): PathItem {
  return {
    post: {
      operationId: 'batch',
      tags: [GATEWAY_TAG],
      summary: 'Run several requests',
      description: 'In one transaction, unless `atomic` is false.',
      parameters: [parameterRef('once')],
      requestBody: {
        required: true,
        content: {
          'application/json': {
            schema: {
              type: 'object',
              properties: {
                operations: {
                  type: 'array',
                  minItems: 1,
                  items: {
                    type: 'object',
                    description: 'A request with `method` and `path`, or a query with `query`.',
                    properties: {
                      id: { type: 'string' },
                      method: { type: 'string' },
                      path: { type: 'string' },
                      headers: { type: 'object', additionalProperties: { type: 'string' } },
                      body: {},
                      query: { type: 'string' },
                      parameters: { anyOf: [{ type: 'array', items: {} }, { type: 'object' }] },
                    },
                    additionalProperties: false,
                  },
                },
                atomic: { type: 'boolean', default: true },
                isolation: { type: 'string', enum: ['read committed', 'repeatable read', 'serializable'] },
              },
              required: ['operations'],
              additionalProperties: false,
              ...example,
            },
          },
        },
      },
      responses: {
        200: jsonResponse(
          'The result of each operation, in their order.',
          envelope({
            results: {
              type: 'array',
              items: envelope({
                id: { type: 'string', nullable: true },
                status: { type: 'integer' },
                headers: { type: 'object', additionalProperties: { type: 'string' } },
                body: {},
              }),
            },
          }),
          headersWith(),
        ),
      },
    },
  }
}

/** docs/reference/import.md#progress */
const IMPORT_STATUS: PathItem = {
  get: {
    operationId: 'importStatus',
    tags: [GATEWAY_TAG],
    summary: 'Progress of an import by its id',
    description: 'Of an import of the same caller, by the `X-Request-Id` that was sent with it.',
    parameters: [{ name: 'id', in: 'path', required: true, schema: { type: 'string' } }],
    responses: {
      200: jsonResponse(
        'The progress.',
        envelope({
          data: envelope({
            id: { type: 'string' },
            table: { type: 'string' },
            state: { type: 'string', enum: ['running', 'done', 'failed'] },
            bytes: { type: 'integer', description: 'How much of the body has been read.' },
            total_bytes: { type: 'integer', nullable: true, description: 'Null for a body sent in chunks.' },
            count: { type: 'integer', description: 'Rows written; committed when the state is `done`.' },
            errors: { type: 'integer', description: 'Rows left out.' },
            error: {
              ...envelope({ code: { type: 'string' }, status: { type: 'integer' }, message: { type: 'string' } }),
              nullable: true,
            },
          }),
        }),
        headersWith(),
      ),
    },
  },
}

/** docs/reference/inspect.md */
const INSPECT: PathItem = {
  post: {
    operationId: 'inspect',
    tags: [GATEWAY_TAG],
    summary: 'Explain a request',
    description: 'Needs the scope `svc:explain`. Reports what each stage does with the request. Changes nothing.',
    requestBody: {
      required: true,
      content: {
        'application/json': {
          schema: {
            type: 'object',
            properties: {
              request: { type: 'string', description: 'Such as `GET /api/{table}?limit=5`.' },
              body: {},
              content_type: { type: 'string' },
              run: { type: 'boolean', description: 'Execute a write and roll it back.' },
              query: { type: 'string' },
              parameters: { anyOf: [{ type: 'array', items: {} }, { type: 'object' }] },
            },
            additionalProperties: false,
          },
        },
      },
    },
    responses: {
      200: jsonResponse(
        'What each stage did.',
        envelope({
          request: ANY_ROW,
          failure: { type: 'object', nullable: true, additionalProperties: true },
          rows: { type: 'integer', nullable: true },
          changes: { type: 'string', nullable: true },
          caller: ANY_ROW,
          tables: { type: 'array', items: ANY_ROW },
          tree: { type: 'string', nullable: true },
          statements: { type: 'array', items: ANY_ROW },
          cache: { type: 'string', nullable: true, enum: ['HIT', 'MISS', null] },
          timings: { type: 'array', items: ANY_ROW },
          row: { type: 'object', nullable: true, additionalProperties: true },
        }),
        headersWith(),
      ),
    },
  },
}

/**
 * One operation for all tables (docs/reference/import.md). Its body is a text, and its response has no rows:
 * as an alternative in each creation, it would weaken the types of every generated client.
 */
function importPath(tables: readonly string[]): PathItem {
  return {
    post: {
      operationId: 'import_rows',
      tags: [GATEWAY_TAG],
      summary: 'Import rows of any number into a table',
      parameters: [
        { name: 'table', in: 'path', required: true, schema: { type: 'string', enum: tables } },
        { name: 'Prefer', in: 'header', schema: { type: 'string', enum: ['on-error=continue'] } },
        ...['X-Upsert', 'X-On-Conflict'].map(parameterRef),
      ],
      requestBody: {
        required: true,
        content: {
          'text/csv': { schema: { type: 'string' } },
          'application/x-ndjson': { schema: { type: 'string' } },
        },
      },
      responses: { 200: responseRef('imported'), 201: responseRef('imported') },
    },
  }
}

const IMPORTED: ResponseObject = jsonResponse(
  'All rows were imported (201), or those that did not fail, or existing rows were updated (200).',
  schemaRef('svc-import-report'),
  headersWith('Preference-Applied'),
)

function document(operationId: string, summary: string, schema: SchemaObject): PathItem {
  return {
    get: {
      operationId,
      tags: [GATEWAY_TAG],
      summary,
      responses: { 200: jsonResponse('The document.', schema, headersWith()) },
    },
  }
}

const HEALTH: PathItem = {
  get: {
    operationId: 'health',
    tags: [GATEWAY_TAG],
    summary: 'Whether gateway and database respond',
    security: NO_SECURITY,
    responses: {
      200: jsonResponse(
        'Both respond.',
        envelope({ status: { type: 'string', enum: ['ok'] }, version: { type: 'string' } }),
        headersWith(),
      ),
      503: jsonResponse(
        'The database does not respond, or the gateway is shutting down.',
        envelope({ status: { type: 'string', enum: ['unavailable'] } }),
        headersWith('Retry-After'),
      ),
    },
  },
}

function internal(operationId: string, summary: string, type: string, adminGuard: boolean): PathItem {
  const schema: SchemaObject = type === 'application/json' ? ANY_ROW : { type: 'string' }
  return {
    get: {
      operationId,
      tags: [GATEWAY_TAG],
      summary,
      security: adminGuard ? ADMIN_SECURITY : NO_SECURITY,
      responses: {
        200: { description: 'The figures.', headers: headersWith(), content: { [type]: { schema } } },
      },
    },
  }
}

/** Results by the name of the function; null without values. */
const FIGURES: SchemaObject['properties'] = {
  count: { type: 'integer', format: 'int64' },
  sum: {},
  avg: {},
  min: {},
  max: {},
}

const AGGREGATE: ResponseObject = jsonResponse(
  'The value under the name of `fn`; with `group_by` one per group, beside the columns of the group.',
  envelope({
    data: {
      anyOf: [
        { type: 'object', properties: FIGURES },
        { type: 'array', items: { type: 'object', properties: FIGURES, additionalProperties: true } },
      ],
    },
  }),
  headersWith('X-Cache'),
)

/** The response of PATCH and DELETE without rows. */
const DONE = noContent(
  'Done, without a body: `Prefer: return=minimal` was sent, or there is nothing to ' +
    'return, as after a deletion without `returning`.',
)

/** The response to `If-None-Match` with the current tag. */
const NOT_MODIFIED: ResponseObject = {
  description: 'Nothing has changed since the response with the `ETag` of `If-None-Match`. There is no body.',
  headers: headersWith('ETag', 'X-Cache'),
}

const PLAN: ResponseObject = jsonResponse(
  'The statement, its parameters, and what EXPLAIN ANALYZE shows.',
  envelope({
    query: { type: 'string' },
    parameters: { type: 'array', items: { type: 'string', nullable: true } },
    plan: { type: 'array', items: { type: 'object', additionalProperties: true } },
  }),
  headersWith('X-Cache'),
)

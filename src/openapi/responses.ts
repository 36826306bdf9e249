/** Responses with data as schemas: envelopes around rows. */
import { type HeaderName, headersWith } from './headers.ts'
import {
  type Header,
  type MediaTypeObject,
  type ReferenceObject,
  type ResponseObject,
  type SchemaObject,
  type SchemaOrReference,
  schemaRef,
} from './model.ts'
import type { RowExample } from './rows.ts'

const JSON_TYPE = 'application/json'
const NDJSON_TYPE = 'application/x-ndjson'
const CSV_TYPE = 'text/csv'

/** The schema of `count`, the number of rows in a response. Without a description, because it is repeated. */
export const COUNT: SchemaObject = { type: 'integer', minimum: 0 }

/** An object schema with these properties. */
export function envelope(properties: SchemaObject['properties'], required?: readonly string[]): SchemaObject {
  return { type: 'object', properties: properties ?? {}, required: required ?? Object.keys(properties ?? {}) }
}

/** A JSON response. */
export function jsonResponse(
  description: string,
  schema: SchemaOrReference,
  headers: Readonly<Record<string, Header | ReferenceObject>>,
  example?: unknown,
): ResponseObject {
  return { description, headers, content: { [JSON_TYPE]: mediaType(schema, example) } }
}

function mediaType(schema: SchemaOrReference, example: unknown): MediaTypeObject {
  return { schema, ...(example === undefined ? {} : { example }) }
}

/** A row in a response: its schema, the schemas of its envelopes, and an example. */
export interface ResponseRow {
  readonly row: ReferenceObject
  /** `{data: row}`. */
  readonly one: ReferenceObject
  readonly example: RowExample | null
}

/** A row returned by a write. */
export interface WrittenRow extends ResponseRow {
  /** `{data: [row…], count}`. */
  readonly many: ReferenceObject
  /** `{data: row | null | [row…], count?}`: what a creation answers. */
  readonly created: ReferenceObject
}

export function noContent(description: string): ResponseObject {
  return { description, headers: headersWith('Preference-Applied', 'ETag') }
}

/** `{data: [row…], count, limit, offset, next_cursor, total?}`. */
export function pageSchema(row: ReferenceObject): SchemaObject {
  return { allOf: [schemaRef('svc-page'), envelope({ data: { type: 'array', items: row } })] }
}

/** The response with a page. As NDJSON and CSV, each line is a row. `limit` is the default limit. */
export function pageResponse(page: ReferenceObject, { row, example }: ResponseRow, limit: number): ResponseObject {
  return {
    description: 'A page of rows.',
    headers: headersWith('X-Cache', 'Preference-Applied', 'ETag', 'X-Next-Cursor', 'X-Total-Count'),
    content: {
      [JSON_TYPE]: mediaType(page, examplePage(example, limit)),
      [NDJSON_TYPE]: mediaType(row, example ?? undefined),
      [CSV_TYPE]: mediaType({ type: 'string' }, undefined),
    },
  }
}

function examplePage(row: RowExample | null, limit: number): unknown {
  return row === null ? undefined : { data: [row], count: 1, limit, offset: 0, next_cursor: null }
}

/** The response with one row. */
export function rowResponse(description: string, of: ResponseRow, ...headers: readonly HeaderName[]): ResponseObject {
  return jsonResponse(description, of.one, headersWith(...headers), exampleEnvelope(of))
}

/** The response with several rows. */
export function rowsResponse(description: string, of: WrittenRow, ...headers: readonly HeaderName[]): ResponseObject {
  const example = of.example === null ? undefined : { data: [of.example], count: 1 }
  return jsonResponse(description, of.many, headersWith(...headers), example)
}

/** The example of `{data: row}`. */
export function exampleEnvelope({ example }: ResponseRow): unknown {
  return example === null ? undefined : { data: example }
}

/** The schema of an envelope with one row. */
export function rowEnvelope(row: SchemaOrReference): SchemaObject {
  return envelope({ data: row })
}

/** The schema of an envelope with several rows. */
export function rowsEnvelope(row: SchemaOrReference): SchemaObject {
  return envelope({ data: { type: 'array', items: row }, count: COUNT })
}

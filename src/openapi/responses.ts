/** Responses with data as schemas: envelopes around rows. */
import { type HeaderName, headersWith } from './headers.ts'
import {
  type Header,
  type MediaType,
  type Reference,
  type Response,
  type Schema,
  type SchemaOrReference,
  schemaRef,
} from './model.ts'
import type { Example } from './rows.ts'

const JSON_TYPE = 'application/json'
const NDJSON_TYPE = 'application/x-ndjson'

export const COUNT: Schema = { type: 'integer', description: 'Number of rows in this response.', minimum: 0 }

/** An object schema with these properties. */
export function envelope(properties: Schema['properties'], required?: readonly string[]): Schema {
  return { type: 'object', properties: properties ?? {}, required: required ?? Object.keys(properties ?? {}) }
}

/** A JSON response. */
export function jsonResponse(
  description: string,
  schema: SchemaOrReference,
  headers: Readonly<Record<string, Header | Reference>>,
  example?: unknown,
): Response {
  return { description, headers, content: { [JSON_TYPE]: mediaType(schema, example) } }
}

function mediaType(schema: SchemaOrReference, example: unknown): MediaType {
  return { schema, ...(example === undefined ? {} : { example }) }
}

/** A row in a response: its schema, the schemas of its envelopes, and an example. */
export interface ResponseRow {
  readonly row: Reference
  /** `{data: row}`. */
  readonly one: Reference
  readonly example: Example | null
}

/** A row returned by a write. */
export interface WrittenRow extends ResponseRow {
  /** `{data: [row…], count}`. */
  readonly many: Reference
  /** `{data: row | null}` or the same as `many`: what a creation answers. */
  readonly created: Reference
}

export function noContent(description: string): Response {
  return { description, headers: headersWith('Preference-Applied') }
}

/** `{data: [row…], count, limit, offset, next_cursor, total?}`. */
export function pageSchema(row: Reference): Schema {
  return { allOf: [schemaRef('svc-page'), envelope({ data: { type: 'array', items: row } })] }
}

/** The response with a page. As NDJSON, each line is a row. `limit` is the default limit. */
export function pageResponse(page: Reference, { row, example }: ResponseRow, limit: number): Response {
  return {
    description: 'A page of rows. With `select`, rows contain only those columns; with `distinct`, only that one.',
    headers: headersWith('X-Cache', 'Preference-Applied'),
    content: {
      [JSON_TYPE]: mediaType(page, examplePage(example, limit)),
      [NDJSON_TYPE]: mediaType(row, example ?? undefined),
    },
  }
}

function examplePage(row: Example | null, limit: number): unknown {
  return row === null ? undefined : { data: [row], count: 1, limit, offset: 0, next_cursor: null }
}

export function rowResponse(description: string, of: ResponseRow, ...headers: readonly HeaderName[]): Response {
  return jsonResponse(description, of.one, headersWith(...headers), exampleEnvelope(of))
}

export function rowsResponse(description: string, of: WrittenRow, ...headers: readonly HeaderName[]): Response {
  const example = of.example === null ? undefined : { data: [of.example], count: 1 }
  return jsonResponse(description, of.many, headersWith(...headers), example)
}

/** The example of `{data: row}`. */
export function exampleEnvelope({ example }: ResponseRow): unknown {
  return example === null ? undefined : { data: example }
}

export function rowEnvelope(row: SchemaOrReference): Schema {
  return envelope({ data: row })
}

export function rowsEnvelope(row: SchemaOrReference): Schema {
  return envelope({ data: { type: 'array', items: row }, count: COUNT })
}

/** Answers with data, as schemas: envelopes around rows (decisions 3, 4). */
import { type HeaderName, headersWith } from './headers.ts'
import type { Header, Reference, Response, Schema, SchemaOrReference } from './model.ts'

const JSON_TYPE = 'application/json'
const NDJSON_TYPE = 'application/x-ndjson'

export const COUNT: Schema = { type: 'integer', description: 'Rows in this answer.', minimum: 0 }

export function envelope(properties: Schema['properties'], required?: readonly string[]): Schema {
  return { type: 'object', properties: properties ?? {}, required: required ?? Object.keys(properties ?? {}) }
}

export function answer(
  description: string,
  schema: SchemaOrReference,
  headers: Readonly<Record<string, Header | Reference>>,
): Response {
  return { description, headers, content: { [JSON_TYPE]: { schema } } }
}

export function noContent(description: string): Response {
  return { description, headers: headersWith('Preference-Applied') }
}

/** Of every page. */
const PLACE: Schema['properties'] = {
  count: COUNT,
  limit: { type: 'integer', format: 'int64', description: 'The limit in force.', minimum: 0 },
  offset: { type: 'integer', format: 'int64', minimum: 0 },
  next_cursor: { type: 'string', nullable: true, description: 'For the next page; null on the last.' },
  total: { type: 'integer', format: 'int64', description: 'Rows on all pages, if `count=exact` was preferred.' },
}

/** `{data: [row…], count, limit, offset, next_cursor, total?}`; as NDJSON each line is a row. */
export function pageResponse(row: SchemaOrReference): Response {
  const page = envelope({ data: { type: 'array', items: row }, ...PLACE }, [
    'data',
    'count',
    'limit',
    'offset',
    'next_cursor',
  ])
  return {
    description: 'A page of rows. With `select` they have those columns only, with `distinct` that one.',
    headers: headersWith('X-Cache'),
    content: { [JSON_TYPE]: { schema: page }, [NDJSON_TYPE]: { schema: row } },
  }
}

export function rowResponse(description: string, row: SchemaOrReference, ...headers: readonly HeaderName[]): Response {
  return answer(description, rowEnvelope(row), headersWith(...headers))
}

export function rowsResponse(description: string, row: SchemaOrReference, ...headers: readonly HeaderName[]): Response {
  return answer(description, rowsEnvelope(row), headersWith(...headers))
}

export function rowEnvelope(row: SchemaOrReference): Schema {
  return envelope({ data: row })
}

export function rowsEnvelope(row: SchemaOrReference): Schema {
  return envelope({ data: { type: 'array', items: row }, count: COUNT })
}

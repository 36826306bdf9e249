/** Answers with data, as schemas: envelopes around rows (decisions 3, 4). */
import { type HeaderName, headersWith } from './headers.ts'
import type { Header, MediaType, Reference, Response, Schema, SchemaOrReference } from './model.ts'
import type { Example } from './rows.ts'

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
  example?: unknown,
): Response {
  return { description, headers, content: { [JSON_TYPE]: mediaType(schema, example) } }
}

function mediaType(schema: SchemaOrReference, example: unknown): MediaType {
  return { schema, ...(example === undefined ? {} : { example }) }
}

/** A row as it is answered. */
export interface AnsweredRow {
  readonly row: Reference
  readonly example: Example | null
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

/** `{data: [row…], count, limit, offset, next_cursor, total?}`; as NDJSON each line is a row. `limit`: the one in force by default. */
export function pageResponse({ row, example }: AnsweredRow, limit: number): Response {
  const page = envelope({ data: { type: 'array', items: row }, ...PLACE }, [
    'data',
    'count',
    'limit',
    'offset',
    'next_cursor',
  ])
  return {
    description: 'A page of rows. With `select` they have those columns only, with `distinct` that one.',
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

export function rowResponse(description: string, of: AnsweredRow, ...headers: readonly HeaderName[]): Response {
  return answer(description, rowEnvelope(of.row), headersWith(...headers), exampleEnvelope(of))
}

export function rowsResponse(description: string, of: AnsweredRow, ...headers: readonly HeaderName[]): Response {
  const example = of.example === null ? undefined : { data: [of.example], count: 1 }
  return answer(description, rowsEnvelope(of.row), headersWith(...headers), example)
}

/** Of `rowEnvelope`. */
export function exampleEnvelope({ example }: AnsweredRow): unknown {
  return example === null ? undefined : { data: example }
}

export function rowEnvelope(row: SchemaOrReference): Schema {
  return envelope({ data: row })
}

export function rowsEnvelope(row: SchemaOrReference): Schema {
  return envelope({ data: { type: 'array', items: row }, count: COUNT })
}

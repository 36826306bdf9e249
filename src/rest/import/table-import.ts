/** Parses the request of an import: `POST /api/{table}` with a body of rows (docs/reference/import.md). */
import { GatewayError } from '../../errors.ts'
import type { Incoming } from '../../exchange.ts'
import { assertUpload, mediaTypeOf } from '../body/body.ts'
import type { WrittenRequest } from '../request.ts'
import type { RequestContext } from '../steps.ts'
import { creationOf, type WriteLimits, type WriteRoute, writingOf } from '../write/write.ts'
import { CsvReader } from './csv.ts'
import { JsonLinesReader } from './ndjson.ts'

const FORMATS = { 'text/csv': 'csv', 'application/x-ndjson': 'ndjson' } as const

/** The format of the rows in a body of this type; null for a body that is not an import. */
export function importFormat(headers: Incoming['headers']): 'csv' | 'ndjson' | null {
  const { type } = mediaTypeOf(headers)
  return FORMATS[type as keyof typeof FORMATS] ?? null
}

/** A permitted import, ready to read its body. */
export interface TableImport {
  readonly format: 'csv' | 'ndjson'
  /** The resource name of the table. */
  readonly name: string
  /** True if rows that fail are skipped. */
  readonly continues: boolean
  readonly upserts: boolean
  /** Creates the reader of the rows. */
  reader(): CsvReader | JsonLinesReader
}

/**
 * Checks an import before its body is read.
 * @throws {GatewayError} for a request that is not permitted or invalid.
 */
export function openImport(
  written: WrittenRequest,
  route: WriteRoute,
  asker: RequestContext,
  limits: WriteLimits,
): TableImport {
  const format = importFormat(asker.incoming.headers) ?? 'csv'
  assertUpload(asker.incoming)
  const writing = writingOf(written, route, asker, limits)
  const { returning, returned } = writing.wanted
  if (returning !== undefined || returned === 'representation') {
    const what = returning === undefined ? 'Prefer: return=representation' : 'returning'
    throw new GatewayError('PARSE_ERROR', `an import does not return rows; leave out ${what}`)
  }
  const upsert = creationOf(writing, route)
  const silent = { ...writing, wanted: { returning: undefined, returned: 'minimal' } } as const
  return {
    format,
    name: writing.table.resource,
    continues: written.headers.prefer.continues,
    upserts: upsert !== null,
    reader: () => (format === 'csv' ? new CsvReader(silent, upsert) : new JsonLinesReader(silent, upsert)),
  }
}

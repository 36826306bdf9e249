/**
 * Media types that the database defines: a function that returns a domain with the name of a media type, and
 * an aggregate that makes one such value of rows.
 */
import { resultTable } from '../access/columns.ts'
import { readableColumns, type View } from '../access/rights.ts'
import type { Catalog, DatabaseFunction, DataType, MediaHandler, Table } from '../catalog/model.ts'
import type { Folding } from '../compile/folding.ts'
import type { ResultRow } from '../run/run.ts'
import { notImplemented } from './errors.ts'
import { ANY_TYPE, type CustomForm, type MediaRules, plainRules, type ResponseMediaType } from './media-types.ts'
import type { QueryParameters } from './query-parameters.ts'

/** The media types of rows of a table, or of rows without one. */
export function rulesOfRows(
  table: Table | null,
  parameters: QueryParameters,
  { catalog, rights }: View,
  planEnabled: boolean,
): MediaRules {
  if (catalog.mediaHandlers.length === 0) return plainRules(planEnabled)
  // An aggregate over a row type takes whole rows only.
  const isWhole =
    table !== null && isPlainSelect(parameters.root) && readableColumns(table, rights).length === table.columns.length
  const own = isWhole ? handlersFor(catalog, table.oid) : NO_HANDLERS
  const general = handlersFor(catalog, null)
  return {
    planEnabled,
    custom: name => formOf(own.get(ANY_TYPE) ?? own.get(name) ?? (name === ANY_TYPE ? undefined : general.get(name))),
  }
}

function formOf(handler: MediaHandler | undefined): CustomForm | null {
  return handler === undefined ? null : { mediaType: handler.mediaType, handler }
}

/** The media types of the result of a function. */
export function rulesOfResult(
  of: DatabaseFunction,
  parameters: QueryParameters,
  view: View,
  planEnabled: boolean,
): MediaRules {
  const type = of.returnsSet ? null : mediaTypeOfValue(of)
  if (type !== null) {
    const custom = (name: string) => (type === ANY_TYPE || type === name ? { mediaType: type } : null)
    return { planEnabled, custom }
  }
  return rulesOfRows(resultTable(of, view.catalog), parameters, view, planEnabled)
}

const MEDIA_TYPE = /^(?:[a-z0-9.-]+\/[a-z0-9.+-]+|\*\/\*)$/i

function mediaTypeOfValue({ result }: DatabaseFunction): string | null {
  if (result.kind !== 'scalar') return null
  const { kind, name } = result.column.type
  return kind === 'domain' && MEDIA_TYPE.test(name) ? name.toLowerCase() : null
}

/** Reports whether a function returns bytes as the value of a response. */
export function returnsBytes({ result }: DatabaseFunction): boolean {
  let type: DataType | null = result.kind === 'scalar' ? result.column.type : null
  while (type?.kind === 'domain') type = type.of
  return type?.name === 'bytea'
}

function isPlainSelect({ fields, embedded }: QueryParameters['root']): boolean {
  const [only] = fields
  if (fields.length !== 1 || only === undefined || embedded.length > 0) return false
  return only.field.name === '*' && only.field.steps.length === 0 && only.aggregate === null
}

type Handlers = ReadonlyMap<string, MediaHandler>

const NO_HANDLERS: Handlers = new Map()

const known = new WeakMap<Catalog, ReadonlyMap<number | null, Handlers>>()

/** The aggregates for the rows of a relation, or for rows of any type, by media type. */
function handlersFor(catalog: Catalog, relation: number | null): Handlers {
  const found = known.get(catalog) ?? grouped(catalog.mediaHandlers)
  known.set(catalog, found)
  return found.get(relation) ?? NO_HANDLERS
}

function grouped(handlers: readonly MediaHandler[]): ReadonlyMap<number | null, Handlers> {
  const all = new Map<number | null, Map<string, MediaHandler>>()
  // An aggregate of the database takes precedence over GeoJSON features.
  const [features, aggregates] = [handlers.filter(isFeatures), handlers.filter(handler => !isFeatures(handler))]
  for (const handler of [...aggregates, ...features]) {
    const own = all.get(handler.relation) ?? new Map<string, MediaHandler>()
    if (!own.has(handler.mediaType)) own.set(handler.mediaType, handler)
    all.set(handler.relation, own)
  }
  return all
}

function isFeatures({ makes }: MediaHandler): boolean {
  return makes === 'features'
}

/** The form of rows that an aggregate makes one value of; null for any other media type. */
export function foldingOf({ handler }: ResponseMediaType, table: Table | null): Folding | null {
  if (handler === undefined) return null
  const { schema, name, makes, isBinary, relation } = handler
  if (relation !== null && table === null) throw notImplemented('Rows without a table')
  const row = relation === null || table === null ? null : { schema: table.schema, name: table.name }
  return { function: { schema, name }, makes, row, isBinary }
}

/** The value that an aggregate made of all rows, and their number. NULL is an empty value. */
export function foldedValue([row]: readonly ResultRow[], isBinary: boolean): { body: Buffer; count: number } {
  const value = row?.[0] ?? EMPTY
  const body = isBinary ? Buffer.from(value.toString('latin1'), 'hex') : value
  return { body, count: Number(row?.[1]?.toString() ?? 0) }
}

const EMPTY = Buffer.alloc(0)

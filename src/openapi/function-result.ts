/** The response of a call (docs/reference/functions.md#results), and the parameters that modify it. */
import { readableResult } from '../access/columns.ts'
import type { Column, DatabaseFunction } from '../catalog/model.ts'
import { columnSchema } from './columns.ts'
import { filterParameterObjects } from './filters.ts'
import { type HeaderName, headersWith } from './headers.ts'
import { distinctBy, identifierOf } from './keys.ts'
import {
  NULL,
  type ParameterObject,
  type ParameterOrReference,
  parameterRef,
  type ResponseObject,
  type SchemaObject,
  type SchemaOrReference,
  schemaRef,
} from './model.ts'
import { listParameter, listParameterOf, sortsOf, writtenColumnNames } from './parameters.ts'
import { COUNT, envelope, jsonResponse } from './responses.ts'
import type { DocumentView } from './visible-tables.ts'

function hasRows({ returnsSet, result }: DatabaseFunction): boolean {
  return returnsSet && result.kind !== 'void'
}

/**
 * Filters, sort, select, limit and offset of functions that return a set. `taken`: names used by arguments.
 */
export function resultParameters(
  overloads: readonly DatabaseFunction[],
  taken: ReadonlySet<string>,
  view: DocumentView,
): readonly ParameterOrReference[] {
  const sets = overloads.filter(hasRows)
  if (sets.length === 0) return []
  const columns = sets.flatMap(of => readableResult(of, view.view))
  // Only PostgreSQL knows the type of a polymorphic result.
  const typed = columns.filter(({ type }) => type.kind !== 'pseudo')
  const byName = [...new Map(typed.map(column => [column.name, column])).values()]
  const distinct = distinctBy(byName, ({ name }) => name)
  const own: readonly ParameterObject[] = [
    ...list('select', 'The columns; all by default.', writtenColumnNames(distinct)),
    ...(typed.length === columns.length
      ? list('sort', 'Sort columns; `-` before one: descending.', sortsOf(distinct))
      : []),
    ...(typed.length === columns.length ? filterParameterObjects(distinct) : []),
  ]
  return [
    ...own.filter(({ name }) => !taken.has(identifierOf(name))),
    ...(taken.has('limit') ? [] : [parameterRef('limit-all')]),
    ...(taken.has('offset') ? [] : [parameterRef('offset')]),
    ...(typed.length === columns.length ? [parameterRef('filters')] : []),
  ]
}

function list(name: string, description: string, values: readonly string[]): readonly ParameterObject[] {
  return values.length === 0 ? [] : [listParameter(name, description, listParameterOf(values))]
}

/** The response of one function or of any of its overloads, as text or in PostgreSQL's binary format. */
export function resultResponse(
  overloads: readonly DatabaseFunction[],
  view: DocumentView,
  ...headers: readonly HeaderName[]
): ResponseObject {
  const texts = overloads.map(of => textEnvelope(of, view))
  return jsonResponse(
    'The result of the function.',
    { anyOf: [...texts, schemaRef('svc-binary')] },
    headersWith(...headers),
  )
}

function textEnvelope(of: DatabaseFunction, view: DocumentView): SchemaObject {
  const value = resultSchema(of, view)
  return envelope({
    data: hasRows(of) ? { type: 'array', items: value } : value,
    function: { type: 'string' },
    result_format: { type: 'string', enum: ['text'] },
    ...(hasRows(of) ? { count: COUNT } : {}),
  })
}

/** The schema of the result, or of each row. */
function resultSchema(of: DatabaseFunction, view: DocumentView): SchemaOrReference {
  const { result } = of
  if (result.kind === 'void' || result.kind === 'record') return NOTHING
  if (result.kind === 'scalar') return columnSchema({ ...result.column, nullable: true })
  const table = result.table === null ? undefined : view.tables.get(result.table)
  const row = table === undefined ? rowOf(readableResult(of, view.view)) : schemaRef(table.key)
  return result.named && !of.returnsSet ? { anyOf: [row, NULL] } : row
}

/** Null. An enumeration with nothing else would not compile in generated code. */
const NOTHING: SchemaObject = { type: 'object', nullable: true, maxProperties: 0, description: 'Null.' }

function rowOf(all: readonly Column[]): SchemaObject {
  const columns = distinctBy(all, ({ name }) => name)
  return {
    type: 'object',
    // Defines properties without calling setters, because `__proto__` may be a column.
    properties: Object.fromEntries(columns.map(column => [column.name, columnSchema(column)])),
    ...(columns.length === 0 ? {} : { required: columns.map(({ name }) => name) }),
  }
}

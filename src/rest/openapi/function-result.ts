/** What a call answers, and what a request may say about it (decisions 5). */
import { readableResult } from '../../access/columns.ts'
import type { View } from '../../access/rights.ts'
import type { Column, DatabaseFunction } from '../../catalog/model.ts'
import { columnSchema } from './columns.ts'
import { filterParameters } from './filters.ts'
import { type HeaderName, headersWith } from './headers.ts'
import { keyOf } from './keys.ts'
import {
  type Parameter,
  type ParameterOrReference,
  parameterRef,
  type Response,
  type Schema,
  type SchemaOrReference,
  schemaRef,
} from './model.ts'
import { listParameter, namesOf, sortsOf } from './parameters.ts'
import { answer, COUNT, envelope } from './responses.ts'

function hasRows({ returnsSet, result }: DatabaseFunction): boolean {
  return returnsSet && result.kind !== 'void'
}

/** Filters, sort, select, limit and offset, of functions that return a set. `taken`: names that mean an argument. */
export function resultParameters(
  overloads: readonly DatabaseFunction[],
  taken: ReadonlySet<string>,
  view: View,
): readonly ParameterOrReference[] {
  const sets = overloads.filter(hasRows)
  if (sets.length === 0) return []
  const columns = sets.flatMap(of => readableResult(of, view))
  // The type of a polymorphic result is PostgreSQL's to know.
  const typed = columns.filter(({ type }) => type.kind !== 'pseudo')
  const distinct = [...new Map(typed.map(column => [column.name, column])).values()]
  const own: readonly Parameter[] = [
    ...list('select', 'The columns to answer; all by default.', namesOf(distinct)),
    ...(typed.length === columns.length ? list('sort', '`-` in front is descending.', sortsOf(distinct)) : []),
    ...(typed.length === columns.length ? filterParameters(distinct) : []),
  ]
  return [
    ...own.filter(({ name }) => !taken.has(name)),
    ...(taken.has('limit') ? [] : [parameterRef('limit-all')]),
    ...(taken.has('offset') ? [] : [parameterRef('offset')]),
    ...(typed.length === columns.length ? [parameterRef('filters')] : []),
  ]
}

function list(name: string, description: string, values: readonly string[]): readonly Parameter[] {
  return values.length === 0 ? [] : [listParameter(name, description, values)]
}

/** Of one function or of any of its overloads, as text or in PostgreSQL's binary format. */
export function resultResponse(
  overloads: readonly DatabaseFunction[],
  view: View,
  ...headers: readonly HeaderName[]
): Response {
  const texts = overloads.map(of => textEnvelope(of, view))
  return answer('What the function answers.', { anyOf: [...texts, schemaRef('svc-binary')] }, headersWith(...headers))
}

function textEnvelope(of: DatabaseFunction, view: View): Schema {
  const value = resultSchema(of, view)
  return envelope({
    data: hasRows(of) ? { type: 'array', items: value } : value,
    function: { type: 'string' },
    result_format: { type: 'string', enum: ['text'] },
    ...(hasRows(of) ? { count: COUNT } : {}),
  })
}

/** The value of a call, or of each row. */
function resultSchema(of: DatabaseFunction, view: View): SchemaOrReference {
  const { result } = of
  if (result.kind === 'void' || result.kind === 'record') return schemaRef('svc-null')
  if (result.kind === 'scalar') return columnSchema({ ...result.column, nullable: true })
  const row = result.table === null ? rowOf(readableResult(of, view)) : schemaRef(keyOf(result.table))
  return result.named && !of.returnsSet ? { anyOf: [row, schemaRef('svc-null')] } : row
}

function rowOf(columns: readonly Column[]): Schema {
  return {
    type: 'object',
    // Defines, and so never calls a setter: `__proto__` is a column like any other.
    properties: Object.fromEntries(columns.map(column => [column.name, columnSchema(column)])),
    ...(columns.length === 0 ? {} : { required: columns.map(({ name }) => name) }),
  }
}

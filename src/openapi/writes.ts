/**
 * The write operations of a table (docs/reference/writing.md): create and upsert, update and delete, of one
 * row or of those that match filters.
 */
import { PATCH_TYPES } from '../rest/body/body.ts'
import { incrementable } from './columns.ts'
import { headersWith } from './headers.ts'
import {
  type OperationObject,
  type PathItem,
  parameterRef,
  type ReferenceObject,
  type RequestBody,
  type ResponseObject,
  responseRef,
  type SchemaOrReference,
  schemaRef,
} from './model.ts'
import { idOf } from './reads.ts'
import { exampleEnvelope, jsonResponse, type WrittenRow } from './responses.ts'
import {
  canCreate,
  canDelete,
  canRead,
  canUpdate,
  changeableRelations,
  creatableRelations,
  type VisibleTable,
  type VisibleTables,
} from './visible-tables.ts'

/** The paths of a table's writes. `written`: what a write returns; null if nothing. */
export function writePaths(
  seen: VisibleTable,
  written: WrittenRow | null,
  tables: VisibleTables,
): readonly (readonly [string, PathItem])[] {
  const { table, path, columns, has } = seen
  const byId = has('one') && table.primaryKey.length > 0
  // Rows are selected by readable columns.
  const byFilter = has('list') && columns.length > 0
  const whole = [
    ...(canCreate(seen) && has('list') ? [{ post: create(seen, written, tables) }] : []),
    ...(canUpdate(seen) && byFilter ? [{ patch: many(seen, written, 'update') }] : []),
    ...(canDelete(seen) && byFilter ? [{ delete: many(seen, written, 'delete') }] : []),
  ]
  const single = [
    ...(canUpdate(seen) && byId ? [{ patch: one(seen, written, 'update') }] : []),
    ...(canDelete(seen) && byId ? [{ delete: one(seen, written, 'delete') }] : []),
  ]
  return [
    ...whole.map(item => [path, item] as const),
    ...single.map(item => [`${path}/{id}`, { ...idOf(seen), ...item }] as const),
  ]
}

const JSON_TYPE = 'application/json'

/**
 * The media type of bodies with increments, which the gateway reads as any JSON. The schema of new values
 * cannot contain them: generators would make a class of every number, or merge both schemas and lose a type.
 */
const JSON_UTF8 = 'application/json; charset=utf-8'

/** A write to a table that cannot be read returns nothing, whatever the preference. */
function returningReferences({ key }: VisibleTable, written: WrittenRow | null): readonly ReferenceObject[] {
  return [...(written === null ? [] : [`rows-${key}`]), 'return'].map(parameterRef)
}

/** Written rows are read again by their primary key. */
function expandReference(seen: VisibleTable): readonly ReferenceObject[] {
  const { key, table, relations } = seen
  return canRead(seen) && relations.length > 0 && table.primaryKey.length > 0 ? [parameterRef(`expand-${key}`)] : []
}

function create(seen: VisibleTable, written: WrittenRow | null, tables: VisibleTables): OperationObject {
  const { table, key } = seen
  const row = schemaRef(`create-${key}`)
  const graph = schemaRef(`related-${key}`)
  const related = creatableRelations(seen, tables).length > 0 ? [graph, { type: 'array', items: graph } as const] : []
  // An upsert also updates rows.
  const upserts = canUpdate(seen)
  const upsert = upserts ? ['X-Upsert', 'X-On-Conflict'].map(parameterRef) : []
  return {
    operationId: `create-${key}`,
    tags: [seen.tag],
    summary: `Create rows of ${table.resource}`,
    parameters: [...returningReferences(seen, written), ...expandReference(seen), parameterRef('once'), ...upsert],
    requestBody: body({ anyOf: [row, { type: 'array', items: row }, ...related] }),
    responses: { 201: responseRef(`created-${key}`), 200: responseRef(`created-${key}`) },
  }
}

/** The response of a creation, for both statuses. OpenAPI cannot express an optional body. */
export function createdResponse(seen: VisibleTable, written: WrittenRow | null): ResponseObject {
  const description = [
    'Created (201),',
    canUpdate(seen) ? 'updated, or unchanged (`null`; 200).' : 'or suppressed by a trigger (`null`; 200).',
    ...(written === null ? [] : ['No body with `return=minimal`.']),
  ].join(' ')
  const headers = headersWith('Location', 'Preference-Applied', 'ETag')
  return written === null
    ? { description, headers }
    : jsonResponse(description, written.created, headers, exampleEnvelope(written))
}

const WORDS = {
  update: { one: 'Update a row', many: 'Update rows' },
  delete: { one: 'Delete a row', many: 'Delete rows' },
} as const

type WriteKind = keyof typeof WORDS

/** A soft delete keeps the rows (docs/reference/writing.md#managed-columns). */
function summaryOf({ table }: VisibleTable, change: WriteKind, count: 'one' | 'many'): string {
  const marker = table.managed?.softDelete ?? null
  const summary = `${WORDS[change][count]} of ${table.resource}`
  return change === 'delete' && marker !== null ? `${summary} by setting ${marker}` : summary
}

function one(seen: VisibleTable, written: WrittenRow | null, change: WriteKind): OperationObject {
  const { key } = seen
  const expand = change === 'update' ? expandReference(seen) : []
  return {
    operationId: `${change}-${key}`,
    tags: [seen.tag],
    summary: summaryOf(seen, change, 'one'),
    parameters: [...returningReferences(seen, written), ...expand, parameterRef('If-Match')],
    ...changesOf(seen, change, 'one'),
    responses: {
      ...(written === null ? {} : { 200: responseRef(`written-${key}`) }),
      204: responseRef('done'),
    },
  }
}

function many(seen: VisibleTable, written: WrittenRow | null, change: WriteKind): OperationObject {
  const { key, parameters } = seen
  return {
    operationId: `${change}_many-${key}`,
    tags: [seen.tag],
    summary: summaryOf(seen, change, 'many'),
    parameters: [...returningReferences(seen, written), parameterRef('most'), parameters.filters],
    ...changesOf(seen, change, 'many'),
    responses: {
      ...(written === null ? {} : { 200: responseRef(`many-${key}`) }),
      204: responseRef('done'),
    },
  }
}

/** The bodies that change rows, by media type (docs/reference/writing.md#partial-changes). */
function changesOf(seen: VisibleTable, change: WriteKind, count: 'one' | 'many'): Pick<OperationObject, 'requestBody'> {
  if (change !== 'update') return {}
  const { key } = seen
  const row = schemaRef(`update-${key}`)
  const hasRelated = count === 'one' && changeableRelations(seen).length > 0
  const increments = incrementable(seen).length > 0 ? { [JSON_UTF8]: { schema: schemaRef(`increments-${key}`) } } : {}
  const content = {
    // The first, because generators take the type of the body from it.
    [JSON_TYPE]: { schema: hasRelated ? { anyOf: [row, schemaRef(`changes-${key}`)] } : row },
    ...increments,
    [PATCH_TYPES.merge]: { schema: row },
    [PATCH_TYPES.operations]: { schema: schemaRef('svc-patch') },
  }
  return { requestBody: { required: true, content } }
}

function body(schema: SchemaOrReference): RequestBody {
  return { required: true, content: { [JSON_TYPE]: { schema } } }
}

/** The writes of a table: create and upsert, change and delete, one row or those that filters match (specification 4.1, 4.5; decisions 4). */
import { type HeaderName, headersWith } from './headers.ts'
import {
  type Operation,
  type PathItem,
  parameterRef,
  type Reference,
  type RequestBody,
  type Response,
  responseRef,
  type SchemaOrReference,
  schemaRef,
} from './model.ts'
import { type AnsweredRow, answer, exampleEnvelope, noContent, rowEnvelope, rowsEnvelope } from './responses.ts'
import { canCreate, canDelete, canUpdate, type SeenTable } from './seen.ts'

/** `written`: what a write answers; null where that is nothing. */
export function writePaths(seen: SeenTable, written: AnsweredRow | null): readonly (readonly [string, PathItem])[] {
  const { table, path, columns, has } = seen
  const byId = has('one') && table.primaryKey.length > 0
  // Rows are chosen by columns that may be read.
  const byFilter = has('list') && columns.length > 0
  const whole = [
    ...(canCreate(seen) && has('list') ? [{ post: create(seen, written) }] : []),
    ...(canUpdate(seen) && byFilter ? [{ patch: many(seen, written, 'update') }] : []),
    ...(canDelete(seen) && byFilter ? [{ delete: many(seen, written, 'delete') }] : []),
  ]
  const single = [
    ...(canUpdate(seen) && byId ? [{ patch: one(seen, written, 'update') }] : []),
    ...(canDelete(seen) && byId ? [{ delete: one(seen, written, 'delete') }] : []),
  ]
  return [...whole.map(item => [path, item] as const), ...single.map(item => [`${path}/{id}`, item] as const)]
}

const JSON_TYPE = 'application/json'

/** A write of what may not be read answers nothing, whatever is preferred. */
function returningReferences({ key }: SeenTable, written: AnsweredRow | null): readonly Reference[] {
  return [...(written === null ? [] : [`returning-${key}`]), 'prefer-return'].map(parameterRef)
}

function create(seen: SeenTable, written: AnsweredRow | null): Operation {
  const { table, key } = seen
  const row = schemaRef(`create-${key}`)
  // An upsert changes rows too.
  const upserts = canUpdate(seen)
  const upsert = upserts ? ['X-Upsert', 'X-On-Conflict'].map(parameterRef) : []
  return {
    operationId: `create-${key}`,
    tags: [table.resource],
    summary: `Create rows of ${table.resource}`,
    description: [
      'An object is one row, an array is a batch: all of its rows are created, or none.',
      ...(upserts ? ['With `X-Upsert` rows whose key is there are changed instead, or left alone.'] : []),
    ].join(' '),
    parameters: [...returningReferences(seen, written), ...upsert],
    requestBody: body({ anyOf: [row, { type: 'array', items: row }] }),
    responses: {
      201: createdResponse('Created.', written, 'Location'),
      200: createdResponse(
        upserts
          ? 'Nothing was created: rows were changed, or left alone (`null`).'
          : 'A trigger kept the row from being created.',
        written,
      ),
    },
    errors: 'write',
  }
}

function createdResponse(description: string, of: AnsweredRow | null, ...headers: readonly HeaderName[]): Response {
  const all = headersWith(...headers, 'Preference-Applied')
  if (of === null) return { description, headers: all }
  const maybe: SchemaOrReference = headers.length > 0 ? of.row : { anyOf: [of.row, schemaRef('svc-null')] }
  return answer(description, { anyOf: [rowEnvelope(maybe), rowsEnvelope(of.row)] }, all, exampleEnvelope(of))
}

const WORDS = {
  update: { one: 'Change one row', many: 'Change the rows that the filters match', kind: 'write' },
  delete: { one: 'Delete one row', many: 'Delete the rows that the filters match', kind: 'change' },
} as const

type Change = keyof typeof WORDS

function one(seen: SeenTable, written: AnsweredRow | null, change: Change): Operation {
  const { table, key } = seen
  return {
    operationId: `${change}-${key}`,
    tags: [table.resource],
    summary: `${WORDS[change].one} of ${table.resource}`,
    parameters: [parameterRef(`id-${key}`), ...returningReferences(seen, written)],
    ...changesOf(seen, change),
    responses: {
      ...(written === null ? {} : { 200: responseRef(`written-${key}`) }),
      204: noContent('Done, and nothing is answered.'),
    },
    errors: WORDS[change].kind,
  }
}

function many(seen: SeenTable, written: AnsweredRow | null, change: Change): Operation {
  const { table, key, parameters } = seen
  return {
    operationId: `${change}_many-${key}`,
    tags: [table.resource],
    summary: `${WORDS[change].many} in ${table.resource}`,
    description: 'At least one filter is needed. If they match more rows than `X-Max-Affected`, nothing is changed.',
    parameters: [...returningReferences(seen, written), parameterRef('X-Max-Affected'), parameters.filters],
    ...changesOf(seen, change),
    responses: {
      ...(written === null ? {} : { 200: responseRef(`written_many-${key}`) }),
      204: noContent('Done, and nothing is answered.'),
    },
    errors: WORDS[change].kind,
  }
}

function changesOf({ key }: SeenTable, change: Change): Pick<Operation, 'requestBody'> {
  return change === 'update' ? { requestBody: body(schemaRef(`update-${key}`)) } : {}
}

function body(schema: SchemaOrReference): RequestBody {
  return { required: true, content: { [JSON_TYPE]: { schema } } }
}

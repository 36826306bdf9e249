/**
 * The body of a PATCH (docs/reference/writing.md#change): new values and increments, a JSON Merge Patch, or a
 * JSON Patch.
 */
import { unknownTableColumn } from '../../access/refusals.ts'
import { baseOf, isJson, isNumber } from '../../access/types.ts'
import type { Table } from '../../catalog/model.ts'
import { GatewayError } from '../../errors.ts'
import { type JsonMember, type ObjectOutline, parseJsonBody, partBytes } from '../../json/json-body.ts'
import { shorten } from '../../text/shorten.ts'
import { mediaTypeOf, PATCH_TYPES, REFUSED_ITEMS_MAX, readJsonBody, readPatchBody } from '../body/body.ts'
import { RowKeys } from './nested/graph.ts'
import type { PartialChange } from './request.ts'
import { columnKeys, describeBody, refusedBody, type Writing } from './writing.ts'

/** The changes that a PATCH makes. */
export interface PartialChanges {
  /** The columns that are written, sorted. */
  readonly columns: readonly string[]
  /** The JSON that the statement receives. */
  readonly bytes: Buffer
  readonly partial: PartialChange | undefined
  /** The body that errors about its values refer to; null if its members are not columns. */
  readonly body: ObjectOutline | null
  /** True if the body has related rows; then the other properties do not apply, except `body`. */
  readonly hasRelated?: boolean
}

/**
 * Reads the body of a PATCH.
 * @throws {GatewayError} `PARSE_ERROR` for a malformed body, `UNSUPPORTED_MEDIA_TYPE` for another type.
 */
export function changesIn(writing: Writing): PartialChanges {
  switch (mediaTypeOf(writing.incoming.headers).type) {
    case PATCH_TYPES.merge:
      return mergePatchIn(writing)
    case PATCH_TYPES.operations:
      return operationsIn(writing)
    default:
      return valuesIn(writing)
  }
}

/** An object with at least one column. */
function columnsIn(body: ReturnType<typeof readJsonBody>): ObjectOutline {
  if (body.kind === 'object' && body.members.length > 0) return body
  const what = body.kind === 'object' ? 'an object without columns' : describeBody(body)
  throw refusedBody(what, 'an object with the columns to change')
}

function namesIn(body: ObjectOutline): readonly string[] {
  return body.members.map(({ key }) => key).sort()
}

// ---- values and increments ----

function valuesIn(writing: Writing): PartialChanges {
  const { incoming, table, view } = writing
  const keys = new RowKeys(table, view)
  const body = columnsIn(readJsonBody(incoming, REFUSED_ITEMS_MAX, keys))
  if (!keys.hasRelation) return valuesOf(body, table)
  return { columns: [], bytes: body.bytes, partial: undefined, body, hasRelated: true }
}

/** The changes in an object of new values and increments. */
export function valuesOf(body: ObjectOutline, table: Table): PartialChanges {
  const increments = new Map<string, Buffer>()
  for (const member of body.members) {
    const by = member.type === 'object' ? incrementIn(body, member, table) : null
    if (by !== null) increments.set(member.key, by)
  }
  const columns = namesIn(body)
  if (increments.size === 0) return { columns, bytes: body.bytes, partial: undefined, body }
  const partial = { kind: 'values', increments: [...increments.keys()].sort(), merged: [] } as const
  return { columns, bytes: withIncrements(body, increments), partial, body: null }
}

/** The number of `{"$inc": n}`; null for another object, and for a column of JSON, where it is data. */
function incrementIn(body: ObjectOutline, member: JsonMember, table: Table): Buffer | null {
  const type = table.columnByName.get(member.key)?.type
  if (type === undefined || isJson(type)) return null
  const object = parseJsonBody(partBytes(body, member), 0)
  if (object.kind !== 'object') return null
  const [only] = object.members
  if (only?.key !== '$inc' || object.members.length > 1) return null
  if (!isNumber(type)) {
    throw new GatewayError('PARSE_ERROR', `column "${member.key}" is not a number; $inc adds to numbers only`)
  }
  if (only.type !== 'number' && only.type !== 'integer') {
    throw new GatewayError('PARSE_ERROR', `$inc of column "${member.key}" takes a number, not ${only.type}`)
  }
  return partBytes(object, only)
}

function withIncrements(body: ObjectOutline, increments: ReadonlyMap<string, Buffer>): Buffer {
  const parts: Buffer[] = []
  let at = 0
  for (const member of body.members) {
    const by = increments.get(member.key)
    if (by === undefined) continue
    parts.push(body.bytes.subarray(at, member.start), by)
    at = member.end
  }
  return Buffer.concat([...parts, body.bytes.subarray(at)])
}

// ---- JSON Merge Patch ----

function mergePatchIn(writing: Writing): PartialChanges {
  const { incoming, table } = writing
  const body = columnsIn(readPatchBody(incoming, 'merge', REFUSED_ITEMS_MAX, columnKeys(writing)))
  const merged = body.members.filter(({ key, type }) => {
    const column = table.columnByName.get(key)
    return type === 'object' && column !== undefined && isJson(column.type)
  })
  const names = merged.map(({ key }) => key).sort()
  return {
    columns: namesIn(body),
    bytes: body.bytes,
    partial: names.length === 0 ? undefined : { kind: 'values', increments: [], merged: names },
    body,
  }
}

// ---- JSON Patch ----

/** Limit on the operations of a JSON Patch, each of which copies the document. */
export const PATCH_OPERATIONS_MAX = 1_000

interface Operation {
  readonly op: string
  readonly path: readonly string[]
  readonly from: readonly string[] | null
  readonly value: Buffer | null
}

function operationsIn(writing: Writing): PartialChanges {
  const { incoming, table, view } = writing
  const body = readPatchBody(incoming, 'operations', PATCH_OPERATIONS_MAX, null)
  if (body.kind !== 'array') throw refusedBody(describeBody(body), 'an array of operations')
  const operations = body.items.map((item, index) => readOperation(partBytes(body, item), index))
  const paths = operations.flatMap(({ path, from }) => (from === null ? [path] : [path, from]))
  const document = new Set(paths.map(([name = '']) => name))
  for (const name of document) {
    const column = table.columnByName.get(name)
    if (column === undefined) throw unknownTableColumn(name, table, view.rights)
    if (['array', 'composite'].includes(baseOf(column.type).kind)) {
      throw new GatewayError('PARSE_ERROR', `column "${name}" is ${column.typeText}, which JSON Patch cannot change`)
    }
  }
  if (operations.length === 0) throw refusedBody('a patch without operations', 'at least one operation')
  const changed = new Set(operations.flatMap(writtenBy))
  // A patch of tests only writes what it has tested, unchanged.
  const columns = changed.size === 0 ? document : changed
  return {
    columns: [...columns].sort(),
    bytes: Buffer.concat(listed(operations)),
    partial: { kind: 'operations', document: [...document].sort() },
    body: null,
  }
}

function writtenBy({ op, path: [name = ''], from }: Operation): readonly string[] {
  if (op === 'test') return []
  return op === 'move' ? [name, from?.[0] ?? ''] : [name]
}

/** The operations of a JSON Patch, each with the member that it needs beside `path`. */
export const PATCH_OPERATIONS: ReadonlyMap<string, 'value' | 'from' | null> = new Map([
  ...(['add', 'replace', 'test'] as const).map(name => [name, 'value'] as const),
  ...(['move', 'copy'] as const).map(name => [name, 'from'] as const),
  ['remove', null] as const,
])

/** Members that an operation does not use are ignored, as RFC 6902 requires. */
function readOperation(bytes: Buffer, index: number): Operation {
  const object = parseJsonBody(bytes, REFUSED_ITEMS_MAX)
  if (object.kind !== 'object') throw invalid(index, 'is not an object')
  const members = new Map(object.members.map(member => [member.key, member]))
  const text = (key: string): string => {
    const member = members.get(key)
    if (member?.type !== 'string') throw invalid(index, `needs "${key}", a string`)
    return JSON.parse(partBytes(object, member).toString())
  }
  const op = text('op')
  const needs = PATCH_OPERATIONS.get(op)
  if (needs === undefined) {
    throw invalid(index, `has the unknown op "${shorten(op)}"; use ${[...PATCH_OPERATIONS.keys()].join(', ')}`)
  }
  const value = members.get('value')
  if (needs === 'value' && value === undefined) throw invalid(index, `needs "value"`)
  const path = readPointer(text('path'), index)
  const from = needs === 'from' ? readPointer(text('from'), index) : null
  if (op === 'move' && from !== null && from.length < path.length && from.every((key, at) => key === path[at])) {
    throw invalid(index, 'moves a value into itself')
  }
  return { op, path, from, value: needs === 'value' && value !== undefined ? partBytes(object, value) : null }
}

/** A JSON Pointer (RFC 6901). The row itself cannot be replaced, so the pointer names a column at least. */
function readPointer(pointer: string, index: number): readonly string[] {
  if (!pointer.startsWith('/') || pointer === '/') {
    throw invalid(index, `has the path "${shorten(pointer)}"; it begins with a column: /column`)
  }
  if (/~(?![01])/.test(pointer) || pointer.includes('\0')) throw invalid(index, 'has a malformed path')
  const keys = pointer.slice(1).split('/')
  return keys.map(key => key.replaceAll('~1', '/').replaceAll('~0', '~'))
}

function invalid(index: number, problem: string): GatewayError {
  return new GatewayError('PARSE_ERROR', `operation ${index + 1} of the patch ${problem}`)
}

function listed(operations: readonly Operation[]): Buffer[] {
  const items = operations.flatMap(({ op, path, from, value }, index) => [
    Buffer.from(
      `${index === 0 ? '' : ','}${JSON.stringify({ op, path, ...(from === null ? {} : { from }) }).slice(0, -1)}`,
    ),
    ...(value === null ? [] : [Buffer.from(',"value":'), value]),
    Buffer.from('}'),
  ])
  return [Buffer.from('['), ...items, Buffer.from(']')]
}

/**
 * The rows of a body with related rows (docs/reference/writing.md#related-rows). Only objects that contain
 * related rows are parsed; the bytes of all others are passed on unchanged.
 */
import { unknownTableColumn } from '../../../access/refusals.ts'
import { relatedTable } from '../../../access/relations.ts'
import { isKnown, type View } from '../../../access/rights.ts'
import type { Relation, Table } from '../../../catalog/model.ts'
import { GatewayError } from '../../../errors.ts'
import {
  type JsonArray,
  type JsonMember,
  type JsonValue,
  type KnownKeys,
  type ObjectOutline,
  parseJsonBody,
  partBytes,
  partOf,
} from '../../../json/json-body.ts'
import { shorten } from '../../../text/shorten.ts'
import { relationsNamed, resolveRelation } from '../../read/relation.ts'
import { describeJsonType } from '../writing.ts'

/** Limits on a body. */
export interface GraphLimits {
  /** Limit on all rows together (`max_batch_rows`). */
  readonly maxBatchRows: number
  /** Limit on the levels below the rows of the path (`max_expand_depth`). */
  readonly maxExpandDepth: number
}

/** How a row is written. An element of `set` is created or changed, depending on what exists. */
export type RowUse = 'create' | 'update' | 'delete' | 'set'

/** One row of a body. */
export interface GraphRow {
  readonly table: Table
  /** The path of the row in the body, for errors: `order_items[1]`. Empty for the body itself. */
  readonly path: string
  /** The columns of the row in the body. */
  readonly columns: readonly string[]
  /** A JSON object of exactly these columns. */
  readonly bytes: Buffer
  /** The rows that this one refers to. */
  readonly ones: readonly ToOne[]
  /** The rows that refer to this one. */
  readonly manys: readonly ToMany[]
}

interface Related {
  /** The table of the related rows. */
  readonly table: Table
  /** The name in the body. */
  readonly name: string
  readonly path: string
  readonly relation: Relation
}

/** The row that a foreign key refers to: a new row, or the existing one with changes. */
export interface ToOne extends Related {
  readonly use: 'create' | 'update'
  readonly row: GraphRow
}

/** The rows whose foreign key refers to another. */
export interface ToMany extends Related {
  readonly lists: Readonly<Partial<Record<RowUse, RowList>>>
}

/** An array of rows in the body. */
export interface RowList {
  readonly path: string
  readonly rows: readonly GraphRow[]
}

/** Accepts the columns and relations of a table as keys, and records whether a key was a relation. */
export class RowKeys implements KnownKeys {
  readonly inItems = true
  /** True once a key was a relation. */
  hasRelation = false
  readonly #table: Table
  readonly #view: View
  readonly #path: string

  constructor(table: Table, view: View, path = '') {
    this.#table = table
    this.#view = view
    this.#path = path
  }

  has(key: string): boolean {
    if (this.#table.columnByName.has(key)) return true
    const isRelation = visibleRelations(key, this.#table, this.#view).length > 0
    this.hasRelation ||= isRelation
    return isRelation
  }

  refuse(key: string): never {
    const { relations } = this.#table
    const names = relations.filter(relation => isVisible(relation, this.#view)).map(({ name }) => name)
    throw at(this.#path, unknownTableColumn(key, this.#table, this.#view.rights, names))
  }
}

/** Adds the path to an error. */
export function at(path: string, error: GatewayError): GatewayError {
  if (path === '') return error
  const { code, message, details, hint, headers, cause, limit } = error
  return new GatewayError(code, `${path}: ${message}`, {
    details: { ...(details as object | undefined), path },
    ...{ headers, cause },
    ...(hint === undefined ? {} : { hint }),
    ...(limit === undefined ? {} : { limit }),
  })
}

function refused(path: string, message: string): GatewayError {
  return at(path, new GatewayError('PARSE_ERROR', message))
}

/** The relations that a key can mean. A table that the caller cannot see does not exist for them. */
function visibleRelations(key: string, table: Table, view: View): readonly Relation[] {
  return relationsNamed(table, nameIn(key).relation).filter(relation => isVisible(relation, view))
}

function isVisible({ table }: Relation, { catalog, rights }: View): boolean {
  return isKnown(relatedTable(catalog, table), rights)
}

/** `users!approved_by`: a relation and the key that it uses, as in `expand`. */
function nameIn(key: string): { readonly relation: string; readonly hint: string | null } {
  const mark = key.lastIndexOf('!')
  return mark <= 0 ? { relation: key, hint: null } : { relation: key.slice(0, mark), hint: key.slice(mark + 1) }
}

/** The path of a member. */
export function memberPath(path: string, name: string): string {
  return path === '' ? name : `${path}.${name}`
}

/** Reads a part of a body, and yields regularly. */
type Reading<T> = Generator<void, T>

/** Rows that are read before other requests get a turn. */
const ROWS_AT_ONCE = 200

/** Reads the rows of a body. A generator, which can be left between rows to give other requests a turn. */
export class GraphReader {
  readonly #view: View
  readonly #limits: GraphLimits
  #rows = 0

  constructor(view: View, limits: GraphLimits) {
    this.#view = view
    this.#limits = limits
  }

  /** The rows of an array in the body. */
  *items(array: JsonArray, table: Table, use: RowUse, path: string, level: number): Reading<GraphRow[]> {
    const rows: GraphRow[] = []
    let plain: readonly string[] | null = null
    for (const [index, item] of array.items.entries()) {
      const rowPath = `${path}[${index}]`
      if (item.type !== 'object') {
        throw refused(rowPath, `${describeJsonType(item.type)} is not a row; send an object with columns`)
      }
      if (item.keys !== plain && item.keys.every(key => table.columnByName.has(key))) plain = item.keys
      if (item.keys === plain) {
        const row = { table, path: rowPath, columns: item.keys, bytes: partBytes(array, item), ones: [], manys: [] }
        rows.push(this.#counted(row))
      } else {
        rows.push(yield* this.row(this.#outline(partOf(array, item), table, rowPath), table, use, rowPath, level))
      }
      if (this.#rows % ROWS_AT_ONCE === 0) yield
    }
    return rows
  }

  /** The row of an object in the body. */
  *row(body: ObjectOutline, table: Table, use: RowUse, path: string, level: number): Reading<GraphRow> {
    const columns: JsonMember[] = []
    const ones: ToOne[] = []
    const manys: ToMany[] = []
    const row = { table, path, columns: [] as readonly string[], bytes: body.bytes, ones, manys }
    this.#counted(row)
    const used = new Map<Relation, string>()
    for (const member of body.members) {
      if (table.columnByName.has(member.key)) {
        columns.push(member)
        continue
      }
      const related = this.#related(member, table, use, memberPath(path, member.key), level)
      const other = used.get(related.relation)
      if (other !== undefined) throw refused(related.path, `"${other}" is the same relation; give it once`)
      used.set(related.relation, member.key)
      const value = partOf(body, member)
      if (related.relation.cardinality === 'one') ones.push(yield* this.#one(related, value, use, level))
      else manys.push(yield* this.#many(related, value, use, level))
    }
    const names = columns.map(({ key }) => key)
    for (const { name, relation } of ones) {
      const given = relation.columns.find(column => names.includes(column))
      if (given === undefined) continue
      throw refused(memberPath(path, given), `column "${given}" is filled in from "${name}"; send one of them`)
    }
    const isWhole = columns.length === body.members.length
    return { ...row, columns: names, bytes: isWhole ? body.bytes : bytesOf(body, columns) }
  }

  #counted<T>(row: T): T {
    this.#rows += 1
    const max = this.#limits.maxBatchRows
    if (this.#rows <= max) return row
    throw new GatewayError(
      'PAYLOAD_TOO_LARGE',
      `the body has more than ${max} rows (max_batch_rows), with those of related tables; send fewer at a time`,
    )
  }

  #related(member: JsonMember, table: Table, use: RowUse, path: string, level: number): Related {
    const { relation, hint } = nameIn(member.key)
    if (use === 'delete') {
      throw refused(path, 'a row to delete has only its key; delete related rows in their own lists')
    }
    if (level > this.#limits.maxExpandDepth) {
      throw refused(
        path,
        `related rows are nested deeper than ${this.#limits.maxExpandDepth} levels (max_expand_depth)`,
      )
    }
    const found = visibleRelations(member.key, table, this.#view)
    const isMany = found.every(({ cardinality }) => cardinality === 'many')
    const isOne = found.every(({ cardinality }) => cardinality === 'one')
    const nested = isMany || (!isOne && member.type === 'array')
    const resolved = resolveRelation(table, { relation, hint, nested }, this.#view, '')
    const { junction } = resolved
    if (junction !== null) {
      const via = relatedTable(this.#view.catalog, junction.table)
      throw refused(
        path,
        `"${shorten(relation)}" is related through "${via.resource}"; send rows of "${via.resource}" with a ` +
          `"${shorten(relation)}" in each`,
      )
    }
    const target = relatedTable(this.#view.catalog, resolved.table)
    return { table: target, name: member.key, path, relation: resolved }
  }

  *#one(related: Related, value: JsonValue, use: RowUse, level: number): Reading<ToOne> {
    const { relation, path, table } = related
    if (value.type !== 'object') {
      throw refused(
        path,
        `${describeJsonType(value.type)} is not a row; send an object, or the column ${relation.columns.join(', ')}`,
      )
    }
    if (use !== 'update') {
      const row = yield* this.row(this.#outline(value, table, path), table, 'create', path, level + 1)
      return { ...related, use: 'create', row }
    }
    const [only, more] = outlineOf(value).members
    if (only === undefined || more !== undefined || (only.key !== 'create' && only.key !== 'update')) {
      throw refused(path, 'a change of the row that a foreign key refers to is {"create": {…}} or {"update": {…}}')
    }
    const part = partOf(outlineOf(value), only)
    const inner = memberPath(path, only.key)
    if (part.type !== 'object') throw refused(inner, `${describeJsonType(part.type)} is not a row; send an object`)
    const row = yield* this.row(this.#outline(part, table, inner), table, only.key, inner, level + 1)
    return { ...related, use: only.key, row }
  }

  *#many(related: Related, value: JsonValue, use: RowUse, level: number): Reading<ToMany> {
    const { path } = related
    if (use !== 'update') {
      if (value.type !== 'array')
        throw refused(path, `${describeJsonType(value.type)} is not a list; send an array of rows`)
      const inner = use === 'set' ? 'set' : 'create'
      return { ...related, lists: { [inner]: { path, rows: yield* this.#list(related, value, inner, path, level) } } }
    }
    if (value.type !== 'object') {
      throw refused(
        path,
        `${describeJsonType(value.type)} does not say what to do; send {"create": […], "update": […], ` +
          '"delete": […]} or {"set": […]}',
      )
    }
    const body = outlineOf(value)
    const lists: Partial<Record<RowUse, RowList>> = {}
    for (const member of body.members) {
      const inner = memberPath(path, member.key)
      if (!isUse(member.key)) throw refused(inner, 'there is no such change; use create, update, delete or set')
      const part = partOf(body, member)
      if (part.type !== 'array')
        throw refused(inner, `${describeJsonType(part.type)} is not a list; send an array of rows`)
      lists[member.key] = { path: inner, rows: yield* this.#list(related, part, member.key, inner, level) }
    }
    const { set, ...others } = lists
    if (set !== undefined && Object.values(others).some(({ rows }) => rows.length > 0)) {
      throw refused(path, '"set" is the whole list of rows; leave out create, update and delete')
    }
    return { ...related, lists }
  }

  *#list(related: Related, value: JsonValue, use: RowUse, path: string, level: number): Reading<GraphRow[]> {
    const { relation, table } = related
    const array = parseJsonBody(value.bytes, this.#limits.maxBatchRows, new RowKeys(table, this.#view, path))
    if (array.kind !== 'array') throw new Error('a list is an array')
    const rows = yield* this.items(array, table, use, path, level + 1)
    for (const row of rows) assertColumns(row, relation, use)
    return rows
  }

  #outline({ bytes }: JsonValue, table: Table, path: string): ObjectOutline {
    const body = parseJsonBody(bytes, this.#limits.maxBatchRows, new RowKeys(table, this.#view, path))
    if (body.kind !== 'object') throw new Error('a row is an object')
    return body
  }
}

/** The columns of the key that identify a child: those that are not part of its foreign key. */
export function ownKey({ primaryKey }: Table, { targetColumns }: Relation): readonly string[] {
  return primaryKey.filter(name => !targetColumns.includes(name))
}

/**
 * Checks the columns of a child: it has no column of its foreign key, and has its own key if one is needed.
 */
function assertColumns(row: GraphRow, relation: Relation, use: RowUse): void {
  const { table, columns, path } = row
  const given = [...columns, ...row.ones.flatMap(one => one.relation.columns)]
  const filled = relation.targetColumns.find(name => given.includes(name))
  if (filled !== undefined) {
    throw refused(memberPath(path, filled), `column "${filled}" is filled in from the parent row; leave it out`)
  }
  if (use === 'create') return
  if (table.primaryKey.length === 0) {
    throw refused(path, `"${table.resource}" has no primary key, so its rows can only be created`)
  }
  if (use === 'set') return
  const key = ownKey(table, relation)
  const missing = key.find(name => !columns.includes(name))
  if (missing !== undefined) throw refused(path, `the row has no "${missing}"; send its key: ${key.join(', ')}`)
  if (use === 'update') return
  const other = columns.find(name => !key.includes(name))
  if (other !== undefined) throw refused(memberPath(path, other), `a row to delete has only its key: ${key.join(', ')}`)
}

function isUse(key: string): key is RowUse {
  return key === 'create' || key === 'update' || key === 'delete' || key === 'set'
}

function outlineOf({ bytes }: JsonValue): ObjectOutline {
  const body = parseJsonBody(bytes, 0)
  if (body.kind !== 'object') throw new Error('expected an object')
  return body
}

function bytesOf(body: ObjectOutline, members: readonly JsonMember[]): Buffer {
  const parts = members.flatMap((member, index) => [
    Buffer.from(`${index === 0 ? '' : ','}${JSON.stringify(member.key)}:`),
    partBytes(body, member),
  ])
  return Buffer.concat([Buffer.from('{'), ...parts, Buffer.from('}')])
}

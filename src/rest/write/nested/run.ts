/**
 * Writes the rows of a body with related rows: rows that others refer to first, each list of rows with the
 * same columns in one statement. The rows of every table are checked as if they were written by a separate
 * request.
 */
import { forbiddenColumn } from '../../../access/refusals.ts'
import { relatedTable } from '../../../access/relations.ts'
import { allows } from '../../../access/rights.ts'
import type { Relation, Table } from '../../../catalog/model.ts'
import { GatewayError } from '../../../errors.ts'
import type { ResultRow, WriteResult } from '../../../run/run.ts'
import { LIMIT_NAMES } from '../../../statement-limits.ts'
import { type NamedRefusal, refusalSearch } from '../../body/body-error.ts'
import { withTextColumns } from '../../body/text-values.ts'
import { pause, read, type Script, write } from '../../script.ts'
import { sqlstateOf } from '../../sqlstate.ts'
import type { StatementPart } from '../../steps.ts'
import { Values } from '../../values.ts'
import { describeViolation } from '../../violation.ts'
import { type PartialChanges, valuesOf } from '../changes.ts'
import { insertion } from '../create.ts'
import type { ChildrenTree, DeleteTree, FoundTree, SetTree, WriteTarget } from '../request.ts'
import { answerable, type Writing } from '../writing.ts'
import { located, noSuchRow, type RowGroup, translated } from './failing-row.ts'
import {
  at,
  type GraphLimits,
  type GraphRow,
  memberPath,
  ownKey,
  type RowList,
  type RowUse,
  type ToMany,
  type ToOne,
} from './graph.ts'
import { assertUse } from './rights.ts'
import { columnJson, jsonsOf, listOf, objectOf, outlineOf, type Text, textIn } from './row-json.ts'

/** Limits on the statements of a body. */
export interface RunLimits extends GraphLimits {
  readonly maxBatchKeySets: number
}

interface Insert extends RowGroup {
  /** The columns that are returned after the row. */
  readonly key: readonly string[]
}

/** The lists that a row contains for one relation. */
interface ListedIn {
  readonly row: GraphRow
  readonly many: ToMany
}

/** The columns that a creation of rows returns. */
export interface CreatedAnswer {
  /** Columns that related rows need. */
  readonly needed: readonly string[]
  /** Optional columns, which are left out if the caller has no privilege to return them. */
  readonly optional?: readonly string[]
  /** How the rows are returned as JSON; omitted if they are not. */
  readonly writing?: Writing
}

/** The rows that a statement returned as JSON. */
type RowsAsJson = ReadonlyMap<GraphRow, Buffer>

const NO_COLUMNS: readonly string[] = []

const NOTHING: CreatedAnswer = { needed: [] }

/** Limit on the rows that a list replaces, if `max_batch_rows` is turned off. */
const CHILDREN_MAX = 1_000_000

/** Lists with more rows are processed in several turns of the event loop. */
const ROWS_IN_A_TURN = 500

const MINIMAL = { returning: undefined, returned: 'minimal' } as const

/** One run of a body. A transaction that is run again starts with a new object. */
export class GraphRun {
  readonly #writing: Writing
  readonly #limits: RunLimits
  /** The columns that are filled in from the parent row, or from a row that this row refers to. */
  readonly #filled = new Map<GraphRow, Map<string, Text>>()
  /** The columns that statements returned. */
  readonly #returned = new Map<GraphRow, Map<string, Text>>()
  /** Rows that did not exist before. */
  readonly #created = new Set<GraphRow>()
  /** Rows of a `set` list whose key no existing child has. */
  readonly #named = new Set<GraphRow>()
  #statements = 0
  #written: WriteResult | undefined

  constructor(writing: Writing, limits: RunLimits) {
    this.#writing = writing
    this.#limits = limits
  }

  /** The result of the first statement, with the number of the transaction. */
  get written(): WriteResult | undefined {
    return this.#written
  }

  /** A column of a written row: returned by its statement, filled in, or in the body. */
  valueOf(row: GraphRow, name: string): Text | undefined {
    const known = this.#returned.get(row)?.get(name) ?? this.#filled.get(row)?.get(name)
    return known === undefined && row.columns.includes(name) ? textIn(row, name) : known
  }

  /** Stores the values of a row that was written or read. */
  learn(row: GraphRow, names: readonly string[], values: readonly (Buffer | null | undefined)[]): void {
    const known = this.#returned.get(row) ?? new Map<string, Text>()
    for (const [index, name] of names.entries()) known.set(name, values[index]?.toString() ?? null)
    this.#returned.set(row, known)
  }

  /** The columns of a row that its related rows need. */
  neededBelow(row: GraphRow): readonly string[] {
    if (row.ones.length + row.manys.length === 0) return NO_COLUMNS
    const changed = row.ones.filter(({ use }) => use === 'update')
    return unique([...row.manys, ...changed].flatMap(({ relation }) => relation.columns))
  }

  // ---- create ----

  /**
   * Creates rows of one table with their related rows. Returns the JSON of the rows for which it was
   * requested.
   */
  *create(rows: readonly GraphRow[], path: string, answer: CreatedAnswer = NOTHING): Script<RowsAsJson> {
    const [any] = rows
    if (any === undefined) return new Map()
    assertUse(this.#writing, any.table, 'create', path)
    yield* this.createReferenced(rows)
    const below = rows.flatMap(row => this.neededBelow(row))
    const needed = unique([...answer.needed, ...below])
    const json = yield* this.#insert(rows, path, { ...answer, needed })
    yield* turnFor(rows)
    yield* this.writeRelated(rows)
    return json
  }

  *#insert(rows: readonly GraphRow[], path: string, answer: CreatedAnswer): Script<RowsAsJson> {
    const { needed, optional = [] } = answer
    const inserts = this.#inserts(rows, path, answer)
    try {
      return this.#learnAll(inserts, yield* this.#apply(inserts))
    } catch (error) {
      const isTooMuch = error instanceof GatewayError && error.code === 'FORBIDDEN'
      if (!isTooMuch || optional.every(name => needed.includes(name))) throw error
      return yield* this.#insert(rows, path, { ...answer, optional: [] })
    }
  }

  #inserts(rows: readonly GraphRow[], path: string, answer: CreatedAnswer): readonly Insert[] {
    const { needed, optional = [] } = answer
    return this.#groups(rows, path).map(({ columns, rows: grouped }): Insert => {
      const [{ table }] = grouped
      const writing = answer.writing ?? { ...this.#writing, table, wanted: MINIMAL }
      const returned = answerable(writing, columns)
      const key = unique([...needed, ...optional]).filter(name => allows(returned, name))
      const hidden = needed.find(name => !key.includes(name) && !columns.includes(name))
      if (hidden !== undefined) throw at(path, forbiddenColumn(hidden, table, 'return'))
      const part = (some: readonly GraphRow[]) => insertion(writing, { columns, ...this.#bodyOf(some) }, null, key)
      return { table, path, rows: grouped, key, part }
    })
  }

  /** Stores what inserts returned: the row, if it was requested, and the columns of the key. */
  #learnAll(inserts: readonly Insert[], results: readonly WriteResult[]): RowsAsJson {
    const json = new Map<GraphRow, Buffer>()
    for (const [index, insert] of inserts.entries()) {
      const { key, rows } = insert
      const { rows: answered = [], count = 0 } = results[index] ?? {}
      if (count !== rows.length) throw suppressed(insert)
      for (const [n, row] of rows.entries()) {
        const values = answered[n] ?? []
        const [first] = values
        const isWhole = values.length > key.length
        if (isWhole && first) json.set(row, first)
        this.learn(row, key, isWhole ? values.slice(1) : values)
        this.#created.add(row)
      }
    }
    return json
  }

  /** Creates the rows that others refer to, and fills in their keys. */
  *createReferenced(rows: readonly GraphRow[]): Script<void> {
    const ones = rows.flatMap(row => row.ones.filter(({ use }) => use === 'create').map(one => ({ row, one })))
    for (const [relation, members] of byRelation(ones, ({ one }) => one)) {
      const needed = relation.targetColumns
      yield* this.create(
        members.map(({ one }) => one.row),
        pathOf(members, ({ one }) => one),
        { needed },
      )
      for (const { row, one } of members) this.#fill(row, relation.columns, one.row, relation.targetColumns)
    }
  }

  /** Fills columns of a row from those of another. */
  #fill(row: GraphRow, columns: readonly string[], from: GraphRow, of: readonly string[]): void {
    const filled = this.#filled.get(row) ?? new Map<string, Text>()
    this.#filled.set(row, filled)
    for (const [index, name] of columns.entries()) {
      const source = of[index] ?? ''
      const value = this.valueOf(from, source)
      if (value === undefined || value === null) {
        throw refused(row.path, `"${source}" of "${from.table.resource}" is null, so no row can refer to it`)
      }
      const other = filled.get(name)
      if (other !== undefined && other !== value) {
        throw refused(memberPath(row.path, name), `column "${name}" would get different values from two related rows`)
      }
      filled.set(name, value)
    }
  }

  // ---- related rows ----

  /** Writes the related rows that written rows contain. */
  *writeRelated(rows: readonly GraphRow[]): Script<void> {
    for (const row of rows) {
      for (const one of row.ones) if (one.use === 'update') yield* this.#changeReferenced(row, one)
    }
    const manys = rows.flatMap(row => row.manys.map(many => ({ row, many })))
    for (const [relation, members] of byRelation(manys, ({ many }) => many)) yield* this.#writeLists(relation, members)
  }

  *#changeReferenced(row: GraphRow, { relation, row: other, path }: ToOne): Script<void> {
    if (relation.columns.some(name => this.valueOf(row, name) === null)) {
      throw at(path, new GatewayError('NOT_FOUND', `the row does not refer to a row of "${other.table.resource}"`))
    }
    this.#fill(other, relation.targetColumns, row, relation.columns)
    yield* this.#update([other], relation.targetColumns, path)
  }

  *#writeLists(relation: Relation, members: readonly ListedIn[]): Script<void> {
    const table = relatedTable(this.#writing.view.catalog, relation.table)
    for (const { row, many } of members) {
      for (const { rows } of Object.values(many.lists)) {
        for (const child of rows) this.#fill(child, relation.targetColumns, row, relation.columns)
      }
    }
    yield* turnFor(members)
    const by = [...relation.targetColumns, ...ownKey(table, relation)]
    const removed = listsOf(members, 'delete')
    yield* this.#remove(rowsIn(removed), by, pathOf(removed))
    const isNew = ({ row }: ListedIn) => this.#created.has(row)
    yield* this.#replace(
      relation,
      table,
      members.filter(member => !isNew(member)),
    )
    const changed = listsOf(members, 'update')
    yield* this.#update(rowsIn(changed), by, pathOf(changed))
    const added = [...listsOf(members, 'create'), ...listsOf(members.filter(isNew), 'set')]
    yield* this.create(rowsIn(added), pathOf(added))
  }

  // ---- update ----

  /** Changes rows that are named by the columns `by`. */
  *#update(rows: readonly GraphRow[], by: readonly string[], path: string): Script<void> {
    const [any] = rows
    if (any === undefined) return
    const { table } = any
    assertUse(this.#writing, table, 'update', path)
    this.#refuseRepeated(rows, by)
    yield* this.createReferenced(rows)
    const changed = rows.filter(row => this.#changedBy(row, by).length > 0)
    const others = rows.filter(row => this.#changedBy(row, by).length === 0)
    for (const row of others) {
      if (row.manys.length === 0 && row.ones.length === 0) throw refused(row.path, 'the row has no column to change')
    }
    yield* this.#look(others, by)
    const groups = this.#updates(changed, by, path)
    const results = yield* this.#apply(groups)
    for (const [index, group] of groups.entries()) {
      const [row] = group.rows
      const values = results[index]?.rows[0]
      if (row !== undefined && values !== undefined) this.learn(row, this.#unknownBelow(row), values)
    }
    yield* this.writeRelated(rows)
  }

  /** The changes of the row in the path. */
  changesOf(row: GraphRow): PartialChanges {
    return valuesOf(outlineOf(this.bodyOf(row)), row.table)
  }

  /** The columns of a row that its update assigns. */
  #changedBy(row: GraphRow, by: readonly string[]): readonly string[] {
    const filled = [...(this.#filled.get(row)?.keys() ?? [])]
    return unique([...row.columns, ...filled]).filter(name => !by.includes(name))
  }

  /** The columns that related rows need and whose values are not known yet. */
  #unknownBelow(row: GraphRow): readonly string[] {
    return this.neededBelow(row).filter(name => this.valueOf(row, name) === undefined)
  }

  #updates(rows: readonly GraphRow[], by: readonly string[], path: string): readonly RowGroup[] {
    const partials = new Map(rows.flatMap(row => (row.bytes.includes(INCREMENT) ? [[row, partialOf(row)]] : [])))
    const groups = (some: readonly GraphRow[], returned: readonly string[]): readonly RowGroup[] =>
      this.#groups(some, path, row => printPartial(partials.get(row))).map(({ columns: all, rows: grouped }) => {
        const [first] = grouped
        const { table } = first
        const partial = partials.get(first)?.partial
        const columns = all.filter(name => !by.includes(name))
        const returnable = answerable({ ...this.#writing, table }, columns)
        const hidden = returned.find(name => !allows(returnable, name))
        if (hidden !== undefined) throw at(path, forbiddenColumn(hidden, table, 'return'))
        const part = (chosen: readonly GraphRow[]): StatementPart => {
          const values = new Values()
          const bytes = this.#arrayOf(chosen, row => partials.get(row)?.bytes ?? row.bytes)
          const value = values.add(withTextColumns(bytes, table, all, this.#writing.view.limits))
          const tree: SetTree = {
            ...{ kind: 'set', table, columns, value, returning: [], key: returned },
            target: { kind: 'matched', by, rows: value, count: values.add(String(chosen.length)) },
            ...(partial === undefined ? {} : { partial }),
          }
          return { tree, values }
        }
        return { table, path, rows: grouped, part }
      })
    // The rows that an update returns are not in the order of the body.
    const alone = rows.filter(row => this.#unknownBelow(row).length > 0)
    const together = rows.filter(row => !alone.includes(row))
    return [...groups(together, []), ...alone.flatMap(row => groups([row], this.#unknownBelow(row)))]
  }

  /** Reads rows that the body identifies but does not change. */
  *#look(rows: readonly GraphRow[], by: readonly string[]): Script<void> {
    const [any] = rows
    if (any === undefined) return
    const columns = unique(rows.flatMap(row => this.#unknownBelow(row)))
    const seen = new Set<GraphRow>()
    for (const [position, ...values] of yield* this.find(any.table, rows, by, { columns })) {
      const row = rows[Number(position?.toString())]
      if (row === undefined) continue
      seen.add(row)
      this.learn(row, columns, values)
    }
    const missing = rows.find(row => !seen.has(row))
    if (missing !== undefined) throw at(missing.path, noSuchRow(missing.table))
  }

  /** Reads rows of a table by their values of the columns `by`. `values` are those of `answer`. */
  *find(
    table: Table,
    rows: readonly GraphRow[],
    by: readonly string[],
    answer: FoundTree['answer'],
    values: Values = new Values(),
  ): Script<readonly ResultRow[]> {
    const bytes = listOf(rows, (row, position) => ({
      svc_position: String(position),
      ...jsonsOf(table, by, name => this.valueOf(row, name)),
    }))
    const value = values.add(withTextColumns(bytes, table, by, this.#writing.view.limits))
    const [found = []] = yield* read([{ tree: { kind: 'found', table, by, value, answer }, values }])
    return found
  }

  // ---- delete ----

  *#remove(
    rows: readonly GraphRow[],
    by: readonly string[],
    path: string,
    cleared: readonly string[] = [],
  ): Script<void> {
    const [any] = rows
    if (any === undefined) return
    const { table } = any
    assertUse(this.#writing, table, cleared.length > 0 ? 'update' : 'delete', path)
    this.#refuseRepeated(rows, by)
    const part = (chosen: readonly GraphRow[]): StatementPart => {
      const values = new Values()
      const value = values.add(
        withTextColumns(
          this.#arrayOf(chosen, row => row.bytes),
          table,
          by,
          this.#writing.view.limits,
        ),
      )
      const target: WriteTarget = { kind: 'matched', by, rows: value, count: values.add(String(chosen.length)) }
      const common = { table, target, returning: [] }
      const tree: SetTree | DeleteTree =
        cleared.length > 0
          ? { ...common, kind: 'set', columns: [], value, cleared, key: [] }
          : { ...common, kind: 'delete' }
      return { tree, values }
    }
    yield* this.#apply([{ table, rows, path, part }])
  }

  // ---- set ----

  /** Replaces the rows that refer to a row by the rows of each list. */
  *#replace(relation: Relation, table: Table, all: readonly ListedIn[]): Script<void> {
    const members = all.flatMap(({ row, many: { lists } }) => (lists.set === undefined ? [] : [{ row, ...lists.set }]))
    if (members.length === 0) return
    const path = pathOf(members)
    const key = ownKey(table, relation)
    const by = [...relation.targetColumns, ...key]
    const elements = members.flatMap(({ rows }, parent) => rows.map(row => ({ parent, row })))
    const named = elements.filter(({ row }) => key.every(name => row.columns.includes(name)))
    this.#refuseRepeated(rowsIn([{ rows: named.map(({ row }) => row) }]), by)
    const { existing, others } = yield* this.#children(relation, table, members, named, path)
    const cleared = relation.targetColumns.filter(
      name => table.columnByName.get(name)?.nullable === true && !table.primaryKey.includes(name),
    )
    yield* this.#remove(others, by, path, cleared)
    const isIdle = (row: GraphRow) => row.manys.length + row.ones.length + this.#changedBy(row, by).length === 0
    const rows = elements.map(({ row }) => row)
    yield* this.#update(
      rows.filter(row => existing.has(row) && !isIdle(row)),
      by,
      path,
    )
    // A key without the columns of the parent's key can also identify a child of another row.
    const isShared = !relation.targetColumns.some(name => table.primaryKey.includes(name))
    for (const { row } of named) if (isShared && !existing.has(row)) this.#named.add(row)
    yield* this.create(
      rows.filter(row => !existing.has(row)),
      path,
    )
  }

  /** The elements that are existing children, and the existing children that are not among the elements. */
  *#children(
    relation: Relation,
    table: Table,
    members: readonly { readonly row: GraphRow }[],
    named: readonly { readonly parent: number; readonly row: GraphRow }[],
    path: string,
  ): Script<{ readonly existing: ReadonlySet<GraphRow>; readonly others: readonly GraphRow[] }> {
    const { columns, targetColumns } = relation
    const key = ownKey(table, relation)
    const values = new Values()
    const parents = listOf(members, ({ row }, position) => ({
      svc_position: String(position),
      ...jsonsOf(table, targetColumns, (_, index) => this.valueOf(row, columns[index] ?? '')),
    }))
    const elements = listOf(named, ({ parent, row }, position) => ({
      ...{ svc_parent: String(parent), svc_position: String(position) },
      ...jsonsOf(table, key, name => this.valueOf(row, name)),
    }))
    const rowsMax = Math.min(this.#limits.maxBatchRows, CHILDREN_MAX)
    const tree: ChildrenTree = {
      ...{ kind: 'existing children', table, relation, key, columns: key, rowsMax },
      parents: values.add(withTextColumns(parents, table, targetColumns, this.#writing.view.limits)),
      elements: values.add(withTextColumns(elements, table, key, this.#writing.view.limits)),
    }
    const [found = []] = yield* read([{ tree, values }])
    if (found.length > rowsMax) {
      throw at(
        path,
        new GatewayError(
          'PAYLOAD_TOO_LARGE',
          `the list would replace more than ${rowsMax} rows (max_batch_rows); use create, update and delete instead`,
        ),
      )
    }
    const existing = new Set<GraphRow>()
    const others: GraphRow[] = []
    for (const [parent, element, ...texts] of found) {
      const row = element == null ? undefined : named[Number(element.toString())]?.row
      const of = members[Number(parent?.toString())]
      if (row !== undefined) existing.add(row)
      else if (of !== undefined) {
        const bytes = Buffer.from(objectOf(jsonsOf(table, key, (_, index) => texts[index]?.toString() ?? null)))
        const other = { table, path, columns: key, bytes, ones: [], manys: [] }
        this.#fill(other, targetColumns, of.row, columns)
        others.push(other)
      }
    }
    return { existing, others }
  }

  // ---- statements ----

  /** Groups rows by their columns, in the order of the body. */
  #groups(
    rows: readonly GraphRow[],
    path: string,
    kindOf: (row: GraphRow) => string = () => '',
  ): readonly { readonly columns: readonly string[]; readonly rows: readonly [GraphRow, ...GraphRow[]] }[] {
    const found = new Map<string, { readonly columns: readonly string[]; readonly rows: [GraphRow, ...GraphRow[]] }>()
    // The same columns in the same order, which most rows of a list have, are sorted once.
    const sorted = new Map<string, readonly string[]>()
    for (const row of rows) {
      const written = [...row.columns, ...(this.#filled.get(row)?.keys() ?? [])]
      const order = written.join('\0')
      const columns = sorted.get(order) ?? [...new Set(written)].sort()
      sorted.set(order, columns)
      const name = `${kindOf(row)}\0${columns.join('\0')}`
      const known = found.get(name)
      if (known === undefined) found.set(name, { columns, rows: [row] })
      else known.rows.push(row)
    }
    this.#statements += found.size
    const max = this.#limits.maxBatchKeySets
    if (this.#statements <= max) return [...found.values()]
    throw at(
      path,
      new GatewayError(
        'PAYLOAD_TOO_LARGE',
        `the body has more than ${max} different sets of columns (${LIMIT_NAMES.maxBatchKeySets}), with those of ` +
          'related tables; give the same columns in every row, or send fewer rows at a time',
        { limit: LIMIT_NAMES.maxBatchKeySets },
      ),
    )
  }

  /** Prints one row as an object, several rows as an array. */
  #bodyOf(rows: readonly GraphRow[]): { readonly bytes: Buffer; readonly rows: 'one' | 'many' } {
    const [only, ...more] = rows
    if (only !== undefined && more.length === 0) return { bytes: this.bodyOf(only), rows: 'one' }
    return { bytes: this.#arrayOf(rows, row => row.bytes), rows: 'many' }
  }

  /** Prints a row with the columns that were filled in. */
  bodyOf(row: GraphRow): Buffer {
    return Buffer.concat(this.#jsonOf(row, row.bytes))
  }

  #arrayOf(rows: readonly GraphRow[], bytes: (row: GraphRow) => Buffer): Buffer {
    const parts = rows.flatMap((row, index) => [index === 0 ? OPEN : COMMA, ...this.#jsonOf(row, bytes(row))])
    return Buffer.concat([...parts, CLOSE])
  }

  /** The columns of a row in the body, after those that are filled in. */
  #jsonOf(row: GraphRow, bytes: Buffer): readonly Buffer[] {
    const filled = this.#filled.get(row)
    if (filled === undefined || filled.size === 0) return [bytes]
    const members = [...filled].map(([name, text]) => `${JSON.stringify(name)}:${columnJson(text, row.table, name)}`)
    const start = `{${members.join(',')}`
    return row.columns.length === 0 ? [Buffer.from(`${start}}`)] : [Buffer.from(`${start},`), bytes.subarray(1)]
  }

  /** Runs the statements of groups; an error names the row that it is about. */
  *#apply(groups: readonly RowGroup[]): Script<readonly WriteResult[]> {
    if (groups.length === 0) return []
    try {
      const results = yield* write(groups.map(group => group.part(group.rows)))
      yield* turnFor(groups.flatMap(({ rows }) => rows))
      this.#written ??= results[0]
      return results
    } catch (error) {
      throw yield* located(groups, error, (found, row) => this.explained(found, row))
    }
  }

  /** An error of a statement that wrote this row alone, with the path of the row and of the column. */
  *explained(error: unknown, row: GraphRow): Script<unknown> {
    const { view } = this.#writing
    const { table } = row
    const refusal = yield* namedRefusal(error, row, this.bodyOf(row))
    const described = describeViolation(refusal.error, view)
    if (!(described instanceof GatewayError)) return described
    if (this.#named.has(row) && sqlstateOf(described) === '23505' && isKeyOf(table, described)) {
      return at(row.path, noSuchRow(table))
    }
    const filled = this.#filled.get(row)
    const named = columnsOf(described).filter(name => filled?.has(name) !== true)
    const column = refusal.column ?? (named.length === 1 ? named[0] : undefined)
    return at(column == null ? row.path : memberPath(row.path, column), translated(described, table))
  }

  /** Rejects a list that contains a row twice, if the body shows this. */
  #refuseRepeated(rows: readonly GraphRow[], by: readonly string[]): void {
    const seen = new Set<string>()
    for (const row of rows) {
      const key = JSON.stringify(by.map(name => this.valueOf(row, name)))
      if (seen.has(key)) throw refused(row.path, 'an earlier row of the list has the same key; send each row once')
      seen.add(key)
    }
  }
}

/** Searches a row that was refused; a large one in several turns of the event loop. */
function* namedRefusal(error: unknown, { table }: GraphRow, body: Buffer): Script<NamedRefusal> {
  const search = refusalSearch(error, table, outlineOf(body))
  for (;;) {
    const found = search()
    if (found !== undefined) return found
    yield* pause()
  }
}

function* turnFor(items: readonly unknown[]): Script<void> {
  if (items.length > ROWS_IN_A_TURN) yield* pause()
}

const OPEN = Buffer.from('[')
const COMMA = Buffer.from(',')
const CLOSE = Buffer.from(']')

function refused(path: string, message: string): GatewayError {
  return at(path, new GatewayError('PARSE_ERROR', message))
}

function suppressed({ table, path }: RowGroup): GatewayError {
  return at(
    path,
    new GatewayError('QUERY_ERROR', `a trigger of "${table.resource}" prevented the creation of some rows`),
  )
}

function columnsOf({ details }: GatewayError): readonly string[] {
  const { columns = [] } = (details ?? {}) as { readonly columns?: readonly string[] }
  return columns
}

function isKeyOf({ primaryKey }: Table, error: GatewayError): boolean {
  const columns = columnsOf(error)
  return columns.length === primaryKey.length && columns.every(name => primaryKey.includes(name))
}

function unique(names: readonly string[]): readonly string[] {
  return [...new Set(names)]
}

function byRelation<T>(items: readonly T[], related: (item: T) => { readonly relation: Relation }): Map<Relation, T[]> {
  const found = new Map<Relation, T[]>()
  for (const item of items) {
    const { relation } = related(item)
    const known = found.get(relation)
    if (known === undefined) found.set(relation, [item])
    else known.push(item)
  }
  return found
}

const INCREMENT = '"$inc"'

function partialOf(row: GraphRow): PartialChanges {
  return valuesOf(outlineOf(row.bytes), row.table)
}

function printPartial(changes: PartialChanges | undefined): string {
  return changes?.partial?.kind === 'values' ? changes.partial.increments.join('\0') : ''
}

/** The lists of rows to create, to update, and so on, selected by `use`. */
function listsOf(members: readonly ListedIn[], use: RowUse): readonly RowList[] {
  return members.flatMap(({ many: { lists } }) => lists[use] ?? [])
}

function rowsIn(lists: readonly Pick<RowList, 'rows'>[]): readonly GraphRow[] {
  return lists.flatMap(({ rows }) => rows)
}

/**
 * The path of the list. Lists of several rows have only the name of the relation in common, which is
 * returned.
 */
function pathOf<T>(members: readonly T[], related = (member: T) => member as { readonly path: string }): string {
  const [first, ...more] = members
  if (first === undefined) return ''
  const { path } = related(first)
  return more.length === 0 ? path : path.slice(path.lastIndexOf('.') + 1)
}

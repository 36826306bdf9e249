/** Handles reads (docs/reference/reading.md): list, one row, children, aggregates, explain. */
import { assertAllowed } from '../../access/refusals.ts'
import { limitsRows, type View } from '../../access/rights.ts'
import type { Table } from '../../catalog/model.ts'
import type { BoundStatement, ExplainStatement } from '../../compile/statement.ts'
import type { Known } from '../../compile/unless-known.ts'
import { GatewayError } from '../../errors.ts'
import type { Answer } from '../../exchange.ts'
import { seesFigures } from '../../run/explain-figures.ts'
import type { ResultRow, RunningRead } from '../../run/run.ts'
import { unreachable } from '../../unreachable.ts'
import { columnsPart, digestIn, pageForm, rowTag, totalIn, versionIn, weakTag } from '../etag.ts'
import { INSTEAD_OF_PUT, methodNotAllowed, methodsAt, methodsOf, READING } from '../method.ts'
import { parseId } from '../path.ts'
import { withPreference } from '../prefer.ts'
import type { DataRoute, WrittenRequest } from '../request.ts'
import { idParameters, notFound, requireTable } from '../resource.ts'
import {
  cacheUseOf,
  csvLines,
  type ListOutcome,
  respondCsv,
  respondExplained,
  respondGroups,
  respondKnownList,
  respondKnownRow,
  respondList,
  respondReadRow,
} from '../respond.ts'
import { versionColumn } from '../row-version.ts'
import type { RequestContext, RequestStep, StatementPart, StepResult } from '../steps.ts'
import { Values } from '../values.ts'
import { parseAggregate } from './aggregate.ts'
import { columnNames } from './csv.ts'
import type { CursorCodec } from './cursor.ts'
import { type ListTree, type OneTree, type ParentTree, parseListRequest, parseOne, type ReadLimits } from './request.ts'
import { childRelation, pagingOf } from './tree.ts'

/** The dependencies of the read handler. */
export interface ReadHandlerOptions {
  readonly limits: ReadLimits
  readonly cursors: CursorCodec
  /** True if only the operator can use `_explain`, so that estimates and counts can be shown. */
  readonly operatorExplains: boolean
  /**
   * True if PostgreSQL compares the tag in `If-None-Match`, so that it does not return rows that the client
   * has. False if results are cached: the first result is then needed.
   */
  readonly comparesTags: boolean
}

/** The routes that can be read. */
export type ReadRoute = Exclude<DataRoute, { readonly kind: 'rpc' }>

interface Rows {
  readonly list: ListTree
  readonly values: Values
}

type Kept = Pick<RunningRead, 'kept'>

/** Turns read requests into steps. */
export class ReadHandler {
  readonly #parts: ReadHandlerOptions
  /** The responses of cached rows, ready to be sent. */
  readonly #answered = new WeakMap<object, Answer>()
  /** Tables with rights to single columns only, which do not include the version of a row. */
  readonly #unversioned = new WeakSet<Table>()

  constructor(parts: ReadHandlerOptions) {
    this.#parts = parts
  }

  toStep(written: WrittenRequest, route: ReadRoute, context: RequestContext): RequestStep {
    if (!READING.includes(context.incoming.method)) throw refusedMethod(context, route)
    const table = readable(context.view, route.table)
    switch (route.kind) {
      case 'one':
        return this.#one(written, table, route.id, context)
      case 'list':
        return this.#list(this.#rows(written, table, null, new Values()), context)
      case 'children':
        return this.#children(written, table, route, context)
      case 'aggregate':
        return this.#aggregate(written, table)
      case 'explain':
        return this.#explain(this.#rows(written, table, null, new Values()), context)
      default:
        return unreachable(route)
    }
  }

  #one(written: WrittenRequest, table: Table, id: string, context: RequestContext): RequestStep {
    const { view } = context
    const values = new Values()
    const column = this.#unversioned.has(table) ? null : versionColumn(table, view, this.#parts.limits.tables)
    const tree = parseOne(written, table, idParameters(table, id, values), values, this.#parts.limits, column)
    const key = parseId(id, table.primaryKey)
    const select = written.parameters.find(({ name }) => name === 'select')?.value
    const columns = tree.version === null ? '' : columnsPart(table, view, select)
    const condition = this.#conditionOf(context)
    const known = knownRow(condition, { tree, key, columns, values })
    const read = (asked: OneTree, failed?: (error: unknown) => StepResult): RequestStep => ({
      runs: 'read',
      parts: [{ tree: asked, values }],
      respond: ([rows], reading) => {
        const made = reading.kept === undefined ? undefined : this.#answered.get(reading.kept)
        if (made !== undefined) return made
        const [row, version] = rows?.[0] ?? []
        if (tree.version !== null && asked.version === null) this.#unversioned.add(table)
        if (row === null && condition !== undefined) return respondKnownRow(condition, asked.version !== null)
        if (row === undefined || row === null) throw missing(table, id, reading)
        const found = asked.version === null || !version ? null : { column: asked.version, text: version.toString() }
        const tag = (found === null ? null : rowTag(table, key, found, columns)) ?? weakTag(row)
        const answer = respondReadRow(row, cacheUseOf(reading), tag)
        if (reading.kept !== undefined) this.#answered.set(reading.kept, answer)
        return answer
      },
      ...(failed === undefined ? {} : { failed }),
    })
    const conditional = known === null ? tree : { ...tree, known }
    if (tree.version === null) return read(conditional)
    return read(conditional, error => {
      if (error instanceof GatewayError && error.code === 'FORBIDDEN') return read({ ...tree, version: null })
      throw error
    })
  }

  #aggregate(written: WrittenRequest, table: Table): RequestStep {
    const values = new Values()
    const tree = parseAggregate(written, table, values, this.#parts.limits)
    return {
      runs: 'read',
      parts: [{ tree, values }],
      respond([rows = []], reading) {
        const only = rows[0]?.[0]
        const use = cacheUseOf(reading)
        return tree.groups === null && only !== undefined && only !== null
          ? respondReadRow(only, use)
          : respondGroups(rows, use)
      },
    }
  }

  #rows(written: WrittenRequest, table: Table, parent: ParentTree | null, values: Values): Rows {
    return { list: parseListRequest(written, table, parent, values, this.#parts), values }
  }

  #children(
    written: WrittenRequest,
    above: Table,
    { id, child }: ReadRoute & { kind: 'children' },
    context: RequestContext,
  ): RequestStep {
    const { view } = context
    const relation = childRelation(above, child, view)
    const table = readable(view, relation.table)
    const values = new Values()
    const parent: ParentTree = { kind: 'parent', table: above, id: idParameters(above, id, values), relation, child }
    return this.#list(this.#rows(written, table, parent, values), context, id)
  }

  /** `id` identifies the row whose children are listed. */
  #list({ list, values }: Rows, context: RequestContext, id = ''): RequestStep {
    const { view } = context
    const { parent, total, stream, cursor } = list
    const condition = this.#conditionOf(context)
    const known = knownPage(condition, list, view, values)
    const partsOf = (tree: ListTree): readonly StatementPart[] => [
      ...(parent === null ? [] : [{ tree: parent, values }]),
      { tree, values },
      ...(total ? [{ tree: { kind: 'total' as const, list }, values }] : []),
    ]
    const assertParent = (found: readonly ResultRow[] | undefined, reading: Kept) => {
      if (parent !== null && found?.length !== 1) throw missing(parent.table, id, reading)
    }
    const page = (parts: readonly StatementPart[]): RequestStep => ({
      runs: 'read',
      parts,
      respond: (results, reading) => {
        assertParent(results[0], reading)
        const [rows = [], counted] = parent === null ? results : results.slice(1)
        const count = counted?.[0]?.[0] ?? null
        if (condition === undefined || rows[0]?.[0] !== null) return this.#page(list, view, rows, count, reading)
        // The rows are the same; if their total is not, they are needed for the new response.
        if (totalOf(count) !== totalIn(condition)) return page(partsOf(list))
        return total ? withPreference(respondKnownList(condition), 'count=exact') : respondKnownList(condition)
      },
    })
    const parts = partsOf(known === null ? list : { ...list, known })
    if (cursor === null && !stream) return page(parts)
    const streamed = (tree: readonly StatementPart[]): RequestStep => {
      const format = list.written.headers.csv ? { format: csvLines(columnNames(list, view)) } : {}
      if (parent === null) return { runs: 'stream', parts: tree, ...format }
      return {
        runs: 'read',
        parts: tree.slice(0, 1),
        respond([found], reading) {
          assertParent(found, reading)
          return { runs: 'stream', parts: tree.slice(1), ...format }
        },
      }
    }
    return this.#verified(list, view, parts, stream ? streamed : page)
  }

  /** `If-None-Match`, if PostgreSQL compares it. */
  #conditionOf({ incoming }: RequestContext): string | undefined {
    return this.#parts.comparesTags ? incoming.headers['if-none-match'] : undefined
  }

  /** Verifies a cursor after compiling: the statements must be possible before a cursor can be judged. */
  #verified(
    list: ListTree,
    view: View,
    parts: readonly StatementPart[],
    respond: (statements: readonly BoundStatement[]) => RequestStep,
  ): RequestStep {
    return {
      runs: 'nothing',
      parts,
      respond: statements => {
        const { cursor } = list
        if (cursor !== null) this.#parts.cursors.verify(scopeOf(list, view), cursor.digest, cursor.values)
        return respond(statements)
      },
    }
  }

  #page(list: ListTree, view: View, rows: readonly ResultRow[], total: Buffer | null, reading: Kept): Answer {
    const { cursors } = this.#parts
    const offset = startOf(list, view)
    const outcome: ListOutcome = {
      rows,
      limit: list.limit,
      offset,
      total: totalOf(total),
      names: headerOf(list, view),
      use: cacheUseOf(reading),
      nextCursor(last) {
        const keys = last.slice(1).map(key => key?.toString() ?? null)
        const next = pagingOf(list, view) === 'offset' ? [String(offset + list.limit)] : keys
        const cursor = cursors.encode(scopeOf(list, view), next)
        // Without a cursor the client would take this page for the last; paging by offset needs none.
        if (cursor === null && list.offset === null) throw uncursorable()
        return cursor
      },
    }
    const page = outcome.names === null ? respondList(outcome) : respondCsv(outcome, outcome.names)
    return list.total ? withPreference(page, 'count=exact') : page
  }

  /** Explains the list with these parameters. The statement runs in a read-only transaction. */
  #explain({ list, values }: Rows, { identity, view }: RequestContext): RequestStep {
    const figures = this.#parts.operatorExplains || seesFigures(identity)
    return this.#verified(list, view, [{ tree: { kind: 'explain', list }, values }], parts => {
      refuseCounting(view)
      return {
        runs: 'read',
        parts,
        respond([rows]) {
          const found = rows?.[0]?.[0]
          const [explained] = parts as readonly BoundStatement<ExplainStatement>[]
          if (!found || explained === undefined) throw new Error('EXPLAIN must return one row')
          return respondExplained(explained, found, figures)
        },
      }
    })
  }
}

/** The version or the digest of a row in `If-None-Match`; null if it has none that could be current. */
function knownRow(
  condition: string | undefined,
  {
    tree,
    key,
    columns,
    values,
  }: {
    readonly tree: OneTree
    readonly key: readonly string[]
    readonly columns: string
    readonly values: Values
  },
): Known | null {
  if (condition === undefined) return null
  if (tree.version !== null) {
    const version = versionIn(condition, tree.table, key, { column: tree.version, columns })
    return version === null ? null : { kind: 'version', version: values.add(version) }
  }
  const digest = digestIn(condition)
  return digest === null ? null : knownDigest(digest, 1, '', values)
}

/** The digest of a page in `If-None-Match`; null if there is none. */
function knownPage(condition: string | undefined, list: ListTree, view: View, values: Values): Known | null {
  const digest = digestIn(condition)
  if (digest === null || list.stream || list.limit === 0) return null
  return knownDigest(digest, list.limit, pageForm(list.limit, startOf(list, view), headerOf(list, view)), values)
}

function knownDigest(digest: string, limit: number, form: string, values: Values): Known {
  return { kind: 'digest', digest: values.add(digest), limit: values.add(String(limit)), form: values.add(form) }
}

/** The names in the header of CSV; null for JSON. */
function headerOf(list: ListTree, view: View): readonly string[] | null {
  return list.written.headers.csv ? columnNames(list, view) : null
}

/** `counted`: `{"count":n}` as PostgreSQL printed it, or null if no total was requested. */
function totalOf(counted: Buffer | null): string | null {
  return counted === null ? null : String(JSON.parse(counted.toString()).count)
}

/**
 * The error for a write method on a read-only route. The table is looked up first, so an unknown table is a
 * 404.
 */
function refusedMethod({ incoming, view }: RequestContext, route: ReadRoute): GatewayError {
  if (route.kind !== 'list' && route.kind !== 'one') return methodNotAllowed(incoming, methodsOf(route.kind))
  const allowed = methodsAt(route.kind, requireTable(view, route.table))
  return methodNotAllowed(incoming, allowed, incoming.method === 'PUT' ? INSTEAD_OF_PUT : undefined)
}

/** The table, checked before any other part of the request. */
function readable(view: View, name: string): Table {
  const table = requireTable(view, name)
  assertAllowed('read', table, view.rights)
  return table
}

/**
 * An executed plan reports how many rows each condition removed. If one of them is a policy's, that reveals
 * the number of rows hidden from the caller.
 */
function refuseCounting(view: View): void {
  if (!limitsRows(view)) return
  throw new GatewayError(
    'FORBIDDEN',
    '_explain would reveal the number of rows that the route policy hides from you; ' +
      'send the request as a caller who can read every row',
  )
}

/** The scope of a cursor: table, distinct column, paging and sort. */
function scopeOf(list: ListTree, view: View): string {
  return `${list.table.resource}\n${list.distinct ?? ''}\n${pagingOf(list, view)}\n${list.sortText}`
}

/** The offset of the page, as far as it is known. */
function startOf(list: ListTree, view: View): number {
  const { cursor, offset } = list
  if (cursor !== null && pagingOf(list, view) === 'offset') return Number(cursor.values[0] ?? 0)
  return offset?.value ?? 0
}

/** The error for a missing row, with the `X-Cache` header of a read. */
function missing(table: Table, id: string, reading: Kept): GatewayError {
  return notFound(table, id, { 'X-Cache': cacheUseOf(reading) })
}

function uncursorable(): GatewayError {
  return new GatewayError(
    'PARSE_ERROR',
    'the sort values of the last row are too long for a cursor; ' +
      'sort by a shorter column, or page by offset, beginning with offset=0',
  )
}

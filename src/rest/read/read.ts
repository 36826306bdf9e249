/** Handles reads (docs/reference/reading.md): list, one row, children, aggregates, explain. */
import { assertAllowed } from '../../access/refusals.ts'
import { limitsRows, type View } from '../../access/rights.ts'
import type { Table } from '../../catalog/model.ts'
import type { BoundStatement, ExplainStatement } from '../../compile/statement.ts'
import { GatewayError } from '../../errors.ts'
import type { Answer } from '../../exchange.ts'
import { seesFigures } from '../../run/explain-figures.ts'
import type { ResultRow, RunningRead } from '../../run/run.ts'
import { unreachable } from '../../unreachable.ts'
import { columnsPart, rowTag, weakTag } from '../etag.ts'
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
        return this.#one(written, table, route.id, context.view)
      case 'list':
        return this.#list(this.#rows(written, table, null, new Values()), context.view)
      case 'children':
        return this.#children(written, table, route, context.view)
      case 'aggregate':
        return this.#aggregate(written, table)
      case 'explain':
        return this.#explain(this.#rows(written, table, null, new Values()), context)
      default:
        return unreachable(route)
    }
  }

  #one(written: WrittenRequest, table: Table, id: string, view: View): RequestStep {
    const values = new Values()
    const column = this.#unversioned.has(table) ? null : versionColumn(table, view, this.#parts.limits.tables)
    const tree = parseOne(written, table, idParameters(table, id, values), values, this.#parts.limits, column)
    const key = parseId(id, table.primaryKey)
    const select = written.parameters.find(({ name }) => name === 'select')?.value
    const columns = tree.version === null ? '' : columnsPart(table, view, select)
    const read = (tree: OneTree, failed?: (error: unknown) => StepResult): RequestStep => ({
      runs: 'read',
      parts: [{ tree, values }],
      respond: ([rows], reading) => {
        const made = reading.kept === undefined ? undefined : this.#answered.get(reading.kept)
        if (made !== undefined) return made
        const [row, version] = rows?.[0] ?? []
        if (row === undefined || row === null) throw missing(table, id, reading)
        if (tree.version !== null && tree.version === null) this.#unversioned.add(table)
        const known = tree.version === null || !version ? null : { column: tree.version, text: version.toString() }
        const tag = (known === null ? null : rowTag(table, key, known, columns)) ?? weakTag(row)
        const answer = respondReadRow(row, cacheUseOf(reading), tag)
        if (reading.kept !== undefined) this.#answered.set(reading.kept, answer)
        return answer
      },
      ...(failed === undefined ? {} : { failed }),
    })
    if (tree.version === null) return read(tree)
    return read(tree, error => {
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
    view: View,
  ): RequestStep {
    const relation = childRelation(above, child, view)
    const table = readable(view, relation.table)
    const values = new Values()
    const parent: ParentTree = { kind: 'parent', table: above, id: idParameters(above, id, values), relation, child }
    return this.#list(this.#rows(written, table, parent, values), view, id)
  }

  /** `id` identifies the row whose children are listed. */
  #list({ list, values }: Rows, view: View, id = ''): RequestStep {
    const { parent, total, stream, cursor } = list
    const parts: StatementPart[] = [{ tree: list, values }]
    if (parent !== null) parts.unshift({ tree: parent, values })
    if (total) parts.push({ tree: { kind: 'total', list }, values })
    const assertParent = (found: readonly ResultRow[] | undefined, reading: Kept) => {
      if (parent !== null && found?.length !== 1) throw missing(parent.table, id, reading)
    }
    const page = (tree: readonly StatementPart[]): RequestStep => ({
      runs: 'read',
      parts: tree,
      respond: (results, reading) => {
        assertParent(results[0], reading)
        const [rows = [], counted] = parent === null ? results : results.slice(1)
        return this.#page(list, view, rows, counted?.[0]?.[0] ?? null, reading)
      },
    })
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
      total,
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
    const page = list.written.headers.csv ? respondCsv(outcome, columnNames(list, view)) : respondList(outcome)
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

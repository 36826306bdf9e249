/** Answers the reads of the API: list, one row, children (specification 4.1; decisions 3, 4). */
import { LRUCache } from 'lru-cache'
import { type CheckContext, type CheckedQuery, checkRead, unknownTable } from '../access/check.ts'
import type { Catalog, Relation, Table } from '../catalog/model.ts'
import { GatewayError } from '../errors.ts'
import type { Answer, Incoming } from '../http/types.ts'
import type { Identity } from '../identity/identity.ts'
import type { Expression, Get, Parameter } from '../language/ast.ts'
import type { Runner } from '../run/run.ts'
import { type BoundStatement, printRead, type Statement } from '../run/statement.ts'
import { shorten } from '../shorten.ts'
import { bindValues } from './bind.ts'
import type { CursorCodec } from './cursor.ts'
import { parseId, type Route } from './path.ts'
import { parseQueryString } from './query-string.ts'
import { findRelation } from './relation.ts'
import { type ListRequest, parseListRequest, parseOneRequest, type ReadLimits, refuseMisspelt } from './request.ts'
import { respondList, respondRow, respondStream } from './respond.ts'
import { Shape } from './shape.ts'
import { buildList, buildOne, buildParent, childCondition, type ListTree, unknownChild } from './tree.ts'

export interface ReaderParts {
  readonly catalog: () => Catalog
  readonly runner: Runner
  readonly limits: ReadLimits
  readonly cursors: CursorCodec
  readonly searchLanguage: string
}

export type ReadRoute = Extract<Route, { readonly kind: 'list' | 'one' | 'children' }>

export type Reader = (incoming: Incoming, route: ReadRoute, identity: Identity) => Promise<Answer>

/** Statements kept by the shape of their request. Shapes are made by callers, so there is an end to them. */
const PLANS_MAX = 2_000

/** All keys and statements together: the statement of a short request that embeds a lot may be a thousand times as long. */
const PLAN_CHARACTERS_MAX = 32 * 1024 * 1024

/** A plan larger than this is not kept: one caller's giant shapes would push out everybody's ordinary ones. */
const ONE_PLAN_CHARACTERS_MAX = 128 * 1024

interface ListPlan {
  readonly rows: Statement
  readonly total: Statement | null
  /** Says whether the parent of a child list is there. */
  readonly parent: Statement | null
  readonly paging: ListTree['paging']
}

export function createReader(parts: ReaderParts): Reader {
  const { runner, limits, cursors } = parts
  // Statements belong to the catalogue they were checked against: a new one begins with none.
  const plansOf = new WeakMap<Catalog, LRUCache<string, ListPlan | Statement>>()

  function planned<T extends ListPlan | Statement>(catalog: Catalog, key: string, make: () => T): T {
    let plans = plansOf.get(catalog)
    if (plans === undefined) {
      plans = new LRUCache({
        max: PLANS_MAX,
        maxSize: PLAN_CHARACTERS_MAX,
        maxEntrySize: ONE_PLAN_CHARACTERS_MAX,
        sizeCalculation: sizeOf,
      })
      plansOf.set(catalog, plans)
    }
    const known = plans.get(key) as T | undefined
    if (known !== undefined) return known
    const plan = make()
    plans.set(key, plan)
    return plan
  }

  const check = (query: Get, catalog: Catalog): CheckedQuery => {
    const context: CheckContext = { catalog, searchLanguage: parts.searchLanguage }
    return checkRead(query, context)
  }

  /** The results of the statements, unless the client goes away first. */
  async function run(incoming: Incoming, identity: Identity, statements: readonly BoundStatement[]) {
    const running = runner.read(identity, statements)
    incoming.onAbort(() => running.cancel())
    return running.result
  }

  async function one(incoming: Incoming, tableName: string, id: string, identity: Identity): Promise<Answer> {
    const catalog = parts.catalog()
    const table = tableNamed(catalog, tableName)
    const shape = new Shape(`one ${table.resource}`)
    const parameters = idParameters(table, id, shape)
    const request = parseOneRequest(parseQueryString(incoming.query), shape, limits)
    const statement = planned(catalog, shape.key, () =>
      printRead(check(buildOne(request, table, parameters, catalog, limits), catalog), 'without keys'),
    )
    const [rows] = await run(incoming, identity, [bindValues(statement, shape.values)])
    const row = rows?.[0]?.[0]
    if (row === undefined || row === null) throw notFound(table, id)
    return respondRow(row)
  }

  async function list(incoming: Incoming, tableName: string, identity: Identity): Promise<Answer> {
    const catalog = parts.catalog()
    const table = tableNamed(catalog, tableName)
    return answerList(incoming, identity, catalog, table, new Shape(`list ${table.resource}`), null)
  }

  async function children(
    incoming: Incoming,
    route: ReadRoute & { kind: 'children' },
    identity: Identity,
  ): Promise<Answer> {
    const catalog = parts.catalog()
    const parent = tableNamed(catalog, route.table)
    const relation = childRelation(parent, route.child)
    const table = tableNamed(catalog, relation.table)
    const shape = new Shape(`children ${parent.resource}`)
    shape.add(route.child)
    const id = idParameters(parent, route.id, shape)
    const within = () => childCondition(relation, parent, id, catalog)
    return answerList(incoming, identity, catalog, table, shape, { table: parent, id, text: route.id, within })
  }

  interface Parent {
    readonly table: Table
    readonly id: readonly Parameter[]
    readonly text: string
    readonly within: () => Expression
  }

  async function answerList(
    incoming: Incoming,
    identity: Identity,
    catalog: Catalog,
    table: Table,
    shape: Shape,
    parent: Parent | null,
  ): Promise<Answer> {
    const prefer = incoming.headers.prefer
    const parameters = parseQueryString(incoming.query)
    const request = parseListRequest(
      parameters,
      shape,
      limits,
      cursors,
      Array.isArray(prefer) ? prefer.join(',') : prefer,
    )
    const plan = planned(catalog, shape.key, (): ListPlan => {
      refuseMisspelt(parameters, table)
      const tree = buildList(request, table, catalog, limits, parent === null ? null : parent.within())
      const keys = tree.paging === 'keys' && !request.stream ? 'with keys' : 'without keys'
      return {
        rows: printRead(check(tree.rows, catalog), keys),
        total: tree.total === null ? null : printRead(check(tree.total, catalog), 'without keys'),
        parent:
          parent === null ? null : printRead(check(buildParent(parent.table, parent.id), catalog), 'without keys'),
        paging: tree.paging,
      }
    })
    const scope = `${table.resource}\n${request.distinct?.column ?? ''}\n${plan.paging}\n${request.sortText}`
    const { cursor } = request
    if (cursor !== null) cursors.verify(scope, cursor.digest, cursor.values)
    const bind = (statement: Statement) => bindValues(statement, shape.values)
    const rows = bind(plan.rows)
    const parentStatement = plan.parent === null ? [] : [bind(plan.parent)]
    if (request.stream) {
      if (parent !== null) {
        const [found] = await run(incoming, identity, parentStatement)
        if (found?.length !== 1) throw notFound(parent.table, parent.text)
      }
      return respondStream(runner.stream(identity, rows), incoming)
    }
    const totalStatement = plan.total === null ? [] : [bind(plan.total)]
    const results = [...(await run(incoming, identity, [...parentStatement, rows, ...totalStatement]))]
    if (parent !== null && results.shift()?.length !== 1) throw notFound(parent.table, parent.text)
    const [found = [], total] = results
    const offset = startOf(request, plan.paging)
    return respondList({
      rows: found,
      limit: request.limit,
      offset,
      total: total?.[0]?.[0] ?? null,
      nextCursor(last) {
        const keys = last.slice(1).map(key => key?.toString() ?? null)
        const cursor = cursors.encode(scope, plan.paging === 'offset' ? [String(offset + request.limit)] : keys)
        // Without one the client would take this page for the last; who pages by offset needs none.
        if (cursor === null && request.offset === null) throw uncursorable()
        return cursor
      },
    })
  }

  return (incoming, route, identity) => {
    switch (route.kind) {
      case 'one':
        return one(incoming, route.table, route.id, identity)
      case 'list':
        return list(incoming, route.table, identity)
      case 'children':
        return children(incoming, route, identity)
    }
  }
}

function sizeOf(plan: ListPlan | Statement, key: string): number {
  const statements = 'text' in plan ? [plan] : [plan.rows, plan.total, plan.parent]
  return statements.reduce((sum, statement) => sum + (statement?.text.length ?? 0), key.length)
}

/** Where the page begins, as far as that is known as a number. */
function startOf(request: ListRequest, paging: ListTree['paging']): number {
  if (paging === 'offset' && request.cursor !== null) return Number(request.cursor.values[0] ?? 0)
  return request.offset?.value ?? 0
}

function tableNamed(catalog: Catalog, name: string): Table {
  const table = catalog.tables.get(name)
  if (table === undefined) throw unknownTable(catalog, name)
  return table
}

function idParameters(table: Table, id: string, shape: Shape): readonly Parameter[] {
  if (table.primaryKey.length === 0) {
    throw new GatewayError(
      'NOT_FOUND',
      `"${table.resource}" has no primary key, so its rows have no address; use filters on /api/${table.resource}`,
    )
  }
  return parseId(id, table.primaryKey).map(value => shape.value(value))
}

/** `child`, or `child!hint`; a name that has an exclamation mark itself is taken whole. */
function childRelation(parent: Table, child: string): Relation {
  const isChild = (name: string) =>
    parent.relations.some(known => (known.name === name || known.table === name) && known.cardinality === 'many')
  const mark = isChild(child) ? -1 : child.lastIndexOf('!')
  const relation = mark < 0 ? child : child.slice(0, mark)
  if (!isChild(relation)) throw unknownChild(parent, relation)
  return findRelation(parent, { relation, hint: mark < 0 ? null : child.slice(mark + 1), nested: true })
}

function uncursorable(): GatewayError {
  return new GatewayError(
    'PARSE_ERROR',
    'the sort values of the last row are too long for a cursor; sort by a shorter column, or page by offset, beginning with offset=0',
  )
}

function notFound(table: Table, id: string): GatewayError {
  return new GatewayError('NOT_FOUND', `"${table.resource}" has no row ${shorten(id)} that you may see`)
}

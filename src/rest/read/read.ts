/** Answers the reads of the API (docs/reference/reading.md): list, one row, children, aggregates, explain. */
import { assertAllowed } from '../../access/refusals.ts'
import { EVERYTHING, type View } from '../../access/rights.ts'
import type { Table } from '../../catalog/model.ts'
import { type Context, compile, type Mode } from '../../compile/compile.ts'
import { analyzed } from '../../compile/derive.ts'
import type { PlanCache } from '../../compile/plans.ts'
import type { BoundStatement, PagedStatement, ReadStatement, StreamStatement } from '../../compile/statement.ts'
import { GatewayError } from '../../errors.ts'
import type { Answer, Incoming } from '../../exchange.ts'
import type { Identity } from '../../identity/identity.ts'
import type { Expression, Parameter } from '../../language/tree/ast.ts'
import { seesFigures } from '../../run/explain-figures.ts'
import type { Reading, Row, Runner } from '../../run/run.ts'
import { bindValues } from '../bind.ts'
import { INSTEAD_OF_PUT, methodNotAllowed, methodsAt, methodsOf, READING } from '../method.ts'
import { parseQueryString } from '../parameters/query-string.ts'
import type { Route } from '../path.ts'
import { preferencesOf, withPreference } from '../prefer.ts'
import { idParameters, notFound, tableNamed } from '../resource.ts'
import { cacheUseOf, respondExplained, respondGroups, respondList, respondReadRow, respondStream } from '../respond.ts'
import { Shape } from '../shape.ts'
import { untilGone, whenRead } from '../until-gone.ts'
import { AGGREGATE_PARAMETERS, buildAggregate, parseAggregateRequest } from './aggregate.ts'
import type { CursorCodec } from './cursor.ts'
import { createRemembered, forgetful } from './remembered.ts'
import {
  LIST_PARAMETERS,
  type ListRequest,
  parseListRequest,
  parseOneRequest,
  type ReadLimits,
  refuseEmbedded,
  refuseMisspelt,
} from './request.ts'
import { buildList, buildOne, buildParent, childCondition, childRelation, type ListTree } from './tree.ts'

export interface ReaderParts {
  readonly view: (identity: Identity) => View
  readonly runner: Pick<Runner, 'read' | 'stream'>
  readonly limits: ReadLimits
  readonly cursors: CursorCodec
  readonly searchLanguage: string
  readonly plans: PlanCache
  /** Answers are kept, so the same requests come again: what they came to is kept as well. */
  readonly remembers: boolean
  /** Whoever may explain at all is told figures: the operator. */
  readonly operatorExplains?: boolean
}

export type ReadRoute = Extract<Route, { readonly kind: 'list' | 'one' | 'children' | 'aggregate' | 'explain' }>

/** At once where the answer was kept. */
export type Reader = (incoming: Incoming, route: ReadRoute, identity: Identity) => Answer | Promise<Answer>

interface ListPlan {
  readonly rows: ReadStatement | PagedStatement | StreamStatement
  readonly total: ReadStatement | null
  /** Says whether the parent of a child list is there. */
  readonly parent: ReadStatement | null
  readonly paging: ListTree['paging']
}

interface Planned {
  readonly table: Table
  readonly request: ListRequest
  readonly plan: ListPlan
  readonly shape: Shape
}

export function createReader(parts: ReaderParts): Reader {
  const { runner, limits, cursors } = parts
  const { plans } = parts
  const rowPlans = plans.plans<ReadStatement>('row', ({ text }) => text.length)
  const listPlans = plans.plans('list', charactersOf)
  const ones = parts.remembers
    ? createRemembered<BoundStatement<ReadStatement>>(plans, 'row request', ({ statement }) => statement.text.length)
    : forgetful<BoundStatement<ReadStatement>>()
  const lists = parts.remembers
    ? createRemembered<Planned>(plans, 'list request', ({ plan }) => charactersOf(plan))
    : forgetful<Planned>()
  /** Rows that are kept, ready to be sent. */
  const answered = new WeakMap<Reading, Answer>()

  const contextOf = (view: View): Context => ({ ...view, searchLanguage: parts.searchLanguage })

  /** Refused before anything else of the request is looked at. */
  const readable = (view: View, name: string): Table => {
    const table = tableNamed(view, name)
    assertAllowed('read', table, view.rights)
    return table
  }

  function one(incoming: Incoming, tableName: string, id: string, identity: Identity): Answer | Promise<Answer> {
    const view = parts.view(identity)
    const statement = ones.of(identity, view, addressOf(incoming), () =>
      planOne(incoming, identity, view, tableName, id),
    )
    const reading = runner.read(identity, [statement], incoming.usage.worked)
    const made = reading.kept === undefined ? undefined : answered.get(reading)
    if (made !== undefined) return made
    return whenRead(incoming, reading, ([rows]) => {
      const row = rows?.[0]?.[0]
      if (row === undefined || row === null) throw missing(tableNamed(view, tableName), id, reading)
      const answer = respondReadRow(row, cacheUseOf(reading))
      if (reading.kept !== undefined) answered.set(reading, answer)
      return answer
    })
  }

  function planOne(
    incoming: Incoming,
    identity: Identity,
    view: View,
    tableName: string,
    id: string,
  ): BoundStatement<ReadStatement> {
    const table = readable(view, tableName)
    const shape = new Shape(`one ${table.resource}`)
    const parameters = idParameters(table, id, shape)
    const given = parseQueryString(incoming.query)
    const request = parseOneRequest(given, shape, limits)
    const plan = rowPlans.of(identity, view, shape.key, () => {
      refuseEmbedded(given, table)
      return compile(buildOne(request, table, parameters, view, limits), contextOf(view), AS_ROWS)
    })
    return bindValues(plan, shape.values)
  }

  function list(incoming: Incoming, tableName: string, identity: Identity): Answer | Promise<Answer> {
    const view = parts.view(identity)
    const { prefer } = incoming.headers
    const request = prefer === undefined ? addressOf(incoming) : `${prefer}\n${addressOf(incoming)}`
    const planned = lists.of(identity, view, request, () => {
      const table = readable(view, tableName)
      return planList(incoming, identity, view, table, new Shape(`list ${table.resource}`), null)
    })
    return answerList(incoming, identity, planned, null)
  }

  function children(
    incoming: Incoming,
    route: ReadRoute & { kind: 'children' },
    identity: Identity,
  ): Answer | Promise<Answer> {
    const view = parts.view(identity)
    const parent = readable(view, route.table)
    const relation = childRelation(parent, route.child, view)
    const table = readable(view, relation.table)
    const shape = new Shape(`children ${parent.resource}`)
    shape.add(route.child)
    const id = idParameters(parent, route.id, shape)
    const within = () => childCondition(relation, parent, id, view.catalog)
    const above = { table: parent, id, text: route.id, within }
    return answerList(incoming, identity, planList(incoming, identity, view, table, shape, above), above)
  }

  interface Parent {
    readonly table: Table
    readonly id: readonly Parameter[]
    readonly text: string
    readonly within: () => Expression
  }

  function planList(
    incoming: Incoming,
    identity: Identity,
    view: View,
    table: Table,
    shape: Shape,
    parent: Parent | null,
  ): Planned {
    const parameters = parseQueryString(incoming.query)
    const request = parseListRequest(parameters, shape, limits, cursors, preferencesOf(incoming.headers))
    const plan = listPlans.of(identity, view, shape.key, (): ListPlan => {
      refuseMisspelt(parameters, table, view, LIST_PARAMETERS)
      refuseEmbedded(parameters, table)
      const tree = buildList(request, table, view, limits, parent === null ? null : parent.within())
      const context = contextOf(view)
      const rows = compile(tree.rows, context, modeOf(request, tree))
      const total = tree.total === null ? null : compile(tree.total, context, AS_ROWS)
      const above = parent === null ? null : compile(buildParent(parent.table, parent.id), context, AS_ROWS)
      return { rows, total, parent: above, paging: tree.paging }
    })
    const { cursor } = request
    if (cursor !== null) cursors.verify(scopeOf(table, request, plan), cursor.digest, cursor.values)
    return { table, request, plan, shape }
  }

  function answerList(
    incoming: Incoming,
    identity: Identity,
    { table, request, plan, shape }: Planned,
    parent: Parent | null,
  ): Answer | Promise<Answer> {
    const { worked } = incoming.usage
    const asked = plan.rows
    const parentStatement = plan.parent === null ? [] : [bindValues(plan.parent, shape.values)]
    const assertParent = (found: readonly Row[] | undefined, reading: Pick<Reading, 'kept'>) => {
      if (parent !== null && found?.length !== 1) throw missing(parent.table, parent.text, reading)
    }
    if (asked.kind === 'stream') {
      const rows = bindValues(asked, shape.values)
      const stream = () => respondStream(runner.stream(identity, rows, worked), incoming)
      if (parent === null) return stream()
      const looking = runner.read(identity, parentStatement, worked)
      return untilGone(incoming, looking).then(([found]) => {
        assertParent(found, looking)
        return stream()
      })
    }
    const rows = bindValues(asked, shape.values)
    const totalStatement = plan.total === null ? [] : [bindValues(plan.total, shape.values)]
    const reading = runner.read(identity, [...parentStatement, rows, ...totalStatement], worked)
    return whenRead(incoming, reading, results => {
      assertParent(results[0], reading)
      const [found = [], total] = results.slice(parentStatement.length)
      const offset = startOf(request, plan.paging)
      const page = respondList({
        rows: found,
        limit: request.limit,
        offset,
        total: total?.[0]?.[0] ?? null,
        use: cacheUseOf(reading),
        nextCursor(last) {
          const keys = last.slice(1).map(key => key?.toString() ?? null)
          const next = plan.paging === 'offset' ? [String(offset + request.limit)] : keys
          const cursor = cursors.encode(scopeOf(table, request, plan), next)
          // Without one the client would take this page for the last; who pages by offset needs none.
          if (cursor === null && request.offset === null) throw uncursorable()
          return cursor
        },
      })
      return request.total ? withPreference(page, 'count=exact') : page
    })
  }

  function aggregate(incoming: Incoming, tableName: string, identity: Identity): Answer | Promise<Answer> {
    const view = parts.view(identity)
    const table = readable(view, tableName)
    const shape = new Shape(`aggregate ${table.resource}`)
    const parameters = parseQueryString(incoming.query)
    const request = parseAggregateRequest(parameters, shape, limits)
    const plan = rowPlans.of(identity, view, shape.key, () => {
      refuseMisspelt(parameters, table, view, AGGREGATE_PARAMETERS)
      return compile(buildAggregate(request, table, view), contextOf(view), AS_ROWS)
    })
    const reading = runner.read(identity, [bindValues(plan, shape.values)], incoming.usage.worked)
    return whenRead(incoming, reading, ([rows = []]) => {
      const only = rows[0]?.[0]
      const use = cacheUseOf(reading)
      return request.groups === null && only !== undefined && only !== null
        ? respondReadRow(only, use)
        : respondGroups(rows, use)
    })
  }

  /** The plan of the list with these parameters, run in a transaction that can only read. */
  async function explain(incoming: Incoming, tableName: string, identity: Identity): Promise<Answer> {
    const view = parts.view(identity)
    const table = readable(view, tableName)
    const { plan, shape } = planList(incoming, identity, view, table, new Shape(`list ${table.resource}`), null)
    refuseCounting(view)
    const asked = bindValues(plan.rows, shape.values)
    const explaining = { ...asked, statement: analyzed(asked.statement) }
    const [rows] = await untilGone(incoming, runner.read(identity, [explaining], incoming.usage.worked))
    const found = rows?.[0]?.[0]
    if (found === undefined || found === null) throw new Error('EXPLAIN answers one row')
    return respondExplained(asked, found, parts.operatorExplains === true || seesFigures(identity))
  }

  /** Of rows that are not there, nothing is possible. */
  function refusedMethod(incoming: Incoming, route: ReadRoute, identity: Identity): GatewayError {
    if (route.kind !== 'list' && route.kind !== 'one') return methodNotAllowed(incoming, methodsOf(route.kind))
    const allowed = methodsAt(route.kind, tableNamed(parts.view(identity), route.table))
    return methodNotAllowed(incoming, allowed, incoming.method === 'PUT' ? INSTEAD_OF_PUT : undefined)
  }

  return (incoming, route, identity) => {
    if (!READING.includes(incoming.method)) throw refusedMethod(incoming, route, identity)
    switch (route.kind) {
      case 'one':
        return one(incoming, route.table, route.id, identity)
      case 'list':
        return list(incoming, route.table, identity)
      case 'children':
        return children(incoming, route, identity)
      case 'aggregate':
        return aggregate(incoming, route.table, identity)
      case 'explain':
        return explain(incoming, route.table, identity)
    }
  }
}

const AS_ROWS = { kind: 'read', form: 'rows' } as const

function modeOf({ stream }: ListRequest, { paging }: ListTree): Extract<Mode, { kind: 'stream' | 'paged' | 'read' }> {
  if (stream) return { kind: 'stream' }
  return paging === 'keys' ? { kind: 'paged' } : AS_ROWS
}

function charactersOf({ rows, total, parent }: ListPlan): number {
  return rows.text.length + (total?.text.length ?? 0) + (parent?.text.length ?? 0)
}

/** Of what is asked for, as it was sent; mostly the very text, which need not be put together to be looked up. */
function addressOf({ path, query }: Incoming): string {
  return query === '' ? path : `${path}?${query}`
}

/** A plan that was run says how many rows each condition left out: where a policy's is among them, that tells of rows that the caller may not see. */
function refuseCounting({ catalog, rights }: View): void {
  if (rights === EVERYTHING) return
  const limited = [...catalog.tables.values()].some(table => rights.of(table).rows.read !== null)
  if (!limited) return
  throw new GatewayError(
    'FORBIDDEN',
    '_explain would count rows that the route policy hides from you; ask as somebody who sees all',
  )
}

/** What a cursor belongs to. */
function scopeOf(table: Table, { distinct, sortText }: ListRequest, { paging }: ListPlan): string {
  return `${table.resource}\n${distinct?.column ?? ''}\n${paging}\n${sortText}`
}

/** Where the page begins, as far as that is known as a number. */
function startOf(request: ListRequest, paging: ListTree['paging']): number {
  if (paging === 'offset' && request.cursor !== null) return Number(request.cursor.values[0] ?? 0)
  return request.offset?.value ?? 0
}

/** A read that finds nothing has an `X-Cache` header like any other. */
function missing(table: Table, id: string, reading: Pick<Reading, 'kept'>): GatewayError {
  return notFound(table, id, { 'X-Cache': cacheUseOf(reading) })
}

function uncursorable(): GatewayError {
  return new GatewayError(
    'PARSE_ERROR',
    'the sort values of the last row are too long for a cursor; sort by a shorter column, or page by offset, beginning with offset=0',
  )
}

/**
 * The door of `POST /api/_query`: a text of the query language becomes the same tree, check and transaction
 * as any other request.
 */
import type { ParameterKey } from '../access/parameters.ts'
import type { Catalog, Table } from '../catalog/model.ts'
import { type Context, compile, type TextMode } from '../compile/compile.ts'
import type {
  BoundStatement,
  ExplainStatement,
  ReadStatement,
  Statement,
  StatementValue,
  StreamStatement,
  WriteStatement,
} from '../compile/statement.ts'
import { GatewayError } from '../errors.ts'
import type { Answer, Incoming } from '../exchange.ts'
import type { Identity } from '../identity/identity.ts'
import type { Add, Del, Get, Set as SetStatement, Statement as Tree } from '../language/tree/ast.ts'
import { NOWHERE } from '../language/tree/ast.ts'
import { headerOf } from '../rest/header.ts'
import { methodNotAllowed, methodsOf } from '../rest/method.ts'
import { nextTurn } from '../rest/next-turn.ts'
import { requireTable } from '../rest/resource.ts'
import { cacheUseOf, respondReadRows, respondWrittenRows, withTxid } from '../rest/respond.ts'
import type { RequestContext, RequestStep } from '../rest/steps.ts'
import { describeViolation } from '../rest/violation.ts'
import { parseRowsMax } from '../rest/write/request.ts'
import { seesFigures, withoutFigures } from '../run/explain-figures.ts'
import type { Row, WriteResult } from '../run/run.ts'
import { unreachable } from '../unreachable.ts'
import { type QueryRequest, readQueryRequest } from './request.ts'
import { createTextPlans, type TextPlans, type TextPlansParts } from './text-plans.ts'
import { encodeValue, type ListLimit, nameOf } from './values.ts'

export interface TextDoorParts extends TextPlansParts {
  readonly limits: { readonly maxResultRows: number } & ListLimit
  /** Whether plans are told to everybody who may read. */
  readonly explains: boolean
}

/** As in filtered writes of REST; no name of the language has a hyphen. */
const ROWS_MAX = { kind: 'named', name: 'X-Max-Affected', span: NOWHERE } as const

type Runnable = ReadStatement | StreamStatement | WriteStatement | ExplainStatement

export class QueryHandler {
  readonly #parts: TextDoorParts
  readonly #texts: TextPlans<Runnable>

  constructor(parts: TextDoorParts) {
    this.#parts = parts
    this.#texts = createTextPlans('text', parts)
  }

  /** What is sent, and nothing of it judged. */
  parse(incoming: Incoming): Promise<QueryRequest> {
    if (incoming.method !== 'POST') throw methodNotAllowed(incoming, methodsOf('query'))
    return readQueryRequest(incoming)
  }

  /** The approved statement of the text, kept for the next that sends it, with the values of this request. */
  ask(request: QueryRequest, { incoming, identity, view }: RequestContext): RequestStep | Promise<RequestStep> {
    const statement = this.#texts.of(request, incoming, identity, '', (tree, context) => this.#compiled(tree, context))
    const ask = (): RequestStep => {
      incoming.usage.table = firstTable(statement, view.catalog)
      const rowsMax = parseRowsMax(headerOf(incoming.headers, 'x-max-affected'))
      const parts = [{ statement, values: valuesOf(statement, request, rowsMax, this.#parts.limits) }]
      switch (statement.kind) {
        case 'stream':
          return { runs: 'stream', parts }
        case 'read':
          return { runs: 'read', parts, respond: ([rows = []], reading) => respondReadRows(rows, cacheUseOf(reading)) }
        case 'explain': {
          const shown = seesFigures(identity) ? (row: Row) => row : outlined
          return {
            runs: 'read',
            parts,
            respond: ([rows = []], reading) => respondReadRows(rows.map(shown), cacheUseOf(reading)),
          }
        }
        case 'write':
          return { runs: 'write', parts, respond: answerOfWrite, explain: error => describeViolation(error, view) }
        default:
          return unreachable(statement)
      }
    }
    return incoming.isLarge ? nextTurn().then(ask) : ask()
  }

  #compiled(tree: Tree, context: Context): Runnable {
    const rowsMax = this.#parts.limits.maxResultRows
    if (tree.kind !== 'explain') {
      const asked = askedOf(tree, rowsMax)
      return compile(asked.tree, context, asked.mode)
    }
    if (tree.statement.kind === 'explain') {
      throw new GatewayError('PARSE_ERROR', 'a plan has no plan; write explain once', { span: tree.statement.span })
    }
    if (!this.#parts.explains) throw new GatewayError('FORBIDDEN', 'explain is switched off (explain_endpoint)')
    const asked = askedOf(tree.statement, rowsMax)
    return compile(asked.tree, context, { kind: 'explain', of: asked.mode })
  }
}

function answerOfWrite([written]: readonly WriteResult[]): Answer {
  if (written === undefined) throw new Error('a statement has a result')
  const rows = written.rows.filter(row => row.length > 0)
  return withTxid(respondWrittenRows(200, rows, written.count), written)
}

/** What is to be run for a statement of a text. */
function askedOf(
  tree: Tree,
  rowsMax: number,
): { readonly tree: Get | Add | SetStatement | Del; readonly mode: TextMode } {
  switch (tree.kind) {
    case 'get':
      if (tree.purpose !== 'export')
        return { tree, mode: { kind: hasWrite(tree) ? 'writing text' : 'read text', rowsMax } }
      if (!hasWrite(tree)) return { tree, mode: { kind: 'stream text', rowsMax } }
      throw new GatewayError('PARSE_ERROR', 'export streams what it reads and changes nothing; write get', {
        span: tree.span,
      })
    case 'add':
      return { tree, mode: { kind: 'write text', changedMax: null } }
    case 'set':
    case 'del':
      return { tree, mode: { kind: 'write text', changedMax: ROWS_MAX } }
    default:
      throw new GatewayError(
        'FORBIDDEN',
        `${tree.kind} is not possible here; _query takes get, count, export, add, set, del, explain`,
        { span: tree.span },
      )
  }
}

/** A row of one cell, the plan. */
function outlined([plan]: Row): Row {
  return plan == null ? [] : [withoutFigures(plan)]
}

export type TextParts = TextPlansParts & { readonly limits: TextDoorParts['limits'] }

/** A text that reads, whose main table is `table`. */
export type TextReader = (request: QueryRequest, table: string, identity: Identity) => BoundStatement<ReadStatement>

/**
 * For whoever runs a text again and again: the same check and the same rows as `POST /api/_query`. Throws as
 * that answers.
 */
export function createTextReader(parts: TextParts): TextReader {
  const { approvals, limits } = parts
  const texts = createTextPlans<ReadStatement>('live query', parts)
  return (request, table, identity) => {
    const statement = texts.of(request, request, identity, table, (tree, context) => {
      if (tree.kind !== 'get' || tree.purpose === 'export' || hasWrite(tree)) {
        throw new GatewayError('FORBIDDEN', 'a live query reads: get or count, without export and without changes', {
          span: tree.span,
        })
      }
      const named = requireTable(context, table)
      if (!isMainTable(tree, named, context.catalog)) {
        throw new GatewayError('PARSE_ERROR', `the main table of the query is not "${named.resource}"`, {
          span: tree.source.span,
        })
      }
      return compile(tree, context, { kind: 'read text', rowsMax: limits.maxResultRows })
    })
    const values = valuesOf(statement, request, 0, limits)
    approvals?.answered(request)
    return { statement, values }
  }
}

function isMainTable({ source, with: clause }: Get, table: Table, catalog: Catalog): boolean {
  if (source.kind !== 'table source') return false
  const { schema, name } = source.table
  if (schema === null && clause?.tables.some(common => common.name.text === name) === true) return false
  return name === table.name && (schema ?? catalog.schemas[0]) === table.schema
}

/** The resource that it writes to, or reads first: for the access log. */
function firstTable({ dependencies }: Runnable, { schemas }: Catalog): string | null {
  const first = dependencies.writes[0]?.table ?? dependencies.reads[0]
  if (first === undefined) return null
  return first.schema === schemas[0] ? first.name : `${first.schema}.${first.name}`
}

/** Whether a common table anywhere at the top changes data; elsewhere the printer refuses it. */
function hasWrite({ with: clause }: Get): boolean {
  return clause?.tables.some(({ statement }) => statement.kind !== 'get') ?? false
}

function valuesOf(
  statement: Statement,
  { values }: QueryRequest,
  rowsMax: number,
  limits: ListLimit,
): readonly StatementValue[] {
  const used = new Set<ParameterKey>()
  const bound = statement.parameters.map(parameter => {
    if ('literal' in parameter) return parameter.literal
    const { key, use } = parameter
    if (key === ROWS_MAX.name) return String(rowsMax)
    used.add(key)
    const value = values.get(key)
    if (value === undefined) throw new Error(`parameter ${nameOf(key)} was given before`)
    return encodeValue(key, value, use, limits)
  })
  const unused = [...values.keys()].filter(key => !used.has(key))
  if (unused.length > 0) {
    throw new GatewayError(
      'PARSE_ERROR',
      `the query has no ${unused.map(nameOf).join(', ')}; leave out what it does not use`,
    )
  }
  return bound
}

/**
 * Handles `POST /api/_query`: a query-language text goes through the same tree, checks and transaction as any
 * other request.
 */
import { assertElements } from '../access/containment.ts'
import type { ParameterKey } from '../access/parameters.ts'
import { type Catalog, resourceName, type Table } from '../catalog/model.ts'
import { type Context, compile, type TextMode } from '../compile/compile.ts'
import type {
  BoundStatement,
  CompiledStatement,
  ExplainStatement,
  ReadStatement,
  StreamStatement,
  WriteStatement,
} from '../compile/statement.ts'
import { GatewayError } from '../errors.ts'
import type { Answer, Incoming } from '../exchange.ts'
import type { Identity } from '../identity/identity.ts'
import type { Add, Del, Get, Set as SetStatement, Statement as Tree } from '../language/tree/ast.ts'
import { NOWHERE } from '../language/tree/ast.ts'
import type { PendingValue } from '../rest/body/text-values.ts'
import { headerOf } from '../rest/header.ts'
import { methodNotAllowed, methodsOf } from '../rest/method.ts'
import { nextTurn } from '../rest/next-turn.ts'
import { requireTable } from '../rest/resource.ts'
import { cacheUseOf, respondReadRows, respondWrittenRows, withTxid } from '../rest/respond.ts'
import type { RequestContext, RequestStep } from '../rest/steps.ts'
import { Values } from '../rest/values.ts'
import { describeViolation } from '../rest/violation.ts'
import { parseRowsMax } from '../rest/write/request.ts'
import { seesFigures, withoutFigures } from '../run/explain-figures.ts'
import type { ResultRow, WriteResult } from '../run/run.ts'
import { unreachable } from '../unreachable.ts'
import { type QueryRequest, readQueryRequest } from './request.ts'
import { createTextPlans, type TextPlans, type TextPlansOptions } from './text-plans.ts'
import { encodeValue, parameterName, type ValueLimits } from './values.ts'

/** The dependencies of the handler of `POST /api/_query`. */
export interface QueryHandlerOptions extends TextPlansOptions {
  readonly limits: { readonly maxResultRows: number } & ValueLimits
  /** True if every caller who may read can get plans. */
  readonly explains: boolean
}

/**
 * As in filtered writes of REST. No name in the language contains a hyphen, so it cannot clash with a
 * parameter of the text.
 */
const ROWS_MAX = { kind: 'named', name: 'X-Max-Affected', span: NOWHERE } as const

type Runnable = ReadStatement | StreamStatement | WriteStatement | ExplainStatement

export class QueryHandler {
  readonly #parts: QueryHandlerOptions
  readonly #texts: TextPlans<Runnable>

  constructor(parts: QueryHandlerOptions) {
    this.#parts = parts
    this.#texts = createTextPlans('text', parts)
  }

  /** Reads the body, without checking the text. */
  parse(incoming: Incoming): Promise<QueryRequest> {
    if (incoming.method !== 'POST') throw methodNotAllowed(incoming, methodsOf('query'))
    return readQueryRequest(incoming, this.#parts.limits.maxParameters)
  }

  /** The approved statement of the text, kept for the next that sends it, with the values of this request. */
  toStep(request: QueryRequest, { incoming, identity, view }: RequestContext): Promise<RequestStep> {
    const statement = this.#texts.of(request, incoming, identity, '', (tree, context) => this.#compiled(tree, context))
    const run = async (): Promise<RequestStep> => {
      incoming.usage.table = firstTable(statement, view.catalog)
      const rowsMax = parseRowsMax(headerOf(incoming.headers, 'x-max-affected'))
      const values = valuesOf(statement, request, rowsMax, this.#parts.limits)
      if (!values.isReady) await values.finish()
      assertElements(statement.parameters, values.all)
      const parts = [{ statement, values: values.all }]
      switch (statement.kind) {
        case 'stream':
          return { runs: 'stream', parts }
        case 'read':
          return { runs: 'read', parts, respond: ([rows = []], reading) => respondReadRows(rows, cacheUseOf(reading)) }
        case 'explain': {
          const shown = seesFigures(identity) ? (row: ResultRow) => row : outlined
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
    return incoming.isLarge ? nextTurn().then(run) : run()
  }

  #compiled(tree: Tree, context: Context): Runnable {
    const rowsMax = this.#parts.limits.maxResultRows
    if (tree.kind !== 'explain') {
      const limited = askedOf(tree, rowsMax)
      return compile(limited.tree, context, limited.mode)
    }
    if (tree.statement.kind === 'explain') {
      throw new GatewayError('PARSE_ERROR', 'explain cannot be nested; write it once', { span: tree.statement.span })
    }
    if (!this.#parts.explains) throw new GatewayError('FORBIDDEN', 'explain is disabled: explain_endpoint is not "on"')
    const limited = askedOf(tree.statement, rowsMax)
    return compile(limited.tree, context, { kind: 'explain', of: limited.mode })
  }
}

function answerOfWrite([written]: readonly WriteResult[]): Answer {
  if (written === undefined) throw new Error('a statement has a result')
  const rows = written.rows.filter(row => row.length > 0)
  return withTxid(respondWrittenRows(200, rows, written.count), written)
}

/** The tree to run for a statement of a query text, and how its result is returned. */
function askedOf(
  tree: Tree,
  rowsMax: number,
): { readonly tree: Get | Add | SetStatement | Del; readonly mode: TextMode } {
  switch (tree.kind) {
    case 'get':
      if (tree.purpose !== 'export')
        return { tree, mode: { kind: hasWrite(tree) ? 'writing text' : 'read text', rowsMax } }
      if (!hasWrite(tree)) return { tree, mode: { kind: 'stream text', rowsMax } }
      throw new GatewayError('PARSE_ERROR', 'export cannot change data; write get', {
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

/** Reduces the plan's row to its only cell. */
function outlined([plan]: ResultRow): ResultRow {
  return plan == null ? [] : [withoutFigures(plan)]
}

/** What a text reader depends on. */
export type TextReaderOptions = TextPlansOptions & { readonly limits: QueryHandlerOptions['limits'] }

/** Compiles a text that reads and whose main table is `table`. */
export type TextReader = (request: QueryRequest, table: string, identity: Identity) => BoundStatement<ReadStatement>

/**
 * Creates a reader for texts that run repeatedly, with the same check and the same rows as `POST
 * /api/_query`.
 *
 * @throws the errors of `POST /api/_query`.
 */
export function createTextReader(parts: TextReaderOptions): TextReader {
  const { approvals, limits } = parts
  const texts = createTextPlans<ReadStatement>('live query', parts)
  return (request, table, identity) => {
    const statement = texts.of(request, request, identity, table, (tree, context) => {
      if (tree.kind !== 'get' || tree.purpose === 'export' || hasWrite(tree)) {
        throw new GatewayError('FORBIDDEN', 'a live query must be get or count, and cannot change data', {
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
    const bound = values.finished()
    assertElements(statement.parameters, bound)
    return { statement, values: bound }
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
  return first === undefined ? null : resourceName(first, schemas)
}

/** Reports whether a common table at the top level changes data; the printer rejects it elsewhere. */
function hasWrite({ with: clause }: Get): boolean {
  return clause?.tables.some(({ statement }) => statement.kind !== 'get') ?? false
}

function valuesOf(
  statement: CompiledStatement,
  { values }: QueryRequest,
  rowsMax: number,
  limits: ValueLimits,
): Values {
  const used = new Set<ParameterKey>()
  const given = (parameter: CompiledStatement['parameters'][number]): PendingValue => {
    if ('literal' in parameter) return parameter.literal
    const { key, use } = parameter
    if (key === ROWS_MAX.name) return String(rowsMax)
    used.add(key)
    const value = values.get(key)
    if (value === undefined) throw new Error(`parameter ${parameterName(key)} is given twice`)
    return encodeValue(key, value, use, limits)
  }
  const bound = new Values()
  for (const parameter of statement.parameters) bound.add(given(parameter))
  const unused = [...values.keys()].filter(key => !used.has(key))
  if (unused.length > 0) {
    throw new GatewayError(
      'PARSE_ERROR',
      `the query has no ${unused.map(parameterName).join(', ')}; remove the parameters that it does not use`,
    )
  }
  return bound
}

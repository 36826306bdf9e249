/**
 * Handles calls of stored functions (docs/reference/functions.md): `POST /api/rpc/{function}`, and GET for
 * functions that do not change data.
 */
import { readableResult } from '../../access/columns.ts'
import type { Column, DatabaseFunction } from '../../catalog/model.ts'
import type { BoundStatement, CompiledStatement } from '../../compile/statement.ts'
import { GatewayError } from '../../errors.ts'
import type { Incoming } from '../../exchange.ts'
import { shorten } from '../../text/shorten.ts'
import { readJsonBody } from '../body/body.ts'
import { headerOf } from '../header.ts'
import { methodNotAllowed, methodsOf } from '../method.ts'
import { nextTurn } from '../next-turn.ts'
import type { WrittenParameter } from '../parameters/request-parameters.ts'
import { type DataRoute, parametersIn, type WrittenRequest } from '../request.ts'
import type { RequestContext, RequestStep } from '../steps.ts'
import { Values } from '../values.ts'
import { describeViolation } from '../violation.ts'
import { nameRefusedArgument } from './argument-error.ts'
import { argumentKeys, argumentsOfBody, argumentsOfQuery, POSITIONAL_MAX } from './arguments.ts'
import { bindArguments } from './bind-arguments.ts'
import type { FunctionList } from './function-list.ts'
import { callName, functionsNamed, type NameRules } from './names.ts'
import type { PassedArguments } from './passed-arguments.ts'
import { resolveOverload } from './resolve.ts'
import { aboutFunction, respondBinary, respondText } from './respond.ts'
import { parseResultRequest, type ResultLimits, refuseParameters, WHOLE_RESULT } from './result-request.ts'
import { resultTypeNames } from './result-types.ts'
import { printSignatures } from './signature.ts'
import { type CallTree, formOf } from './tree.ts'

/** The dependencies of the call handler. */
export interface CallHandlerOptions {
  readonly limits: ResultLimits
  /** `rpc_require_schema_qualified`: whether names must include the schema. */
  readonly qualified: boolean
  /** The current list of `rpc_allowlist_path`, or null if every function can be called. */
  readonly allowed: () => FunctionList | null
  /** `rpc_signature_check`: whether PostgreSQL parses new statements before the first call. */
  readonly signatureCheck: boolean
}

type RpcRoute = DataRoute & { readonly kind: 'rpc' }

/** A call whose arguments were read but not yet matched with an overload. */
interface Called {
  readonly overloads: readonly DatabaseFunction[]
  readonly name: string
  readonly format: CallTree['format']
  readonly given: PassedArguments
  readonly others: readonly WrittenParameter[]
}

/** Turns calls into steps. */
export class CallHandler {
  readonly #parts: CallHandlerOptions
  /** The statements that PostgreSQL has parsed without an error. */
  readonly #parsed = new WeakSet<CompiledStatement>()
  /** The parts of responses that are the same for each call of a function. */
  readonly #about = new WeakMap<DatabaseFunction, Readonly<Record<CallTree['format'], string>>>()

  constructor(parts: CallHandlerOptions) {
    this.#parts = parts
  }

  toStep(written: WrittenRequest, route: RpcRoute, context: RequestContext): RequestStep | Promise<RequestStep> {
    const { incoming, view } = context
    const rules: NameRules = { qualified: this.#parts.qualified, allowed: this.#parts.allowed() }
    const overloads = functionsNamed(view.catalog, route.function, rules)
    const name = nameOf(overloads, rules)
    assertMethod(incoming, overloads, name)
    const format = formatOf(incoming)
    const { given, others } = readArguments(written, incoming, overloads, name)
    const called: Called = { overloads, name, format, given, others }
    return incoming.isLarge ? nextTurn().then(() => this.#toStep(called, context)) : this.#toStep(called, context)
  }

  #toStep({ overloads, name, format, given, others }: Called, { incoming, view }: RequestContext): RequestStep {
    const resolved = resolveOverload(overloads, given, name)
    const { function: of } = resolved
    const read = of.volatility !== 'volatile'
    if (!read && isGet(incoming)) throw methodNotAllowed(incoming, ['POST'], volatileHint(name))
    const values = new Values()
    const args = bindArguments(resolved, given, values, name, view.limits)
    const hasRows = of.returnsSet && of.result.kind !== 'void'
    if (!hasRows) refuseParameters(others, of, name)
    const columns = readableResult(of, view)
    refuseUntyped(of, others, columns)
    const result = hasRows ? parseResultRequest(others, values, this.#parts.limits) : WHOLE_RESULT
    const tree: CallTree = { kind: 'call', of, name, format, arguments: args, result, parameters: others, columns }
    const form = formOf(tree)
    const call = (statement: BoundStatement): RequestStep => ({
      runs: 'call',
      parts: [statement],
      how: { access: read ? 'read only' : 'read write', isStable: read, format: form === 'nothing' ? 'text' : format },
      respond: rows => {
        const outcome = { about: this.#aboutOf(of, name, format), set: of.returnsSet, form, called: rows, read }
        return format === 'text' ? respondText(outcome) : respondBinary(outcome, resultTypeNames(columns))
      },
      failed: error => {
        // The function may have been replaced, so PostgreSQL parses the statement again before the next call.
        this.#parsed.delete(statement.statement)
        throw error
      },
    })
    return {
      runs: 'nothing',
      parts: [{ tree, values }],
      respond: statements => this.#checked(only(statements), call, overloads, name),
      explain: error => nameRefusedArgument(describeViolation(error, view), resolved.arguments),
    }
  }

  #aboutOf(of: DatabaseFunction, name: string, format: CallTree['format']): string {
    const known = this.#about.get(of)
    if (known !== undefined) return known[format]
    const about = { text: aboutFunction(name, 'text'), binary: aboutFunction(name, 'binary') }
    this.#about.set(of, about)
    return about[format]
  }

  /** The call itself, or the parse of a new statement followed by the call. */
  #checked(
    statement: BoundStatement,
    call: (statement: BoundStatement) => RequestStep,
    overloads: readonly DatabaseFunction[],
    name: string,
  ): RequestStep {
    if (!this.#parts.signatureCheck || this.#parsed.has(statement.statement)) return call(statement)
    return {
      runs: 'parse',
      parts: [statement],
      respond: () => {
        this.#parsed.add(statement.statement)
        return call(statement)
      },
      failed(error) {
        if (!(error instanceof GatewayError) || error.code !== 'QUERY_ERROR') throw error
        throw new GatewayError('PARSE_ERROR', `${error.message}; call ${printSignatures(overloads, name)}`)
      },
    }
  }
}

function only([statement]: readonly BoundStatement[]): BoundStatement {
  if (statement === undefined) throw new Error('a call must have one statement')
  return statement
}

function nameOf([first]: readonly DatabaseFunction[], rules: NameRules): string {
  if (first === undefined) throw new Error('a resolved name must have a function')
  return callName(first, rules)
}

function isGet({ method }: Incoming): boolean {
  return method === 'GET' || method === 'HEAD'
}

function volatileHint(name: string): string {
  return (
    `function "${name}" is VOLATILE, so a call can change data; ` +
    'call it with POST, or declare it STABLE or IMMUTABLE if it only reads'
  )
}

/**
 * Accepts GET if at least one overload does not change data. The overload that is called is checked again
 * later.
 */
function assertMethod(incoming: Incoming, overloads: readonly DatabaseFunction[], name: string): void {
  if (incoming.method === 'POST') return
  const reads = overloads.some(({ volatility }) => volatility !== 'volatile')
  const allowed = reads ? methodsOf('rpc') : ['POST']
  if (allowed.includes(incoming.method)) return
  throw methodNotAllowed(incoming, allowed, isGet(incoming) ? volatileHint(name) : undefined)
}

const FORMAT_HEADER = 'x-svc-result-format'

function formatOf({ headers }: Incoming): CallTree['format'] {
  const value = headerOf(headers, FORMAT_HEADER) ?? 'text'
  if (value === 'text' || value === 'binary') return value
  throw new GatewayError('PARSE_ERROR', `${FORMAT_HEADER} "${shorten(value)}" is neither text nor binary`)
}

function readArguments(
  written: WrittenRequest,
  incoming: Incoming,
  overloads: readonly DatabaseFunction[],
  name: string,
): Pick<Called, 'given' | 'others'> {
  const parameters = parametersIn(written)
  if (isGet(incoming)) return argumentsOfQuery(parameters, overloads)
  const body = readJsonBody(incoming, POSITIONAL_MAX, argumentKeys(overloads, name))
  return { given: argumentsOfBody(body), others: parameters }
}

/**
 * Rejects filters on a result of a polymorphic type. Only PostgreSQL knows the actual type, so the value of a
 * filter would have no type.
 */
function refuseUntyped(of: DatabaseFunction, others: readonly WrittenParameter[], columns: readonly Column[]): void {
  const filtering = others.find(({ name }) => !UNTYPED_TAKES.has(name))
  if (filtering === undefined) return
  const untyped = columns.find(({ type }) => type.kind === 'pseudo')
  if (untyped === undefined) return
  throw new GatewayError(
    'PARSE_ERROR',
    `the result of "${of.resource}" is of type ${untyped.typeText}, ` +
      `which takes select, limit and offset, but not "${shorten(filtering.name)}"`,
  )
}

const UNTYPED_TAKES: ReadonlySet<string> = new Set(['select', 'limit', 'offset'])

/** Answers calls of stored functions (docs/reference/functions.md): `POST /api/rpc/{function}`, and GET for those that change nothing. */
import { readableResult } from '../../access/columns.ts'
import type { View } from '../../access/rights.ts'
import type { Column, DatabaseFunction } from '../../catalog/model.ts'
import { compile, type Form } from '../../compile/compile.ts'
import type { PlanCache } from '../../compile/plans.ts'
import type { CallStatement } from '../../compile/statement.ts'
import { GatewayError } from '../../errors.ts'
import type { Answer, Incoming } from '../../exchange.ts'
import type { Identity } from '../../identity/identity.ts'
import type { Runner } from '../../run/run.ts'
import { shorten } from '../../text/shorten.ts'
import { bindValues } from '../bind.ts'
import { readJsonBody } from '../body/body.ts'
import { headerOf } from '../header.ts'
import { methodNotAllowed, methodsOf } from '../method.ts'
import { parseQueryString, type QueryParameter } from '../parameters/query-string.ts'
import type { Route } from '../path.ts'
import { Shape } from '../shape.ts'
import { nextTurn } from '../turn.ts'
import { untilGone } from '../until-gone.ts'
import { describeViolation } from '../violation.ts'
import { nameRefusedArgument } from './argument-error.ts'
import { argumentKeys, givenByBody, givenByQuery, POSITIONAL_MAX } from './arguments.ts'
import { bindArguments } from './bind-arguments.ts'
import type { FunctionList } from './function-list.ts'
import type { Given } from './given.ts'
import { callName, functionsNamed, type NameRules } from './names.ts'
import { resolve } from './resolve.ts'
import { aboutFunction, respondBinary, respondText } from './respond.ts'
import {
  parseResultRequest,
  type ResultLimits,
  refuseMisspelt,
  refuseParameters,
  WHOLE_RESULT,
} from './result-request.ts'
import { printSignatures } from './signature.ts'
import { buildCall, type CallTree } from './tree.ts'
import { typeNames } from './type-of.ts'

export interface CallerParts {
  readonly view: (identity: Identity) => View
  readonly runner: Runner
  readonly limits: ResultLimits
  readonly searchLanguage: string
  readonly plans: PlanCache
  /** `rpc_require_schema_qualified`. */
  readonly qualified: boolean
  /** `rpc_allowlist_path`, as it was read last; null: every function may be called. */
  readonly allowed: () => FunctionList | null
  /** `rpc_signature_check`. */
  readonly signatureCheck: boolean
}

export type RpcRoute = Extract<Route, { readonly kind: 'rpc' }>

/** Throws or rejects. */
export type Caller = (incoming: Incoming, route: RpcRoute, identity: Identity) => Promise<Answer>

interface CallPlan {
  readonly call: CallStatement
  readonly form: CallTree['form']
  readonly about: string
}

type Format = 'text' | 'binary'

/** A call that was read and is not resolved yet. */
interface Called {
  readonly incoming: Incoming
  readonly identity: Identity
  readonly view: View
  readonly overloads: readonly DatabaseFunction[]
  readonly name: string
  readonly format: Format
  readonly given: Given
  readonly others: readonly QueryParameter[]
}

export function createCaller(parts: CallerParts): Caller {
  const { runner, limits, searchLanguage, signatureCheck } = parts
  const plans = parts.plans.plans<CallPlan>('call', ({ call, about }) => call.text.length + about.length)
  /** Those that PostgreSQL has read without complaint. */
  const parsed = new WeakSet<CallPlan>()

  /** Whether PostgreSQL takes the statement; what it says against it goes to `refuse`. */
  function parse(incoming: Incoming, plan: CallPlan, identity: Identity, refuse: (m: string) => never): Promise<void> {
    return untilGone(incoming, runner.parse(identity, plan.call, incoming.usage.worked)).then(
      () => void parsed.add(plan),
      (error: unknown) => {
        if (error instanceof GatewayError && error.code === 'QUERY_ERROR') refuse(error.message)
        throw error
      },
    )
  }

  function answer({ incoming, identity, view, overloads, name, format, given, others }: Called): Promise<Answer> {
    const resolved = resolve(overloads, given, name)
    const { function: of } = resolved
    const read = of.volatility !== 'volatile'
    if (!read && isGet(incoming)) throw methodNotAllowed(incoming, ['POST'], volatileHint(name))

    const shape = new Shape(`rpc ${of.resource}`)
    shape.add(of.identityArgs)
    shape.add(format)
    const args = bindArguments(resolved, given, shape, name)
    const hasRows = of.returnsSet && of.result.kind !== 'void'
    if (!hasRows) refuseParameters(others, of, name)
    const columns = readableResult(of, view)
    refuseUntyped(of, others, columns)
    const request = hasRows ? parseResultRequest(others, shape, limits) : WHOLE_RESULT
    const plan = plans.of(identity, view, shape.key, (): CallPlan => {
      refuseMisspelt(others, of, columns, name)
      const { get, form } = buildCall(of, args(), request, columns)
      const call = compile(get, { ...view, searchLanguage }, { kind: 'call', form: printedAs(form, format) })
      return { call, form, about: aboutFunction(name, format) }
    })

    function call(): Promise<Answer> {
      const access = read ? 'read only' : 'read write'
      const how = { access, format: plan.form === 'nothing' ? 'text' : format } as const
      const running = runner.call(identity, bindValues(plan.call, shape.values), how, incoming.usage.worked)
      return untilGone(incoming, running).then(
        called => {
          incoming.usage.answered()
          const { about, form } = plan
          const outcome = { about, set: of.returnsSet, form, called, read }
          return format === 'text' ? respondText(outcome) : respondBinary(outcome, typeNames(columns))
        },
        (error: unknown) => {
          // The function may be another by now: PostgreSQL is asked again before the next call.
          parsed.delete(plan)
          throw describeViolation(nameRefusedArgument(error, resolved.arguments), view)
        },
      )
    }
    if (!signatureCheck || parsed.has(plan)) return call()
    return parse(incoming, plan, identity, message => {
      throw new GatewayError('PARSE_ERROR', `${message}; call ${printSignatures(overloads, name)}`)
    }).then(call)
  }

  return (incoming, route, identity) => {
    const view = parts.view(identity)
    const rules: NameRules = { qualified: parts.qualified, allowed: parts.allowed() }
    const overloads = functionsNamed(view.catalog, route.function, rules)
    const name = nameOf(overloads, rules)
    assertMethod(incoming, overloads, name)
    const format = formatOf(incoming)
    const { given, others } = readRequest(incoming, overloads, name)
    const called: Called = { incoming, identity, view, overloads, name, format, given, others }
    return incoming.isLarge ? nextTurn().then(() => answer(called)) : answer(called)
  }
}

function nameOf([first]: readonly DatabaseFunction[], rules: NameRules): string {
  if (first === undefined) throw new Error('a name means at least one function')
  return callName(first, rules)
}

function isGet({ method }: Incoming): boolean {
  return method === 'GET' || method === 'HEAD'
}

function volatileHint(name: string): string {
  return `function "${name}" is VOLATILE, which means that a call may change data; call it by POST, or declare it STABLE or IMMUTABLE if it only reads`
}

/** GET where nothing is changed by it; which of the functions is meant may still say that something is. */
function assertMethod(incoming: Incoming, overloads: readonly DatabaseFunction[], name: string): void {
  if (incoming.method === 'POST') return
  const reads = overloads.some(({ volatility }) => volatility !== 'volatile')
  const allowed = reads ? methodsOf('rpc') : ['POST']
  if (allowed.includes(incoming.method)) return
  throw methodNotAllowed(incoming, allowed, isGet(incoming) ? volatileHint(name) : undefined)
}

const FORMAT_HEADER = 'x-svc-result-format'

function formatOf({ headers }: Incoming): Format {
  const value = headerOf(headers, FORMAT_HEADER) ?? 'text'
  if (value === 'text' || value === 'binary') return value
  throw new GatewayError('PARSE_ERROR', `${FORMAT_HEADER} "${shorten(value)}" is neither text nor binary`)
}

function readRequest(
  incoming: Incoming,
  overloads: readonly DatabaseFunction[],
  name: string,
): { readonly given: Given; readonly others: readonly QueryParameter[] } {
  const parameters = parseQueryString(incoming.query)
  if (isGet(incoming)) return givenByQuery(parameters, overloads)
  return {
    given: givenByBody(readJsonBody(incoming, POSITIONAL_MAX, argumentKeys(overloads, name))),
    others: parameters,
  }
}

/** The type of a polymorphic result is known to PostgreSQL alone, so there is nothing to type a filter's value by. */
function refuseUntyped(of: DatabaseFunction, others: readonly QueryParameter[], columns: readonly Column[]): void {
  const filtering = others.find(({ name }) => !UNTYPED_TAKES.has(name))
  if (filtering === undefined) return
  const untyped = columns.find(({ type }) => type.kind === 'pseudo')
  if (untyped === undefined) return
  throw new GatewayError(
    'PARSE_ERROR',
    `the result of "${of.resource}" is of type ${untyped.typeText}, which takes select, limit and offset, but no "${shorten(filtering.name)}"`,
  )
}

const UNTYPED_TAKES: ReadonlySet<string> = new Set(['select', 'limit', 'offset'])

function printedAs(form: CallTree['form'], format: Format): Form {
  if (form === 'nothing') return 'value'
  if (format === 'binary') return 'columns'
  return form === 'value' ? 'value' : 'rows'
}

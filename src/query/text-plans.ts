/**
 * Caches the compiled statements of query-language texts, since applications send the same texts with
 * different parameters. The cache key includes everything that the check uses of the parameters: the type of
 * each, if the query does not determine it, and its size class.
 */
import type { IsCallable } from '../access/functions.ts'
import type { Approvals } from '../access/list/approvals.ts'
import type { QueryShape } from '../access/list/pattern.ts'
import { shapeOfQuery } from '../access/list/query-shape.ts'
import type { View } from '../access/rights.ts'
import type { Context } from '../compile/compile.ts'
import type { PlanCache, PlanKind } from '../compile/plans.ts'
import type { CompiledStatement } from '../compile/statement.ts'
import { GatewayError } from '../errors.ts'
import type { Identity } from '../identity/identity.ts'
import type { JsonValue } from '../json/json-body.ts'
import { withSqlHint } from '../language/hints/sql-hints.ts'
import { lineColumnAt } from '../language/syntax/line-column.ts'
import { parse } from '../language/syntax/parse.ts'
import { QuerySyntaxError } from '../language/syntax/syntax-error.ts'
import type { InValues, Parameter, Statement as Tree } from '../language/tree/ast.ts'
import { LanguageError } from '../language/tree/error.ts'
import { visit } from '../language/tree/walk.ts'
import { tooManyValues } from '../rest/parameters/list-values.ts'
import { LIMIT_NAMES } from '../statement-limits.ts'
import type { QueryRequest } from './request.ts'
import { parameterName, typeOfValue, type ValueLimits } from './values.ts'

/** Dependencies of the cache of text plans. */
export interface TextPlansOptions {
  readonly view: (identity: Identity) => View
  readonly searchLanguage: string
  /** The allow-list; null if every query is allowed. */
  readonly approvals: Approvals | null
  readonly isCallable: IsCallable
  /** The list of functions behind `isCallable`. A changed list is a different object. */
  readonly allowed: () => object | null
  readonly limits: ValueLimits
  readonly plans: PlanCache
}

/** The cache of compiled texts. */
export interface TextPlans<S extends CompiledStatement> {
  /**
   * Returns the statement to run for the text. `asker` identifies the request until it is answered, as for
   * `Approvals`. `compiled` is called for a text that is not cached for this `purpose`; its result must
   * depend only on its arguments. Errors about a part of the text include the position.
   */
  of(
    request: QueryRequest,
    context: object,
    identity: Identity,
    purpose: string,
    compiled: (tree: Tree, context: Context) => S,
  ): S
}

/** Maximum length of a cached text. Longer texts are parsed and checked each time. */
export const TEXT_CHARACTERS_MAX: number = 16 * 1024

interface TextPlan<S> {
  readonly statement: S
  /**
   * The query's shape for the allow-list; null if absent, because formatting takes longer than
   * parsing.
   */
  readonly shape: Pick<QueryShape, 'key' | 'values'> | null
}

/** Creates a cache of compiled texts. */
export function createTextPlans<S extends CompiledStatement>(kind: PlanKind, parts: TextPlansOptions): TextPlans<S> {
  const { view: viewOf, approvals, limits, searchLanguage, isCallable } = parts
  // The values of a shape are parts of the text.
  const plans = parts.plans.plans<TextPlan<S>>(kind, ({ statement, shape }) =>
    shape === null ? statement.text.length : statement.text.length + shape.key.length,
  )
  let allowed: object | null = null
  let generation = 0

  /** A plan may only call functions that were callable when it was compiled. */
  function currentGeneration(): number {
    const current = parts.allowed()
    if (current !== allowed) {
      allowed = current
      generation += 1
    }
    return generation
  }

  /** Parses and approves the text, and checks that every parameter has a value. */
  function open(request: QueryRequest, context: object): { readonly tree: Tree; readonly shape: TextPlan<S>['shape'] } {
    const tree = parse(request.text)
    const shape = approvals === null ? null : shapeOfQuery(tree)
    if (shape !== null) approvals?.approve(context, shape)
    visit(tree, {
      parameter: parameter => void givenFor(parameter, request),
      list: list => assertListed(list, limits),
    })
    return { tree, shape: shape === null ? null : { key: shape.key, values: shape.values } }
  }

  return {
    of(request, context, identity, purpose, compiled) {
      const view = viewOf(identity)
      const { text } = request
      let opened: ReturnType<typeof open> | null = null
      const plan = (bytesOf: (value: JsonValue) => number): TextPlan<S> =>
        withPlaces(text, () => {
          opened ??= open(request, context)
          const statement = compiled(opened.tree, {
            ...view,
            ...{ rowsFirst: true, searchLanguage, isCallable },
            parameterType: parameter => typeOfValue(givenFor(parameter, request)),
            parameterBytes: parameter => bytesOf(givenFor(parameter, request)),
          })
          return { statement, shape: opened.shape }
        })
      if (text.length > TEXT_CHARACTERS_MAX) return plan(exactBytes).statement
      const key = `${currentGeneration()} ${purpose}\n${printClasses(request)}\n${text}`
      try {
        const { statement, shape } = plans.of(identity, view, key, () => plan(bytesInClass))
        if (opened === null && shape !== null) {
          approvals?.approve(context, { ...shape, line: () => shapeOfQuery(parse(text)).line() })
        }
        return statement
      } catch (error) {
        // The query may still pass with the actual values.
        if (opened === null || !isAboutSize(error)) throw error
        return plan(exactBytes).statement
      }
    },
  }
}

// ---- parameter classes ------------------------------------------------------------------------------------

/** The smallest size class of values is up to 2^10 bytes; each further class is twice as large. */
const FIRST_CLASS_BITS = 10

/** Short values have a smaller class, because a search has one for each column. */
const SHORT_BITS = 5

function classOf(bytes: number): number {
  return bytes <= 2 ** SHORT_BITS ? SHORT_BITS : Math.max(FIRST_CLASS_BITS, 32 - Math.clz32(bytes - 1))
}

function exactBytes({ bytes }: JsonValue): number {
  return bytes.length
}

/**
 * The largest size in the value's class. The check limits the sum of sizes, so values that pass with the
 * largest size of their class pass with any.
 */
function bytesInClass({ bytes }: JsonValue): number {
  return 2 ** classOf(bytes.length)
}

/** The types and size classes of all values. Two requests with the same result pass the same checks. */
export function printClasses({ values }: QueryRequest): string {
  let text = ''
  for (const [key, value] of values) {
    const name = String(key)
    text += `${name.length}:${name} ${typeOfValue(value)} ${classOf(value.bytes.length)};`
  }
  return text
}

/** Limits whose use depends on the size of values. */
const OF_SIZES: ReadonlySet<string> = new Set([LIMIT_NAMES.maxBuiltValueBytes, LIMIT_NAMES.maxPatternBytes])

function isAboutSize(error: unknown): boolean {
  return error instanceof GatewayError && error.limit !== undefined && OF_SIZES.has(error.limit)
}

function givenFor(parameter: Parameter, { values }: QueryRequest): JsonValue {
  const key = parameter.kind === 'position' ? parameter.n : parameter.name
  const value = values.get(key)
  if (value !== undefined) return value
  throw new GatewayError('PARSE_ERROR', `parameter ${parameterName(key)} has no value; give it in "parameters"`, {
    span: parameter.span,
  })
}

function assertListed({ values, span }: InValues, { maxInValues }: ValueLimits): void {
  if (values.length <= maxInValues) return
  throw new GatewayError('PARSE_ERROR', `the list ${tooManyValues(maxInValues)}`, {
    span,
    limit: LIMIT_NAMES.maxInValues,
  })
}

// ---- positions in the text --------------------------------------------------------------------------------

/** Adds the position in the text to errors about a part of it. */
function withPlaces<T>(text: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (error instanceof QuerySyntaxError) throw syntaxError(withSqlHint(error, text))
    if (error instanceof LanguageError) {
      if (error.span === null) throw new GatewayError('PARSE_ERROR', error.message, { cause: error })
      throw placed('PARSE_ERROR', error.message, error.span, text, error)
    }
    if (error instanceof GatewayError && error.span !== undefined) {
      throw placed(error.code, error.message, error.span, text, error)
    }
    throw error
  }
}

function syntaxError(error: QuerySyntaxError): GatewayError {
  const { problem, line, column, found, expected, hint } = error
  return new GatewayError('PARSE_ERROR', `${problem} (line ${line}, column ${column})`, {
    details: { line, column, found, expected, source: error.sourceLine },
    ...(hint === null ? {} : { hint }),
    cause: error,
  })
}

function placed(
  code: GatewayError['code'],
  message: string,
  span: { readonly start: number },
  text: string,
  cause: unknown,
): GatewayError {
  const { line, column } = lineColumnAt(text, span.start)
  const limit = cause instanceof GatewayError && cause.limit !== undefined ? { limit: cause.limit } : {}
  return new GatewayError(code, `${message} (line ${line}, column ${column})`, {
    ...limit,
    details: { line, column },
    cause,
  })
}

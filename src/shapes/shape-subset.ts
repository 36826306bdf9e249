/**
 * Subsets: sorted parts of the rows of a shape, which a client that replicates only changes reads on demand.
 * They are parameters `subset__…` of a GET, or the JSON body of a POST.
 */
import { integer } from '../language/tree/build.ts'
import type { TextPart } from '../realtime/subscription-plan.ts'
import { ShapeProblem } from './shape-problem.ts'
import { type ConditionScope, parseSqlCondition, parseSqlOrder } from './sql-condition.ts'

/** A part of the rows of a shape. */
export interface ShapeSubset {
  readonly where: string | null
  readonly params: ReadonlyMap<number, string>
  readonly orderBy: string | null
  readonly limit: string | null
  readonly offset: string | null
}

const PREFIX = 'subset__'

/** Structured forms of the condition and the order, which clients send as well. Only the texts are used. */
const IGNORED: ReadonlySet<string> = new Set(['where_expr', 'order_by_expr'])

/** The members of a subset. */
const MEMBERS: ReadonlySet<string> = new Set(['where', 'params', 'order_by', 'limit', 'offset'])

/** The subset that parameters describe; null without one. */
export function subsetIn(given: ReadonlyMap<string, string>): ShapeSubset | null {
  const members = [...given].flatMap(([name, value]) =>
    name.startsWith(PREFIX) ? [[name.slice(PREFIX.length), value] as const] : [],
  )
  if (members.length === 0) return null
  const { params, ...others }: Record<string, unknown> = Object.fromEntries(members)
  return subsetOf({
    ...others,
    ...(params === undefined ? {} : { params: parsedJson(String(params), 'subset__params') }),
  })
}

/** The subset that the body of a POST describes; all rows of the shape without a body. */
export function subsetInBody(body: Buffer): ShapeSubset {
  const members = body.length === 0 ? {} : parsedJson(body.toString(), 'body')
  if (!isObject(members)) throw new ShapeProblem('body', 'must be a JSON object')
  return subsetOf(members)
}

/** The subset in the form of the subscription's plan. */
export function subsetPart(
  subset: ShapeSubset,
  { table, queryable }: Pick<ConditionScope, 'table' | 'queryable'>,
  maxInValues: number,
): TextPart {
  return (values, alias) => {
    const scope = { table, alias, values, params: subset.params, maxInValues, queryable }
    const where = inParameter('subset__where', () =>
      subset.where === null ? null : parseSqlCondition(subset.where, scope),
    )
    const orderBy = inParameter('subset__order_by', () =>
      subset.orderBy === null ? [] : parseSqlOrder(subset.orderBy, scope),
    )
    return {
      ...{ where, orderBy },
      limit: subset.limit === null ? null : integer(subset.limit),
      offset: subset.offset === null ? null : integer(subset.offset),
    }
  }
}

function subsetOf(members: Readonly<Record<string, unknown>>): ShapeSubset {
  const unknown = Object.keys(members).find(name => !MEMBERS.has(name) && !IGNORED.has(name))
  if (unknown !== undefined) throw new ShapeProblem(`${PREFIX}${unknown}`, 'is unknown')
  const subset = {
    where: textIn(members, 'where'),
    params: paramsIn(members.params),
    orderBy: textIn(members, 'order_by'),
    limit: countIn(members, 'limit', 1),
    offset: countIn(members, 'offset', 0),
  }
  if (subset.orderBy === null && (subset.limit !== null || subset.offset !== null))
    throw new ShapeProblem('subset__order_by', 'is required with limit or offset')
  return subset
}

function textIn(members: Readonly<Record<string, unknown>>, name: string): string | null {
  const { [name]: value = null } = members
  if (value === null || value === '') return null
  if (typeof value !== 'string') throw new ShapeProblem(`${PREFIX}${name}`, 'must be a string')
  return value
}

function countIn(members: Readonly<Record<string, unknown>>, name: string, least: number): string | null {
  const { [name]: value = null } = members
  if (value === null) return null
  const text = String(value)
  if (!/^\d{1,9}$/.test(text) || Number(text) < least)
    throw new ShapeProblem(`${PREFIX}${name}`, `must be an integer from ${least} to 999999999`)
  return String(Number(text))
}

/** `{"1": "…"}`, or a list. */
function paramsIn(value: unknown): ReadonlyMap<number, string> {
  if (value === undefined || value === null) return new Map()
  if (!isObject(value) && !Array.isArray(value)) throw new ShapeProblem('subset__params', 'must be a JSON object')
  const pairs = Array.isArray(value) ? value.map((item, index) => [String(index + 1), item]) : Object.entries(value)
  return new Map(
    pairs.map(([number, item]) => {
      if (!/^[1-9]\d{0,4}$/.test(number)) throw new ShapeProblem('subset__params', 'can only use numbers as keys')
      if (!['string', 'number', 'boolean'].includes(typeof item))
        throw new ShapeProblem('subset__params', `parameter $${number} must be a string or a number`)
      return [Number(number), String(item)]
    }),
  )
}

function parsedJson(text: string, parameter: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new ShapeProblem(parameter, 'must be JSON')
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Reports a problem in the text as a problem of its parameter. */
function inParameter<T>(parameter: string, parse: () => T): T {
  try {
    return parse()
  } catch (error) {
    if (!(error instanceof ShapeProblem)) throw error
    throw new ShapeProblem(error.parameter === 'params' ? 'subset__params' : parameter, error.message)
  }
}

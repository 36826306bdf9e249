/**
 * A query as a list request of the REST API. Only a read of one table has one: columns, conditions joined by
 * `and`, an order by columns, and a limit, because the default limit of a list is another.
 */
import {
  type ComparisonOperator,
  type Expression,
  type Get,
  LanguageError,
  type Parameter,
  parse,
} from '../../../src/language/index.ts'
import { Digits, type Json } from '../json.ts'
import { quoted, type Schema } from '../schema.ts'

/** The path and the query string, relative to the gateway's base URL; null if there is no such request. */
export function restPathOf(text: string, parameters: Json, tables: Pick<Schema, 'has'>): string | null {
  try {
    const statement = parse(text)
    return statement.kind === 'get' ? pathOf(statement, { parameters, tables }) : null
  } catch (error) {
    if (error instanceof NotInRest || error instanceof LanguageError) return null
    throw error
  }
}

class NotInRest extends Error {}

interface Context {
  readonly parameters: Json
  readonly tables: Pick<Schema, 'has'>
}

const COMPARISONS: { readonly [O in ComparisonOperator]?: string } = {
  '=': 'eq',
  '<>': 'ne',
  '<': 'lt',
  '<=': 'lte',
  '>': 'gt',
  '>=': 'gte',
}

function pathOf(get: Get, context: Context): string {
  const { source, limit, offset } = get
  const isPlain =
    get.purpose === 'rows' && get.with === null && get.distinct === null && get.having === null && get.lock === null
  const parts = [get.joins, get.nests, get.groupBy, get.windows, get.compounds]
  if (!isPlain || parts.some(part => part.length > 0) || source.kind !== 'table source' || limit === null)
    throw new NotInRest()
  const { schema, name } = source.table
  const table = [name, `${schema}.${name}`].find(one => context.tables.has(one))
  if (table === undefined || (schema === null && table !== name)) throw new NotInRest()

  const own = source.alias ?? name
  const column = (expression: Expression): string => {
    if (expression.kind !== 'column') throw new NotInRest()
    const path = expression.path.length === 2 && expression.path[0] === own ? expression.path.slice(1) : expression.path
    if (path.length !== 1) throw new NotInRest()
    return quoted(path[0] ?? '')
  }
  const select = get.fields.map(field => {
    if (field.kind === 'star') throw new NotInRest()
    const read = column(field.expression)
    return field.alias === null || quoted(field.alias) === read ? read : `${quoted(field.alias)}:${read}`
  })
  const conditions = [source.condition, get.where].flatMap(one => (one === null ? [] : operandsOf(one)))
  const sort = get.orderBy.map(({ expression, descending, nulls }) => {
    if (nulls !== null) throw new NotInRest()
    return (descending ? '-' : '') + column(expression)
  })
  const query = [
    ...(select.length === 0 ? [] : [['select', select.join(',')] as const]),
    ...conditions.map(condition => filterOf(condition, column, context)),
    ...(sort.length === 0 ? [] : [['sort', sort.join(',')] as const]),
    ['limit', textOf(limit, context)] as const,
    ...(offset === null ? [] : [['offset', textOf(offset, context)] as const]),
  ]
  const pairs = query.map(([key, value]) => `${encoded(key)}=${encoded(value)}`)
  return `api/${encodeURIComponent(table)}?${pairs.join('&')}`
}

function operandsOf(condition: Expression): readonly Expression[] {
  return condition.kind === 'and' ? condition.operands.flatMap(operandsOf) : [condition]
}

/** In key-style, where the value is the text after `=`, unchanged. */
function filterOf(
  condition: Expression,
  column: (expression: Expression) => string,
  context: Context,
): readonly [key: string, value: string] {
  if (condition.kind === 'is' && condition.what === 'null')
    return [`${column(condition.operand)}.${condition.negated ? 'is_not_null' : 'is_null'}`, 'true']
  if (condition.kind === 'in' && condition.set.kind === 'in values') {
    const values = condition.set.values.map(value => textOf(value, context))
    // A value with punctuation would need quotes.
    if (!values.every(value => /^[\p{L}\p{N}_-]+$/u.test(value))) throw new NotInRest()
    return [`${column(condition.operand)}.${condition.negated ? 'not_in' : 'in'}`, values.join(',')]
  }
  const operator = condition.kind === 'comparison' ? COMPARISONS[condition.operator] : undefined
  if (condition.kind !== 'comparison' || operator === undefined) throw new NotInRest()
  return [`${column(condition.left)}.${operator}`, textOf(condition.right, context)]
}

function textOf(expression: Expression, { parameters }: Context): string {
  if (expression.kind === 'literal' && ['integer', 'decimal', 'text', 'boolean'].includes(expression.type))
    return expression.value
  if (expression.kind !== 'position' && expression.kind !== 'named') throw new NotInRest()
  const value = parameterOf(expression, parameters)
  if (value instanceof Digits) return value.text
  if (typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'boolean') throw new NotInRest()
  return String(value)
}

function parameterOf(parameter: Parameter, parameters: Json): Json {
  if (parameter.kind === 'position') return Array.isArray(parameters) ? (parameters[parameter.n - 1] ?? null) : null
  const isNamed = parameters !== null && typeof parameters === 'object' && Object.hasOwn(parameters, parameter.name)
  return isNamed ? ((parameters as Readonly<Record<string, Json>>)[parameter.name] ?? null) : null
}

/** Characters that are clearer unchanged, and that a query string can contain. */
function encoded(text: string): string {
  return encodeURIComponent(text).replace(/%(2C|3A|2F|40)/g, decodeURIComponent)
}

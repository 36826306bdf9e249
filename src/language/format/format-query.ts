/** Formats reads: sources, joins and nests, with one clause per line. */

import type {
  Compound,
  Count,
  Expression,
  Field,
  Get,
  Join,
  Name,
  NamedWindow,
  Nest,
  Order,
  Source,
  TableName,
  With,
} from '../tree/ast.ts'
import { commaList, concat, type Doc, enclosed, group, indent, line, lines } from './document.ts'
import { formatOrders, formatWindow } from './format-function.ts'
import { formatList, nonEmpty } from './format-list.ts'
import { formatLiteral, formatParameter } from './format-literal.ts'
import { formatAnyName, formatDotted, formatName, noTextForm } from './format-name.ts'
import type { Formatter } from './formatter.ts'

const VERBS = { rows: 'get ', count: 'count ', export: 'export ' } as const

/** Formats a read with one clause per line. */
export function formatGet(get: Get, formatter: Formatter): Doc {
  const { lock } = get
  return lines([
    formatWith(get.with, formatter),
    concat(
      VERBS[get.purpose],
      formatDistinct(get, formatter),
      formatSource(get.source, formatter),
      formatJoins(get.joins, formatter),
      formatNests(get.nests, formatter),
    ),
    formatFields('fields', get.fields, formatter),
    formatCondition('where', get.where, formatter),
    formatListed('group by', get.groupBy, formatter),
    formatCondition('having', get.having, formatter),
    lines(get.windows.map(window => formatNamedWindow(window, formatter))),
    lines(get.compounds.map(compound => formatCompound(compound, formatter))),
    formatTail(get, formatter),
    lock === null ? '' : `for ${lock.strength}${lock.wait === null ? '' : ` ${lock.wait}`}`,
  ])
}

function formatCompound({ operator, all, query }: Compound, formatter: Formatter): Doc {
  return lines([
    `${operator}${all ? ' all' : ''}`,
    endsOpen(query) ? enclosed('(', formatter.query(query), ')') : formatGet(query, formatter),
  ])
}

/** Reports whether clauses of the compound after its last get would be parsed as clauses of that get. */
function endsOpen(get: Get): boolean {
  return (
    get.with !== null ||
    get.compounds.length > 0 ||
    get.orderBy.length > 0 ||
    get.limit !== null ||
    get.offset !== null ||
    get.lock !== null
  )
}

function formatDistinct({ distinct }: Get, formatter: Formatter): Doc {
  if (distinct === null) return ''
  if (distinct.on.length === 0) return 'distinct '
  return ['distinct on ', enclosed('(', formatList(distinct.on, formatter), ')'), ' ']
}

/** `window w as (…)`. */
export function formatNamedWindow({ name, body }: NamedWindow, formatter: Formatter): Doc {
  return [`window ${formatName(name.text)} as `, formatWindow(body, formatter)]
}

interface Tail {
  readonly orderBy: readonly Order[]
  readonly limit: Count | null
  readonly offset: Count | null
}

function formatTail({ orderBy, limit, offset }: Tail, formatter: Formatter): Doc {
  return lines([
    orderBy.length > 0 ? group('order by', indent(line, formatOrders(orderBy, formatter))) : '',
    limit === null ? '' : `limit ${formatCount(limit)}`,
    offset === null ? '' : `offset ${formatCount(offset)}`,
  ])
}

function formatCount(count: Count): string {
  if (count.kind !== 'literal') return formatParameter(count)
  if (count.type !== 'integer' || count.value.startsWith('-')) {
    throw noTextForm(`a limit or offset of ${count.value}`, count.span)
  }
  return formatLiteral(count)
}

/** `where a = 1`, with further operands indented below; `''` without a condition. */
export function formatCondition(word: string, condition: Expression | null, formatter: Formatter): Doc {
  if (condition === null) return ''
  const doc = formatter.expression(condition)
  return concat(`${word} `, condition.kind === 'and' || condition.kind === 'or' ? indent(doc) : doc)
}

function formatListed(word: string, expressions: readonly Expression[], formatter: Formatter): Doc {
  return expressions.length === 0 ? '' : group(word, indent(line, formatList(expressions, formatter)))
}

/** `fields id, name as n`; `''` without fields. */
export function formatFields(word: 'fields' | 'returning', fields: readonly Field[], formatter: Formatter): Doc {
  return fields.length === 0
    ? ''
    : group(word, indent(line, commaList(fields.map(field => formatField(field, formatter)))))
}

/** `users.*`, `count(*) as n`. */
export function formatField(field: Field, formatter: Formatter): Doc {
  if (field.kind === 'star') return field.of === null ? '*' : `${formatName(field.of)}.*`
  const expression = formatter.expression(field.expression)
  return field.alias === null ? expression : concat(expression, ` as ${formatAnyName(field.alias)}`)
}

/** `with a as (…)`, `with recursive a as (…), b as (…)`; `''` without a clause. */
export function formatWith(clause: With | null, formatter: Formatter): Doc {
  if (clause === null) return ''
  const tables = nonEmpty(clause.tables, 'the tables of with').map(({ name, columns, statement }) => [
    formatName(name.text),
    columns.length > 0 ? [' ', formatNames(columns)] : '',
    ' as ',
    enclosed('(', formatter.statement(statement), ')'),
  ])
  const head = `with${clause.recursive ? ' recursive' : ''}`
  return tables.length === 1 ? [`${head} `, tables] : group(head, indent(line, commaList(tables)))
}

/** `(a, b)`. */
export function formatNames(names: readonly Name[]): Doc {
  return enclosed('(', commaList(nonEmpty(names, 'names').map(name => formatName(name.text))), ')')
}

// ---- sources ----------------------------------------------------------------------------------------------

/** `users`, `sales.orders`. */
export function formatTable({ schema, name }: TableName): string {
  return formatDotted(schema === null ? [name] : [schema, name])
}

/** `users`, `sales.orders as o`. */
export function formatTarget(table: TableName, alias: string | null): string {
  return `${formatTable(table)}${alias === null ? '' : ` as ${formatAnyName(alias)}`}`
}

/** Formats a source with its alias and condition. */
export function formatSource(source: Source, formatter: Formatter): Doc {
  switch (source.kind) {
    case 'table source': {
      const target = formatTarget(source.table, source.alias)
      return source.condition === null ? target : [target, enclosed('[', formatter.expression(source.condition), ']')]
    }
    case 'query source':
      return [enclosed('(', formatter.query(source.query), ')'), ` as ${formatAnyName(source.alias)}`]
    // Record sources, array sources and function sources.
    default:
      throw noTextForm(`a ${source.kind}`, source.span)
  }
}

/** One indented line per join, each starting with its line break. */
export function formatJoins(joins: readonly Join[], formatter: Formatter): Doc {
  if (joins.length === 0) return ''
  return indent(
    joins.map(({ type, lateral, source, on }) => [
      line,
      concat(
        `${type} join ${lateral ? 'lateral ' : ''}`,
        formatSource(source, formatter),
        formatCondition(' on', on, formatter),
      ),
    ]),
  )
}

function formatNests(nests: readonly Nest[], formatter: Formatter): Doc {
  return nests.length === 0 ? '' : indent(nests.map(nest => [line, formatNest(nest, formatter)]))
}

/** `nest many posts {…}`. */
export function formatNest(nest: Nest, formatter: Formatter): Doc {
  if (nest.name !== null || nest.bare) throw noTextForm(`nest ${nest.name}`, nest.span)
  const clauses = lines([
    formatFields('fields', nest.fields, formatter),
    lines(nest.nests.map(inner => formatNest(inner, formatter))),
    formatCondition('where', nest.where, formatter),
    formatTail(nest, formatter),
  ])
  return [
    `nest ${nest.many ? 'many ' : ''}${formatTarget(nest.table, nest.alias)}`,
    formatCondition(' on', nest.on, formatter),
    clauses === '' ? '' : group(' {', indent(line, clauses), line, '}'),
  ]
}

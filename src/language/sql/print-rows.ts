/**
 * Prints the statement behind each response to a read: PostgreSQL produces each row's JSON, with the sort
 * keys in further columns.
 *
 * There are two forms, chosen by measurement (README). The plain form wraps the read. The split form reads a
 * page of columns first and then makes rows of them; it is used for sort keys that are not columns of the
 * result, and for reads with an `offset`, which would otherwise compute nested rows for skipped rows. Columns
 * have no `::text` cast: their text format is the same, and the cast costs a sixth of the statement.
 */

import type { Expression, ExpressionField, Field, Get, Nest } from '../tree/ast.ts'
import { NOWHERE } from '../tree/ast.ts'
import { mapChildren } from '../tree/children.ts'
import { LanguageError } from '../tree/error.ts'
import { containsAggregate } from '../tree/functions.ts'
import { assertNesting } from '../tree/nesting.ts'
import { outputName } from '../tree/output-name.ts'
import { getScope, type NameScope, OUTERMOST, resolveColumn, withCommonTables } from '../tree/scope.ts'
import { rewriteNest, visitNest } from '../tree/walk.ts'
import { createPrinter } from './print.ts'
import { structureOf } from './print-expression.ts'
import { nestKey, nestName, printNest } from './print-nest.ts'
import { groupsOf, printQuery, printWith, withoutAliases } from './print-query.ts'
import type { ParameterMode, Printer, Sql } from './printer.ts'
import { quoteIdentifier } from './quote.ts'

/** Options of `printRows`. */
export interface RowsOptions {
  /** Expressions in the read's scope, usually those of its `order by`. */
  readonly keys: readonly Expression[]
  readonly parameters?: ParameterMode
  /** See `PrintOptions`. */
  readonly repeatedCharactersMax?: number
  /** See `PrintOptions`. */
  readonly repetitionsMax?: number
  /** See `PrintOptions`. */
  readonly nestedBytesMax?: number
  /**
   * With `value`, column 1 is the JSON of the read's only field instead of an object that contains it; with
   * `stripped`, an object without the fields that are null; with `record`, a composite value.
   */
  readonly form?: 'object' | 'value' | 'stripped' | 'record'
  /** Maximum number of rows, in addition to the read's own limit; null for no maximum. */
  readonly limit?: number | null
}

/**
 * Prints a statement that returns the read's rows in order. Column 1 is the row as a JSON object of exactly
 * the read's fields and nests; the further columns are the keys. Fetch all columns in text
 * format.
 *
 * @throws LanguageError if keys are ambiguous or unavailable: with `distinct`, in compounds, and with a `*`
 *   of several tables.
 */
export function printRows(get: Get, options: RowsOptions): Sql {
  const { keys } = options
  assertNesting(get)
  assertNesting(keys)
  const printer = createPrinter(get, { ...options, parameters: options.parameters ?? 'keep' })
  const plain = options.form === 'value' || isPlain(get, keys)
  const text = plain ? printPlain(get, options, printer) : printSplit(get, options, printer)
  const { limit = null } = options
  return { text: limit === null ? text : `${text} LIMIT ${limit}`, parameters: printer.parameters }
}

function isPlain(get: Get, keys: readonly Expression[]): boolean {
  if (keys.some(key => outputOf(key, get) === null)) return false
  return get.offset === null || !get.nests.some(nest => isMovable(nest, get))
}

// ---- the plain form ---------------------------------------------------------------------------------------

/** `SELECT row_to_json(r.*), r.created_at FROM (SELECT … LIMIT 25) AS r`. */
function printPlain(get: Get, { keys, form }: RowsOptions, printer: Printer): string {
  const head = printWith(get.with, OUTERMOST, printer)
  const columns = keys.map(key => `, r.${quoteIdentifier(outputOf(key, get) ?? '')}`)
  // `r.*` instead of `r`, because the result may have a column r.
  const answer = form === 'value' ? `to_json(r.${quoteIdentifier(onlyName(get))})` : rowAs(form)
  const read = printQuery({ ...get, with: null }, around(get), printer)
  return `${head}SELECT ${answer}${columns.join('')} FROM (${read}) AS r`
}

function rowAs(form: RowsOptions['form']): string {
  if (form === 'record') return 'ROW(r.*)'
  return form === 'stripped' ? 'json_strip_nulls(row_to_json(r.*))' : 'row_to_json(r.*)'
}

function onlyName({ fields, nests }: Get): string {
  const name = fields.length === 1 && fields[0] !== undefined ? outputName(fields[0]) : null
  if (name === null || nests.length > 0) throw new Error('a read of values needs exactly one field with a name')
  return name
}

/** The column of the result that holds `key`; null if absent, or if its name is not unique. */
function outputOf(key: Expression, get: Get): string | null {
  const names = [...get.fields.map(outputName), ...get.nests.map(nestName)]
  const once = (name: string | null): string | null =>
    names.filter(other => other === name).length === 1 ? name : null
  const wanted = unqualified(key, get)
  if (get.bare === true) return null
  if (get.fields.length === 0) {
    const column = wanted.kind === 'column' && wanted.path.length === 1 ? (wanted.path[0] ?? null) : null
    return get.joins.length > 0 || names.includes(column) ? null : column
  }
  if (!get.fields.every(isExpression)) return null
  // As in `order by`, an unqualified name is an alias first.
  if (key.kind === 'column' && key.path.length === 1) {
    const [name = ''] = key.path
    if (get.fields.some(field => field.alias === name)) return once(name)
  }
  const structure = structureOf(wanted)
  const field = get.fields.find(candidate => structureOf(unqualified(candidate.expression, get)) === structure)
  return field === undefined ? null : once(outputName(field))
}

/** Removes the qualifier of columns if there is only one source, so that `orders.id` equals `id`. */
function unqualified(expression: Expression, get: Get): Expression {
  if (get.joins.length > 0) return expression
  const alias = get.source.alias ?? (get.source.kind === 'table source' ? get.source.table.name : '')
  if (expression.kind === 'column') {
    return expression.path.length > 1 && expression.path[0] === alias
      ? { ...expression, path: expression.path.slice(1) }
      : expression
  }
  return mapChildren(expression, { expression: part => unqualified(part, get), query: query => query })
}

// ---- the split form ---------------------------------------------------------------------------------------

/**
 * `SELECT row_to_json(r.*), page.c2 FROM (SELECT id AS c1, total AS c2 … LIMIT 25 OFFSET 50) AS page CROSS
 * JOIN LATERAL (SELECT page.c1 AS id, (…) AS customer) AS r`. PostgreSQL pulls the lateral query up, so the
 * plan is that of the page with a projection on top.
 */
function printSplit(get: Get, { keys, form }: RowsOptions, printer: Printer): string {
  refuseUnsplittable(get)
  const scope = getScope(get, around(get))
  const page = new Page(get, scope)
  const sortedBy = keys.map(key => page.carry(withoutAlias(key, get)))
  const columns = get.fields.map((field, index) => `${page.column(index)} AS ${quoteIdentifier(nameForRow(field))}`)
  const moved = get.nests.map(nest => (isMovable(nest, get) ? page.move(nest) : null))
  const stayed = get.nests.map((nest, index) => (moved[index] === null ? page.keep(nest) : ''))
  const head = printWith(get.with, OUTERMOST, printer)
  const rows = printQuery(page.query(printer), around(get), printer)
  const nests = get.nests.map((nest, index) => {
    const elsewhere = moved[index] ?? null
    if (elsewhere !== null) return printNest(elsewhere, page.scope, printer)
    return `${stayed[index]} AS ${quoteIdentifier(nestName(nest))}`
  })
  const selected = [...columns, ...nests].join(', ')
  const list = [rowAs(form), ...sortedBy].join(', ')
  return `${head}SELECT ${list} FROM (${rows}) AS ${page.alias} CROSS JOIN LATERAL (SELECT ${selected}) AS r`
}

/**
 * The inner query under construction: the read's columns with unique names, plus other expressions that the
 * outer query needs.
 */
class Page {
  /**
   * A name that does not occur in the read, so that nests can refer to the page and the page hides no other
   * name.
   */
  readonly alias: string
  readonly scope: NameScope
  readonly #get: Get
  readonly #outside: NameScope
  readonly #columns: Expression[]
  readonly #nests: Nest[] = []

  constructor(get: Get, outside: NameScope) {
    this.#get = get
    this.#outside = outside
    this.#columns = get.fields.filter(isExpression).map(field => field.expression)
    this.alias = unusedName(get)
    this.scope = {
      parent: null,
      relations: [{ name: this.alias, table: null, aliased: true, query: get }],
      commonTables: outside.commonTables,
      fields: [],
    }
  }

  /** Adds an expression to the page and returns its column. */
  carry(expression: Expression): string {
    return this.column(this.#indexOf(expression))
  }

  column(index: number): string {
    return `${this.alias}.${columnName(index)}`
  }

  /**
   * The nest rewritten for use outside of the page: its references to the row become references to the page's
   * columns.
   */
  move(nest: Nest): Nest {
    return rewriteNest(withKey(nest, this.#outside), this.#outside, {
      expression: (expression, _clause, scope) => {
        if (expression.kind !== 'column') return expression
        const { relation, qualifier, column, steps } = resolveColumn(expression.path, scope)
        if (relation === null || !this.#outside.relations.includes(relation)) return expression
        const index = this.#indexOf({ kind: 'column', path: [...qualifier, column], span: expression.span })
        return { ...expression, path: [this.alias, columnName(index), ...steps] }
      },
    })
  }

  /** Adds the nest itself to the page and returns its column. */
  keep(nest: Nest): string {
    const name = `n${this.#nests.push({ ...nest, name: `n${this.#nests.length + 1}` })}`
    return `${this.alias}.${name}`
  }

  query(printer: Printer): Get {
    const get = this.#get
    return {
      ...get,
      with: null,
      fields: this.#columns.map((expression, index) => ({
        kind: 'field',
        expression,
        alias: columnName(index),
        span: NOWHERE,
      })),
      nests: this.#nests,
      distinct: get.distinct && { ...get.distinct, on: get.distinct.on.map(item => withoutAlias(item, get)) },
      groupBy: groupsOf(get),
      having: get.having && withoutAliases(get.having, get.fields, printer),
      orderBy: get.orderBy.map(order => ({ ...order, expression: withoutAlias(order.expression, get) })),
    }
  }

  #indexOf(expression: Expression): number {
    const structure = structureOf(unqualified(expression, this.#get))
    const index = this.#columns.findIndex(column => structureOf(unqualified(column, this.#get)) === structure)
    return index >= 0 ? index : this.#columns.push(expression) - 1
  }
}

function columnName(index: number): string {
  return `c${index + 1}`
}

/** Replaces an unqualified name that is an alias of the read by its expression, as in `order by`. */
function withoutAlias(expression: Expression, get: Get): Expression {
  if (expression.kind !== 'column' || expression.path.length !== 1) return expression
  const field = get.fields.filter(isExpression).find(candidate => candidate.alias === expression.path[0])
  return field?.expression ?? expression
}

/**
 * Reports whether the nest refers to the outer row only by qualified columns; an unqualified name could
 * belong to either.
 */
function isMovable(nest: Nest, get: Get): boolean {
  if (isUnsplittable(get) || groupsOf(get).length > 0 || hasAggregate(get)) return false
  const scope = getScope(get, around(get))
  let movable = true
  // A page has columns and no rows of tables.
  rewriteNest(withKey(nest, scope), scope, {
    expression(part) {
      if (part.kind === 'whole row') movable = false
      return part
    },
  })
  visitNest(withKey(nest, scope), scope, {
    column(column, clause, inner) {
      const isAlias = (name: string | undefined): boolean => inner.fields.some(field => outputName(field) === name)
      const own = clause === 'order by' && column.path.length === 1 && isAlias(column.path[0])
      if (resolveColumn(column.path, inner).relation === null && !own) movable = false
    },
  })
  return movable
}

function withKey(nest: Nest, scope: NameScope): Nest {
  return nest.on === null && nest.from === undefined ? { ...nest, on: nestKey(nest, scope) } : nest
}

function isUnsplittable(get: Get): boolean {
  return reasonAgainstSplitting(get) !== null
}

function refuseUnsplittable(get: Get): void {
  const reason = reasonAgainstSplitting(get)
  if (reason !== null)
    throw new LanguageError(`the sort keys must be among the fields of the result: ${reason}`, get.span)
}

function reasonAgainstSplitting(get: Get): string | null {
  if (get.purpose === 'count') return 'count has one row'
  if (get.compounds.length > 0) return 'a compound has only the columns of its result'
  if (get.distinct !== null && get.distinct.on.length === 0)
    return 'with distinct, rows have only the columns of the result'
  if (!get.fields.every(isExpression) || (get.fields.length === 0 && get.bare !== true))
    return 'name the fields instead of *'
  if (hasAggregate(get) && groupsOf(get).length === 0) return 'without groups there is one row'
  const grouped = get.groupBy.find(item => withoutAlias(item, get) !== item)
  if (grouped !== undefined) {
    return 'group by an alias cannot be distinguished from group by a column; write the expression'
  }
  const unnamed = get.fields.find(field => outputName(field) === null)
  return unnamed === undefined ? null : 'give every computed field a name, "expression as name"'
}

function hasAggregate(get: Get): boolean {
  return get.fields.some(field => field.kind === 'field' && containsAggregate(field.expression))
}

function nameForRow(field: Field): string {
  return outputName(field) ?? ''
}

function isExpression(field: Field): field is ExpressionField {
  return field.kind === 'field'
}

/** The scope around the read's sources. */
function around(get: Get): NameScope {
  return withCommonTables(OUTERMOST, get.with)
}

/** A subquery whose rows are values. A shorter name could be that of a column, which takes precedence. */
export const WHOLE_ROW = 'svc_whole_row'

/** A name that does not occur in the tree. */
export function unusedName(tree: object): string {
  const used = new Set<unknown>()
  const waiting: object[] = [tree]
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    for (const value of Object.values(next)) {
      if (typeof value === 'object' && value !== null) waiting.push(value)
      else used.add(value)
    }
  }
  let number = 1
  while (used.has(`page${number > 1 ? number : ''}`)) number += 1
  return `page${number > 1 ? number : ''}`
}

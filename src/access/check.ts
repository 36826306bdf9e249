/**
 * The one check between a tree and its SQL: every name against the catalogue, every parameter typed by the column it meets.
 *
 * Only this file makes a `CheckedQuery`, and nothing else can be printed for execution (`run/statement.ts`), so a door that forgets
 * to check does not compile. The checked tree is the same tree with nothing left open: tables carry their schema, columns their alias, `*` is
 * written out, and parameters are cast.
 */
import type { Catalog, Column, DataType, Table } from '../catalog/model.ts'
import { GatewayError } from '../errors.ts'
import type {
  Comparison,
  Count,
  Exists,
  Expression,
  Field,
  Get,
  In,
  Is,
  Nest,
  Order,
  Parameter,
  PatternMatch,
  SubQuery,
  TableName,
} from '../language/ast.ts'
import { call, cast, column as columnReference, compare, field, literal, text } from '../language/build.ts'
import { nearest } from '../nearest.ts'
import { shorten } from '../shorten.ts'
import { unreachable } from '../unreachable.ts'
import { readableColumns } from './columns.ts'
import {
  comparable,
  isJsonValue,
  refuseIncomparable,
  refuseScalar,
  refuseUnordered,
  refuseUnsearchable,
  type Typed,
  UNKNOWN,
  untyped,
} from './typed.ts'
import { baseOf, castTo, isJson, isText, typeNameOf } from './types.ts'

declare const checked: unique symbol

/** A tree that passed the check. The brand cannot be written down outside this file. */
export interface CheckedQuery {
  readonly [checked]: true
  readonly query: Get
  /** By `n` of `$n`: what each parameter met, for encoding its value and for errors about it. */
  readonly parameters: ReadonlyMap<number, ParameterUse>
}

export interface ParameterUse {
  /** The type it was cast to, as PostgreSQL names it. */
  readonly typeName: string
  /** Null where it met no column, as in a step into JSON. */
  readonly type: DataType | null
  readonly column: string | null
  /** It stands for many values: one array. */
  readonly list: boolean
}

export interface CheckContext {
  readonly catalog: Catalog
  /** PostgreSQL's name of a text search configuration, for `@@`. */
  readonly searchLanguage: string
}

/**
 * Throws `PARSE_ERROR` for a name that does not exist, with the nearest one that the caller may read (decisions 3, 7).
 */
export function checkRead(query: Get, context: CheckContext): CheckedQuery {
  const checker = new Checker(context)
  const read = checker.get(query, null)
  return { query: read, parameters: checker.parameters } as unknown as CheckedQuery
}

/** The table whose columns a name may mean, and the tables around it. */
interface Scope {
  readonly alias: string
  readonly table: Table
  readonly outer: Scope | null
}

class Checker {
  readonly parameters: Map<number, ParameterUse> = new Map()
  readonly #context: CheckContext

  constructor(context: CheckContext) {
    this.#context = context
  }

  get(query: Get, outer: Scope | null): Get {
    const { source } = query
    const { joins, windows, compounds } = query
    if (
      source.kind !== 'table source' ||
      query.with !== null ||
      [joins, windows, compounds].some(list => list.length > 0)
    ) {
      throw uncheckable()
    }
    const table = this.#table(source.table)
    const scope: Scope = { alias: source.alias ?? table.name, table, outer }
    const fields = this.#fields(query.fields, scope)
    const nests = query.nests.map(nest => this.#nest(nest, scope))
    refuseNameClash(fields, nests)
    return {
      ...query,
      source: {
        ...source,
        table: qualified(source.table, table),
        condition: this.#optional(source.condition, scope),
      },
      fields,
      nests,
      distinct: query.distinct && { ...query.distinct, on: query.distinct.on.map(on => this.#expression(on, scope)) },
      where: this.#optional(query.where, scope),
      groupBy: query.groupBy.map(item => this.#expression(item, scope)),
      having: this.#optional(query.having, scope),
      orderBy: this.#orders(query.orderBy, scope),
      limit: this.#count(query.limit, 'limit'),
      offset: this.#count(query.offset, 'offset'),
    }
  }

  #nest(nest: Nest, outer: Scope): Nest {
    const table = this.#table(nest.table)
    const scope: Scope = { alias: nest.alias ?? table.name, table, outer }
    if (nest.on === null) throw new Error('a nest reaches the check with its condition')
    const fields = this.#fields(nest.fields, scope)
    const nests = nest.nests.map(inner => this.#nest(inner, scope))
    refuseNameClash(fields, nests)
    return {
      ...nest,
      table: qualified(nest.table, table),
      on: this.#expression(nest.on, scope),
      fields,
      nests,
      where: this.#optional(nest.where, scope),
      orderBy: this.#orders(nest.orderBy, scope),
      limit: this.#count(nest.limit, 'limit'),
      offset: this.#count(nest.offset, 'offset'),
    }
  }

  // ---- names -----------------------------------------------------------------------------------------------

  #table(name: TableName): Table {
    const { catalog } = this.#context
    const bare = name.schema === null || name.schema === catalog.schemas[0]
    const resource = bare ? name.name : `${name.schema}.${name.name}`
    const table = catalog.tables.get(resource)
    if (table === undefined) throw unknownTable(catalog, resource)
    return table
  }

  /** No fields stand for every column, written out; so does `*` among others. */
  #fields(fields: readonly Field[], scope: Scope): readonly Field[] {
    if (fields.length === 0) return everyColumn(scope)
    const written = new Set(fields.flatMap(item => (item.kind === 'field' ? outputName(item) : [])))
    return fields.flatMap((item): readonly Field[] => {
      if (item.kind === 'field') return [{ ...item, expression: this.#expression(item.expression, scope) }]
      if (item.of !== null && item.of !== scope.alias) throw unknownColumn(`${item.of}.*`, scope)
      // A column that is also listed by itself appears there, once.
      return everyColumn(scope).filter(one => one.kind === 'field' && !outputName(one).some(name => written.has(name)))
    })
  }

  /** `[column]` in the nearest table that has it, `[alias, column]` in that table. */
  #column(path: readonly string[], scope: Scope): Typed {
    const [first = '', second] = path
    for (let at: Scope | null = scope; at !== null; at = at.outer) {
      const name = second === undefined ? first : at.alias === first ? second : undefined
      const column = name === undefined ? undefined : at.table.columnByName.get(name)
      if (column !== undefined) return typedColumn(at, column)
    }
    throw unknownColumn(second ?? first, scope)
  }

  // ---- expressions -----------------------------------------------------------------------------------------

  #optional(expression: Expression | null, scope: Scope): Expression | null {
    return expression === null ? null : this.#expression(expression, scope)
  }

  #expression(expression: Expression, scope: Scope): Expression {
    return this.#typed(expression, scope).expression
  }

  #typed(expression: Expression, scope: Scope): Typed {
    const inner = (operand: Expression) => this.#expression(operand, scope)
    switch (expression.kind) {
      case 'column':
        return this.#column(expression.path, scope)
      case 'and':
      case 'or':
        return untyped({ ...expression, operands: expression.operands.map(inner) })
      case 'not':
      case 'negate':
        return untyped({ ...expression, operand: inner(expression.operand) })
      case 'comparison':
        return untyped(this.#comparison(expression, scope))
      case 'distinct from':
        return untyped(this.#pair(expression, scope, refuseIncomparable))
      case 'pattern':
        return untyped(this.#pattern(expression, scope))
      case 'is':
        return untyped(this.#is(expression, scope))
      case 'between': {
        const operand = comparable(this.#typed(expression.operand, scope))
        const low = this.#meet(expression.low, operand, scope)
        const high = this.#meet(expression.high, operand, scope)
        return untyped({ ...expression, operand: operand.expression, low, high })
      }
      case 'in':
        return untyped(this.#in(expression, scope))
      case 'exists':
        return untyped(this.#exists(expression, scope))
      case 'subquery':
        return untyped(this.#subquery(expression, scope))
      case 'json test':
        return untyped({ ...expression, operand: inner(expression.operand) })
      case 'json step':
        return this.#jsonStep(expression, scope)
      case 'arithmetic':
        return untyped({ ...expression, left: inner(expression.left), right: inner(expression.right) })
      case 'cast':
        return this.#cast(expression, scope)
      case 'literal':
        return untyped(expression)
      case 'position':
      case 'named':
        return untyped(expression)
      case 'function':
        if (expression.over !== null) throw uncheckable()
        return untyped({
          ...expression,
          arguments: expression.arguments.map(inner),
          orderBy: this.#orders(expression.orderBy, scope),
          filter: this.#optional(expression.filter, scope),
        })
      case 'case':
        return untyped({
          ...expression,
          operand: this.#optional(expression.operand, scope),
          // biome-ignore lint/suspicious/noThenProperty: the branches of the tree have a `then`, and nothing awaits them.
          whens: expression.whens.map(({ when, then }) => ({ when: inner(when), then: inner(then) })),
          else: this.#optional(expression.else, scope),
        })
      case 'array':
      case 'row':
        return untyped({ ...expression, items: expression.items.map(inner) })
      default:
        return unreachable(expression)
    }
  }

  #comparison(expression: Comparison, scope: Scope): Expression {
    const { operator, left, right } = expression
    switch (operator) {
      case '@@':
        return this.#textSearch(left, right, scope)
      case 'regex':
      case '~*': {
        const { operand, pattern } = this.#textual(left, right, scope)
        return { ...expression, left: operand, right: pattern }
      }
      case '@>':
      case '<@':
      case '&&':
        return this.#pair(expression, scope, refuseScalar)
      default:
        return this.#pair(expression, scope, refuseIncomparable)
    }
  }

  /**
   * A row of nothing but NULLs is NULL to SQL, though a column that holds one is not (manual, 9.2, `IS NULL`): JSON shows the
   * difference, and a cursor that did not make it would stand still.
   */
  #is(expression: Is, scope: Scope): Expression {
    const operand = this.#typed(expression.operand, scope)
    const isRow = operand.type !== null && baseOf(operand.type).kind === 'composite'
    if (expression.what !== 'null' || !isRow) return { ...expression, operand: operand.expression }
    const { span, negated } = expression
    return { kind: 'distinct from', negated: !negated, left: operand.expression, right: literal('null', ''), span }
  }

  /** A comparison: whichever side is a parameter takes the other's type, row by row. */
  #pair<T extends { readonly left: Expression; readonly right: Expression }>(
    expression: T,
    scope: Scope,
    refuse: (operand: Typed) => void,
  ): T {
    const { left, right } = expression
    if (left.kind === 'row' && right.kind === 'row') {
      const lefts = left.items.map(item => comparable(this.#typed(item, scope)))
      const items = right.items.map((item, index) => this.#meet(item, lefts[index] ?? UNKNOWN, scope))
      return { ...expression, left: { ...left, items: lefts.map(item => item.expression) }, right: { ...right, items } }
    }
    const typed = comparable(this.#typed(left, scope))
    refuse(typed)
    if (!isParameter(left)) return { ...expression, left: typed.expression, right: this.#meet(right, typed, scope) }
    const other = comparable(this.#typed(right, scope))
    refuse(other)
    return { ...expression, left: this.#meet(left, other, scope), right: other.expression }
  }

  /** `expression` where it is compared with `other`: a parameter is cast to the other's type. */
  #meet(expression: Expression, other: Typed, scope: Scope): Expression {
    if (!isParameter(expression)) return comparable(this.#typed(expression, scope)).expression
    if (other.type !== null) {
      this.#use(expression, {
        typeName: other.typeName ?? other.type.name,
        type: other.type,
        column: other.column,
        list: false,
      })
      return castTo(expression, other.type)
    }
    if (other.typeName !== null) {
      this.#use(expression, { typeName: other.typeName, type: null, column: other.column, list: false })
      return cast(expression, other.typeName)
    }
    return expression
  }

  #pattern(expression: PatternMatch, scope: Scope): Expression {
    return { ...expression, ...this.#textual(expression.operand, expression.pattern, scope) }
  }

  /** Patterns are text whatever they are compared with; what is no text is compared by its text form. */
  #textual(left: Expression, right: Expression, scope: Scope): Pick<PatternMatch, 'operand' | 'pattern'> {
    const typed = this.#typed(left, scope)
    const plain = typed.type === null ? !isJsonValue(typed) : isText(typed.type)
    return {
      operand: plain ? typed.expression : cast(typed.expression, 'text'),
      pattern: this.#meet(right, { ...typed, type: null, typeName: 'text' }, scope),
    }
  }

  #in(expression: In, scope: Scope): Expression {
    const operand = comparable(this.#typed(expression.operand, scope))
    refuseIncomparable(operand)
    const { set } = expression
    if (set.kind === 'subquery') return { ...expression, operand: operand.expression, set: this.#subquery(set, scope) }
    if (set.kind === 'in values') {
      const values = set.values.map(value => this.#meet(value, operand, scope))
      return { ...expression, operand: operand.expression, set: { ...set, values } }
    }
    if (!isParameter(set) || (operand.type === null && operand.typeName === null)) {
      return { ...expression, operand: operand.expression }
    }
    const typeName = operand.typeName ?? operand.type?.name ?? 'text'
    this.#use(set, { typeName, type: operand.type, column: operand.column, list: true })
    const element = operand.type === null ? cast(set, typeName) : castTo(set, operand.type)
    return {
      ...expression,
      operand: operand.expression,
      set:
        element.kind === 'cast'
          ? { ...element, type: { ...element.type, dimensions: element.type.dimensions + 1 } }
          : set,
    }
  }

  #exists(expression: Exists, scope: Scope): Expression {
    return { ...expression, query: this.get(expression.query, scope) }
  }

  #subquery(expression: SubQuery, scope: Scope): SubQuery {
    return { ...expression, query: this.get(expression.query, scope) }
  }

  #jsonStep(expression: Extract<Expression, { kind: 'json step' }>, scope: Scope): Typed {
    const operand = this.#typed(expression.operand, scope)
    if (operand.type !== null && !isJson(operand.type)) {
      throw new GatewayError(
        'PARSE_ERROR',
        `column "${operand.column ?? ''}" is ${operand.typeName ?? operand.type.name}, and -> and ->> lead into json and jsonb only`,
      )
    }
    const asText = expression.operator === '->>' || expression.operator === '#>>'
    return {
      expression: { ...expression, operand: operand.expression, step: this.#expression(expression.step, scope) },
      type: null,
      typeName: asText ? 'text' : (operand.typeName ?? 'jsonb'),
      column: operand.column,
    }
  }

  /** The author's own cast types a parameter too. */
  #cast(expression: Extract<Expression, { kind: 'cast' }>, scope: Scope): Typed {
    const typeName = typeNameOf(expression.type)
    if (isParameter(expression.operand)) {
      this.#use(expression.operand, { typeName, type: null, column: null, list: expression.type.dimensions > 0 })
    }
    return { ...UNKNOWN, typeName, expression: { ...expression, operand: this.#expression(expression.operand, scope) } }
  }

  /** `column @@ words`: the column as it is when it holds a tsvector, else made into one (language reference, notes). */
  #textSearch(left: Expression, right: Expression, scope: Scope): Expression {
    const document = this.#typed(left, scope)
    const language = cast(text(this.#context.searchLanguage), 'regconfig')
    const words = this.#meet(right, { ...UNKNOWN, typeName: 'text', column: document.column }, scope)
    refuseUnsearchable(document)
    const isVector = document.type !== null && baseOf(document.type).name === 'tsvector'
    const filled =
      isVector || isJsonValue(document) ? document.expression : call('coalesce', [document.expression, text('')])
    return compare(
      'matches',
      isVector ? filled : call('to_tsvector', [language, filled]),
      call('websearch_to_tsquery', [language, words]),
    )
  }

  #orders(orders: readonly Order[], scope: Scope): readonly Order[] {
    return orders.map(item => {
      const typed = this.#typed(item.expression, scope)
      refuseUnordered(typed)
      return { ...item, expression: typed.expression }
    })
  }

  #count(count: Count | null, what: string): Count | null {
    if (count !== null && isParameter(count)) {
      this.#use(count, { typeName: 'bigint', type: null, column: what, list: false })
    }
    return count
  }

  #use(parameter: Parameter, use: ParameterUse): void {
    if (parameter.kind === 'position') this.parameters.set(parameter.n, use)
  }
}

/** What no door can make yet is not let through half-checked. */
function uncheckable(): GatewayError {
  return new GatewayError('FORBIDDEN', 'only reads of one table and what is nested in it can be checked')
}

function typedColumn(scope: Scope, column: Column): Typed {
  return {
    expression: columnReference(scope.alias, column.name),
    type: column.type,
    typeName: column.typeText,
    column: column.name,
  }
}

function isParameter(expression: Expression): expression is Parameter {
  return expression.kind === 'position' || expression.kind === 'named'
}

function qualified(name: TableName, table: Table): TableName {
  return { ...name, schema: table.schema, name: table.name }
}

function everyColumn(scope: Scope): readonly Field[] {
  return readableColumns(scope.table).map(column => field(columnReference(scope.alias, column.name), null))
}

function outputName(item: Extract<Field, { kind: 'field' }>): readonly string[] {
  if (item.alias !== null) return [item.alias]
  return item.expression.kind === 'column' ? item.expression.path.slice(-1) : []
}

/** Two keys of one name in a JSON object: one of them would be lost to most readers. */
function refuseNameClash(fields: readonly Field[], nests: readonly Nest[]): void {
  const names = new Set(fields.flatMap(item => (item.kind === 'field' ? outputName(item) : [])))
  for (const nest of nests) {
    const name = nest.name ?? nest.alias ?? nest.table.name
    if (names.has(name)) {
      throw new GatewayError(
        'PARSE_ERROR',
        `"${name}" is a column and an expanded relation; give the relation another name: alias:${name}`,
      )
    }
    names.add(name)
  }
}

export function unknownTable(catalog: Catalog, name: string): GatewayError {
  const near = nearest(name, catalog.tables.keys())
  const hint = near === null ? 'GET /api/_schema lists the tables' : `did you mean "${near}"?`
  return new GatewayError('NOT_FOUND', `there is no table "${shorten(name)}"; ${hint}`)
}

function unknownColumn(name: string, scope: Scope): GatewayError {
  const near = nearest(
    name,
    readableColumns(scope.table).map(column => column.name),
  )
  const hint = near === null ? '' : `; did you mean "${near}"?`
  return new GatewayError('PARSE_ERROR', `table "${scope.table.resource}" has no column "${shorten(name)}"${hint}`)
}

/**
 * Parses the SQL condition of a `where` parameter into the tree of every other request. The supported subset
 * of SQL: comparisons, `and`, `or`, `not`, `is`, `in`, `= any`, `between`, `like`, regular expressions,
 * arithmetic, JSON and array operators, casts and functions (PostgreSQL manual, 4.1.6 for the precedence).
 * Names are not checked here, and every text is a value of the statement.
 */
import type { ComparisonOperator, Expression, JsonStep, Literal, Order, TypeName } from '../language/tree/ast.ts'
import { NOWHERE } from '../language/tree/ast.ts'
import {
  and,
  arithmetic,
  array,
  between,
  call,
  column,
  compare,
  inSet,
  inValues,
  isDistinct,
  isNull,
  jsonStep,
  like,
  literal,
  negate,
  not,
  or,
  order,
} from '../language/tree/build.ts'
import type { Values } from '../rest/values.ts'
import { BARE_NAMES, OWN_NAMES } from '../types/builtin.ts'
import { ShapeProblem } from './shape-problem.ts'
import { problemAt, type SqlToken, whereTokens } from './sql-tokens.ts'

/** Limit on nested parentheses, operators and calls. */
export const DEPTH_MAX = 64

/** The names and values that a condition can use. */
export interface ConditionScope {
  /** The name of the table, which can qualify columns. */
  readonly table: string
  /** The alias of the table; null leaves columns unqualified. */
  readonly alias: string | null
  readonly values: Values
  /** The values of `$1 …`, by number. */
  readonly params: ReadonlyMap<number, string>
  readonly maxInValues: number
  /** The columns that it can name; null for all. */
  readonly queryable: readonly string[] | null
}

/**
 * Parses a condition.
 * @throws ShapeProblem for invalid SQL.
 */
export function parseSqlCondition(text: string, scope: ConditionScope): Expression {
  return new ConditionParser(whereTokens(text), scope).whole()
}

/**
 * Parses an order: expressions, each with `asc` or `desc` and `nulls first` or `nulls last`.
 * @throws ShapeProblem for invalid SQL.
 */
export function parseSqlOrder(text: string, scope: ConditionScope): readonly Order[] {
  return new ConditionParser(whereTokens(text), scope).wholeOrder()
}

/** Symbols that compare, with their operators in the tree. */
const COMPARISONS: ReadonlyMap<string, ComparisonOperator> = new Map([
  ['=', '='],
  ['<>', '<>'],
  ['!=', '<>'],
  ['<', '<'],
  ['<=', '<='],
  ['>', '>'],
  ['>=', '>='],
])

/** Other operators with a boolean result; PostgreSQL gives them a higher precedence than comparisons. */
const TESTS: ReadonlyMap<string, ComparisonOperator> = new Map([
  ['@>', '@>'],
  ['<@', '<@'],
  ['&&', '&&'],
  ['?', '?'],
  ['?|', '?|'],
  ['?&', '?&'],
  ['~', 'regex'],
  ['~*', '~*'],
])

const NEGATED_TESTS: ReadonlyMap<string, ComparisonOperator> = new Map([
  ['!~', 'regex'],
  ['!~*', '~*'],
])

const PATTERNS: ReadonlyMap<string, { readonly operator: 'like' | 'ilike'; readonly negated: boolean }> = new Map([
  ['~~', { operator: 'like', negated: false }],
  ['~~*', { operator: 'ilike', negated: false }],
  ['!~~', { operator: 'like', negated: true }],
])

const STEPS: ReadonlySet<string> = new Set(['->', '->>', '#>', '#>>'])

/** Words that cannot be the name of a column without quotes. */
const RESERVED: ReadonlySet<string> = new Set(
  (
    'all and any array as between case cast check collate distinct else end exists from group having in is like ' +
    'limit not null offset on or order select then union using when where with'
  ).split(' '),
)

/** Constants that need no quotes. */
const WORDS: ReadonlyMap<string, Literal['type']> = new Map([
  ['true', 'boolean'],
  ['false', 'boolean'],
  ['null', 'null'],
])

class ConditionParser {
  readonly #tokens: readonly SqlToken[]
  readonly #scope: ConditionScope
  readonly #parameters = new Map<number, ReturnType<Values['add']>>()
  #next = 0
  #depth = 0

  constructor(tokens: readonly SqlToken[], scope: ConditionScope) {
    this.#tokens = tokens
    this.#scope = scope
  }

  /** `condition = or` up to the end of the text */
  whole(): Expression {
    const condition = this.#or()
    if (this.#token.kind !== 'end') this.#refuse()
    return condition
  }

  /** `order = member { "," member }` up to the end of the text */
  wholeOrder(): readonly Order[] {
    const members: Order[] = []
    do members.push(this.#orderMember())
    while (this.#take(','))
    if (this.#token.kind !== 'end') this.#refuse()
    return members
  }

  /** `member = or [ "asc" | "desc" ] [ "nulls" ( "first" | "last" ) ]` */
  #orderMember(): Order {
    const expression = this.#or()
    const descending = this.#takeWord('desc')
    if (!descending) this.#takeWord('asc')
    if (!this.#takeWord('nulls')) return order(expression, { descending })
    if (this.#takeWord('first')) return order(expression, { descending, nulls: 'first' })
    this.#expectWord('last')
    return order(expression, { descending, nulls: 'last' })
  }

  /** `or = and { "or" and }` */
  #or(): Expression {
    return this.#nested(() => {
      const operands = [this.#and()]
      while (this.#takeWord('or')) operands.push(this.#and())
      const [only] = operands
      return operands.length === 1 && only !== undefined ? only : or(...operands)
    })
  }

  /** `and = not { "and" not }` */
  #and(): Expression {
    const operands = [this.#not()]
    while (this.#takeWord('and')) operands.push(this.#not())
    const [only] = operands
    return operands.length === 1 && only !== undefined ? only : and(...operands)
  }

  /** `not = [ "not" ] is` */
  #not(): Expression {
    if (!this.#takeWord('not')) return this.#is()
    return this.#nested(() => not(this.#not()))
  }

  /**
   * `is = comparison { "is" [ "not" ] ( "null" | "true" | "false" | "unknown" | "distinct" "from"
   * comparison ) }`
   */
  #is(): Expression {
    let operand = this.#comparison()
    for (;;) {
      if (this.#takeWord('isnull')) operand = isNull(operand)
      else if (this.#takeWord('notnull')) operand = isNull(operand, 'negated')
      else if (this.#takeWord('is')) operand = this.#isWhat(operand)
      else return operand
      this.#deepen()
    }
  }

  #isWhat(operand: Expression): Expression {
    const negated = this.#takeWord('not')
    if (this.#takeWord('distinct')) {
      this.#expectWord('from')
      return { ...isDistinct(operand, this.#comparison()), negated }
    }
    for (const what of ['null', 'true', 'false'] as const) {
      if (this.#takeWord(what)) return { kind: 'is', what, negated, operand, span: NOWHERE }
    }
    if (this.#takeWord('unknown')) return isNull(operand, negated ? 'negated' : 'plain')
    return this.#refuse()
  }

  /** `comparison = range [ ( "=" | "<>" | … ) range ]` */
  #comparison(): Expression {
    const left = this.#range()
    const operator = this.#takeSymbol(COMPARISONS)
    if (operator === null) return left
    return operator === '=' && this.#takeWord('any') ? this.#any(left) : compare(operator, left, this.#range())
  }

  /** `any = "any" "(" ( parameter | text | "array" "[" … "]" ) [ "::" type ] ")"` */
  #any(operand: Expression): Expression {
    this.#expect('(')
    const set = this.#or()
    this.#expect(')')
    if (set.kind === 'array') return this.#inList(operand, set.items, false)
    const array = set.kind === 'cast' ? set.operand : set
    if (array.kind !== 'position') return this.#refuse('= any needs a parameter, a text or array[…]')
    return inSet(operand, set.kind === 'cast' ? set : array)
  }

  /**
   * `range = other [ [ "not" ] ( "in" list | "between" other "and" other | "like" other | "ilike"
   * other ) ]`
   */
  #range(): Expression {
    const operand = this.#other()
    const isNegated = this.#isWord('not') && ['in', 'between', 'like', 'ilike'].includes(this.#peek().value)
    if (isNegated) this.#next++
    const polarity = isNegated ? 'negated' : 'plain'
    if (this.#takeWord('in')) return this.#inList(operand, this.#list(), isNegated)
    if (this.#takeWord('between')) {
      const low = this.#other()
      this.#expectWord('and')
      return between(operand, low, this.#other(), polarity)
    }
    if (this.#takeWord('like')) return like('like', operand, this.#other(), polarity)
    if (this.#takeWord('ilike')) return like('ilike', operand, this.#other(), polarity)
    return operand
  }

  #inList(operand: Expression, items: readonly Expression[], isNegated: boolean): Expression {
    const { maxInValues } = this.#scope
    if (items.length > maxInValues)
      throw new ShapeProblem('where', `has a list of ${items.length} values; at most ${maxInValues} are allowed`)
    return inValues(operand, items, isNegated ? 'negated' : 'plain')
  }

  /** `other = sum { ( "||" | "->" | "@>" | "~" | … ) sum }` */
  #other(): Expression {
    let left = this.#sum()
    for (;;) {
      const { kind, value } = this.#token
      if (kind !== 'symbol') return left
      const operator = TESTS.get(value)
      const negated = NEGATED_TESTS.get(value)
      const pattern = PATTERNS.get(value)
      if (value === '||') left = this.#after(() => arithmetic('||', left, this.#sum()))
      else if (STEPS.has(value)) left = this.#after(() => jsonStep(value as JsonStep['operator'], left, this.#sum()))
      else if (operator !== undefined) left = this.#after(() => compare(operator, left, this.#sum()))
      else if (negated !== undefined) left = this.#after(() => not(compare(negated, left, this.#sum())))
      else if (pattern !== undefined)
        left = this.#after(() => like(pattern.operator, left, this.#sum(), pattern.negated ? 'negated' : 'plain'))
      else return left
    }
  }

  /** `sum = product { ( "+" | "-" ) product }` */
  #sum(): Expression {
    let left = this.#product()
    for (;;) {
      if (this.#isSymbol('+')) left = this.#after(() => arithmetic('+', left, this.#product()))
      else if (this.#isSymbol('-')) left = this.#after(() => arithmetic('-', left, this.#product()))
      else return left
    }
  }

  /** `product = unary { ( "*" | "/" | "%" ) unary }` */
  #product(): Expression {
    let left = this.#unary()
    for (;;) {
      if (this.#isSymbol('*')) left = this.#after(() => arithmetic('*', left, this.#unary()))
      else if (this.#isSymbol('/')) left = this.#after(() => arithmetic('/', left, this.#unary()))
      else if (this.#isSymbol('%')) left = this.#after(() => arithmetic('%', left, this.#unary()))
      else return left
    }
  }

  /** `unary = [ "-" | "+" ] cast` */
  #unary(): Expression {
    if (this.#take('+')) return this.#nested(() => this.#unary())
    if (!this.#take('-')) return this.#cast()
    return this.#nested(() => {
      const operand = this.#unary()
      if (operand.kind !== 'literal' || (operand.type !== 'integer' && operand.type !== 'decimal'))
        return negate(operand)
      return operand.value.startsWith('-') ? negate(operand) : { ...operand, value: `-${operand.value}` }
    })
  }

  /** `cast = primary { "::" type }` */
  #cast(): Expression {
    let operand = this.#primary()
    while (this.#take('::')) {
      this.#deepen()
      operand = { kind: 'cast', operand, type: this.#type(), span: NOWHERE }
    }
    return operand
  }

  /**
   * `primary = constant | parameter | column | function | "(" or ")" | "array" "[" … "]" | "cast" "("
   * … ")"`
   */
  #primary(): Expression {
    const token = this.#token
    const { values, params } = this.#scope
    switch (token.kind) {
      case 'text':
        this.#next++
        return values.add(token.value)
      case 'integer':
      case 'decimal':
        this.#next++
        return literal(token.kind, token.value)
      case 'parameter': {
        this.#next++
        const number = Number(token.value.slice(1))
        const value = params.get(number)
        if (value === undefined) throw new ShapeProblem('params', `parameter ${token.value} was not provided`)
        const known = this.#parameters.get(number) ?? values.add(value)
        this.#parameters.set(number, known)
        return known
      }
      case 'name':
      case 'quoted':
        return this.#named(token)
      default:
        if (!this.#take('(')) return this.#refuse()
    }
    const inner = this.#or()
    this.#expect(')')
    return inner
  }

  #named(token: SqlToken): Expression {
    const { kind, value } = token
    if (kind === 'name') {
      const constant = WORDS.get(value)
      if (constant !== undefined) {
        this.#next++
        return literal(constant, constant === 'null' ? '' : value)
      }
      if (value === 'array') return this.#array()
      if (value === 'cast') return this.#castCall()
      if (RESERVED.has(value)) this.#refuse()
      // `date '2020-01-01'`: a constant of a type.
      if (this.#peek().kind === 'text' && isTypeWord(value)) {
        const type = this.#type()
        return { kind: 'cast', operand: this.#primary(), type, span: NOWHERE }
      }
    }
    this.#next++
    const path = [value]
    while (this.#take('.')) path.push(this.#name())
    if (this.#isSymbol('(')) {
      const [name = '', schema = null] = path.toReversed()
      return call(name, this.#isEmptyList() ? [] : this.#list(), { schema })
    }
    return this.#column(path)
  }

  /** A column: `column`, `table.column` or `schema.table.column`; the table is that of the shape. */
  #column(path: readonly string[]): Expression {
    const { alias, table, queryable } = this.#scope
    const [name = '', of = table] = path.toReversed()
    if (path.length > 3 || of !== table)
      throw new ShapeProblem('where', `unknown reference ${path.join('.')}; columns are those of "${table}"`)
    if (queryable?.includes(name) === false)
      throw new ShapeProblem('where', `"${name}" is not one of the queryable_columns`)
    return alias === null ? column(name) : column(alias, name)
  }

  /** `array = "array" "[" [ or { "," or } ] "]"` */
  #array(): Expression {
    this.#next++
    this.#expect('[')
    const items: Expression[] = []
    if (!this.#take(']')) {
      do items.push(this.#or())
      while (this.#take(','))
      this.#expect(']')
    }
    return array(items)
  }

  /** `"cast" "(" or "as" type ")"` */
  #castCall(): Expression {
    this.#next++
    this.#expect('(')
    const operand = this.#or()
    this.#expectWord('as')
    const type = this.#type()
    this.#expect(')')
    return { kind: 'cast', operand, type, span: NOWHERE }
  }

  /**
   * `type = name [ "." name ] [ "(" integer { "," integer } ")" ] { "[" "]" }`; names of several words
   * are joined.
   */
  #type(): TypeName {
    const { kind } = this.#token
    const first = this.#name()
    if (this.#take('.')) return this.#finishedType(first, this.#name(), [])
    if (kind === 'quoted') return this.#finishedType(null, first, [])
    if (first === 'double' && this.#takeWord('precision')) return this.#finishedType(null, 'float8', [])
    const isVarying = (first === 'character' || first === 'bit') && this.#takeWord('varying')
    const modifiers = this.#modifiers()
    const known = isVarying ? (first === 'bit' ? 'varbit' : 'varchar') : (OWN_NAMES.get(first) ?? first)
    const hasZone = (known === 'time' || known === 'timestamp') && this.#zone()
    return this.#finishedType(null, hasZone ? `${known}tz` : known, modifiers)
  }

  #finishedType(schema: string | null, name: string, modifiers: readonly number[]): TypeName {
    let dimensions = 0
    while (this.#take('[')) {
      this.#expect(']')
      dimensions++
    }
    return { kind: 'type', schema, name, modifiers, dimensions, span: NOWHERE }
  }

  #modifiers(): readonly number[] {
    if (!this.#take('(')) return []
    const modifiers: number[] = []
    do {
      const { kind, value } = this.#token
      if (kind !== 'integer' || value.length > 9) this.#refuse()
      modifiers.push(Number(value))
      this.#next++
    } while (this.#take(','))
    this.#expect(')')
    return modifiers
  }

  /** `[ ( "with" | "without" ) "time" "zone" ]` */
  #zone(): boolean {
    const isWith = this.#takeWord('with')
    if (!isWith && !this.#takeWord('without')) return false
    this.#expectWord('time')
    this.#expectWord('zone')
    return isWith
  }

  /** `list = "(" or { "," or } ")"` */
  #list(): readonly Expression[] {
    this.#expect('(')
    const items: Expression[] = []
    do items.push(this.#or())
    while (this.#take(','))
    this.#expect(')')
    return items
  }

  #isEmptyList(): boolean {
    if (this.#peek().value !== ')' || this.#peek().kind !== 'symbol') return false
    this.#next += 2
    return true
  }

  // ---- tokens ---------------------------------------------------------------------------------------------

  get #token(): SqlToken {
    return this.#tokens[this.#next] ?? (this.#tokens.at(-1) as SqlToken)
  }

  #peek(): SqlToken {
    return this.#tokens[this.#next + 1] ?? (this.#tokens.at(-1) as SqlToken)
  }

  #isSymbol(symbol: string): boolean {
    return this.#token.kind === 'symbol' && this.#token.value === symbol
  }

  #isWord(word: string): boolean {
    return this.#token.kind === 'name' && this.#token.value === word
  }

  #take(symbol: string): boolean {
    const isTaken = this.#isSymbol(symbol)
    if (isTaken) this.#next++
    return isTaken
  }

  #takeWord(word: string): boolean {
    const isTaken = this.#isWord(word)
    if (isTaken) this.#next++
    return isTaken
  }

  #takeSymbol<T>(symbols: ReadonlyMap<string, T>): T | null {
    const found = this.#token.kind === 'symbol' ? (symbols.get(this.#token.value) ?? null) : null
    if (found !== null) this.#next++
    return found
  }

  #name(): string {
    const { kind, value } = this.#token
    if (kind !== 'name' && kind !== 'quoted') this.#refuse()
    this.#next++
    return value
  }

  #expect(symbol: string): void {
    if (!this.#take(symbol)) this.#refuse()
  }

  #expectWord(word: string): void {
    if (!this.#takeWord(word)) this.#refuse()
  }

  /** Skips the operator and parses its right operand one level deeper. */
  #after(parse: () => Expression): Expression {
    this.#next++
    this.#deepen()
    return parse()
  }

  #nested(parse: () => Expression): Expression {
    const before = this.#depth
    this.#deepen()
    const parsed = parse()
    this.#depth = before
    return parsed
  }

  #deepen(): void {
    this.#depth++
    if (this.#depth > DEPTH_MAX) throw new ShapeProblem('where', `is nested more than ${DEPTH_MAX} levels deep`)
  }

  #refuse(reason?: string): never {
    const { at, written } = this.#token
    throw problemAt(at, reason ?? `syntax error at or near "${written}"`)
  }
}

function isTypeWord(word: string): boolean {
  return BARE_NAMES.has(word) || OWN_NAMES.has(word)
}

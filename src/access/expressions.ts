/** Expressions: every name in them resolved, every parameter typed by what it meets. */
import type { DataType } from '../catalog/model.ts'
import { GatewayError } from '../errors.ts'
import type {
  Cast,
  ColumnReference,
  Comparison,
  Count,
  Exists,
  Expression,
  FrameBound,
  FunctionCall,
  Get,
  In,
  Is,
  Order,
  Parameter,
  PatternMatch,
  SubQuery,
  WindowBody,
} from '../language/ast.ts'
import { call, cast, compare, literal, text } from '../language/build.ts'
import { isAggregate, UNTYPED_ARGUMENTS } from '../language/functions.ts'
import { unreachable } from '../unreachable.ts'
import { NOTHING, resolve, type Scope } from './scope.ts'
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
import { baseOf, castTo, castToNamed, isJson, isNaming, isText, typeNameOf } from './types.ts'

export interface ParameterUse {
  /** The type it was cast to, as PostgreSQL names it. */
  readonly typeName: string
  /** Null where it met nothing whose type is known, as in a step into JSON. */
  readonly type: DataType | null
  /** What it met, for messages: `column "status"`, `argument "since"`. */
  readonly subject: string | null
  /** It stands for many values: one array. */
  readonly list: boolean
}

export interface ExpressionCheckerParts {
  /** PostgreSQL's name of a text search configuration, for `@@`. */
  readonly searchLanguage: string
  /** Checks a query inside an expression. */
  readonly query: (query: Get, outer: Scope) => Get
  /** Refuses functions that a statement may not call; names the others so that they can mean nothing else. */
  readonly function: (call: FunctionCall) => Pick<FunctionCall, 'schema' | 'name'>
  /** The type of a parameter where it meets nothing that has one; null leaves it to PostgreSQL. */
  readonly parameterType: (parameter: Parameter) => string | null
}

/** A text of 64 KiB could become a statement a thousand times as long. */
const REPETITIONS_MAX = 64

/** `n` of `$n`, or the name of `:name`. */
export type ParameterKey = number | string

export function keyOf(parameter: Parameter): ParameterKey {
  return parameter.kind === 'position' ? parameter.n : parameter.name
}

export class ExpressionChecker {
  readonly parameters: Map<ParameterKey, ParameterUse> = new Map()
  readonly #parts: ExpressionCheckerParts
  /** Parameters that were only asked whether they are null so far: what else they meet says what they are. */
  readonly #supposed = new Set<ParameterKey>()
  #repetitions = 0

  constructor(parts: ExpressionCheckerParts) {
    this.#parts = parts
  }

  optional(expression: Expression | null, scope: Scope): Expression | null {
    return expression === null ? null : this.expression(expression, scope)
  }

  expression(expression: Expression, scope: Scope): Expression {
    return this.typed(expression, scope).expression
  }

  typed(expression: Expression, scope: Scope): Typed {
    const inner = (operand: Expression) => this.expression(operand, scope)
    switch (expression.kind) {
      case 'column':
        if (!isOutput(expression, scope)) return resolve(expression, scope)
        this.#countRepetition(expression)
        return untyped(expression)
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
        const operand = comparable(this.typed(expression.operand, scope))
        const low = this.meet(expression.low, operand, scope)
        const high = this.meet(expression.high, operand, scope)
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
        return this.#free(expression)
      case 'function':
        return untyped(this.#call(expression, scope))
      case 'case':
        return untyped({
          ...expression,
          operand: this.optional(expression.operand, scope),
          // biome-ignore lint/suspicious/noThenProperty: the branches of the tree have a `then`, and nothing awaits them.
          whens: expression.whens.map(({ when, then }) => ({ when: inner(when), then: inner(then) })),
          else: this.optional(expression.else, scope),
        })
      case 'array':
      case 'row':
        return untyped({ ...expression, items: expression.items.map(inner) })
      default:
        return unreachable(expression)
    }
  }

  #call(call: FunctionCall, around: Scope): FunctionCall {
    // Inside an aggregate a name is a column, never what a field is called (language reference, notes).
    const scope = isAggregate(call) ? { ...around, outputs: NOTHING.outputs } : around
    const { over } = call
    const named = this.#parts.function(call)
    return {
      ...call,
      ...named,
      arguments: call.arguments.map(argument => {
        const { expression, typeName } = this.typed(argument, scope)
        const isOpen = isParameter(expression) && typeName === 'text' && UNTYPED_ARGUMENTS.has(named.name)
        return isOpen ? cast(expression, 'text') : expression
      }),
      orderBy: this.orders(call.orderBy, scope),
      filter: this.optional(call.filter, scope),
      over: over === null || typeof over === 'string' ? over : this.window(over, scope),
    }
  }

  /** An alias in `having`: the printer repeats what it stands for, however long that is (language reference, notes). */
  #countRepetition({ span }: ColumnReference): void {
    this.#repetitions++
    if (this.#repetitions <= REPETITIONS_MAX) return
    throw new GatewayError(
      'PARSE_ERROR',
      `the "having" of this query mention aliases more than ${REPETITIONS_MAX} times; read from (get …) as name instead`,
      { span },
    )
  }

  /** A parameter that stands alone. */
  #free(parameter: Parameter): Typed {
    const typeName = this.#parts.parameterType(parameter)
    if (typeName === null) return untyped(parameter)
    this.use(parameter, { typeName, type: null, subject: null, list: false })
    // A text is what PostgreSQL takes for whatever is wanted in its place; a number would not be.
    if (typeName === 'text') return { ...UNKNOWN, typeName, expression: parameter }
    return { ...UNKNOWN, typeName, expression: cast(parameter, typeName) }
  }

  window(body: WindowBody, scope: Scope): WindowBody {
    const bound = (end: FrameBound): FrameBound =>
      'offset' in end ? { ...end, offset: this.expression(end.offset, scope) } : end
    const { frame } = body
    return {
      ...body,
      partitionBy: body.partitionBy.map(item => this.expression(item, scope)),
      orderBy: this.orders(body.orderBy, scope),
      frame: frame && { ...frame, start: bound(frame.start), end: frame.end && bound(frame.end) },
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
    if (isParameter(expression.operand)) return { ...expression, operand: this.#suppose(expression.operand) }
    const operand = this.typed(expression.operand, scope)
    const isRow = operand.type !== null && baseOf(operand.type).kind === 'composite'
    if (expression.what !== 'null' || !isRow) return { ...expression, operand: operand.expression }
    const { span, negated } = expression
    return { kind: 'distinct from', negated: !negated, left: operand.expression, right: literal('null', ''), span }
  }

  /** `:since is null or …`: PostgreSQL wants a type at once, and any does. */
  #suppose(parameter: Parameter): Expression {
    const typeName = this.#parts.parameterType(parameter)
    const key = keyOf(parameter)
    if (typeName === null) return parameter
    if (!this.parameters.has(key)) {
      this.use(parameter, { typeName, type: null, subject: null, list: false })
      this.#supposed.add(key)
    }
    return cast(parameter, typeName === 'bool' ? 'bool' : 'text')
  }

  /** A comparison: whichever side is a parameter takes the other's type, row by row. */
  #pair<T extends { readonly left: Expression; readonly right: Expression }>(
    expression: T,
    scope: Scope,
    refuse: (operand: Typed) => void,
  ): T {
    const { left, right } = expression
    if (left.kind === 'row' && right.kind === 'row') {
      const lefts = left.items.map(item => comparable(this.typed(item, scope)))
      const items = right.items.map((item, index) => this.meet(item, lefts[index] ?? UNKNOWN, scope))
      return { ...expression, left: { ...left, items: lefts.map(item => item.expression) }, right: { ...right, items } }
    }
    if (isParameter(left) && !isParameter(right)) {
      const other = comparable(this.typed(right, scope))
      refuse(other)
      return { ...expression, left: this.meet(left, other, scope), right: other.expression }
    }
    const typed = comparable(this.typed(left, scope))
    refuse(typed)
    return { ...expression, left: typed.expression, right: this.meet(right, typed, scope) }
  }

  /** `expression` where it is compared with `other`: a parameter is cast to the other's type. */
  meet(expression: Expression, other: Typed, scope: Scope, subject: string | null = subjectOf(other)): Expression {
    if (!isParameter(expression)) return comparable(this.typed(expression, scope)).expression
    if (other.type !== null) {
      this.use(expression, {
        typeName: other.typeName ?? other.type.name,
        type: other.type,
        subject,
        list: false,
      })
      return castTo(expression, other.type)
    }
    if (other.typeName !== null) {
      this.use(expression, { typeName: other.typeName, type: null, subject, list: false })
      return castToNamed(expression, other.typeName)
    }
    return this.#free(expression).expression
  }

  #pattern(expression: PatternMatch, scope: Scope): Expression {
    return { ...expression, ...this.#textual(expression.operand, expression.pattern, scope) }
  }

  /** Patterns are text whatever they are compared with; what is no text is compared by its text form. */
  #textual(left: Expression, right: Expression, scope: Scope): Pick<PatternMatch, 'operand' | 'pattern'> {
    const typed = this.typed(left, scope)
    const plain = typed.type === null ? !isJsonValue(typed) : isText(typed.type)
    return {
      operand: plain ? typed.expression : cast(typed.expression, 'text'),
      pattern: this.meet(right, { ...typed, type: null, typeName: 'text' }, scope),
    }
  }

  #in(expression: In, scope: Scope): Expression {
    const operand = comparable(this.typed(expression.operand, scope))
    refuseIncomparable(operand)
    const { set } = expression
    if (set.kind === 'subquery') return { ...expression, operand: operand.expression, set: this.#subquery(set, scope) }
    if (set.kind === 'in values') {
      const values = set.values.map(value => this.meet(value, operand, scope))
      return { ...expression, operand: operand.expression, set: { ...set, values } }
    }
    return { ...expression, operand: operand.expression, set: this.#list(set, operand, scope) }
  }

  /** One array in place of a list: of the operand's type, where that is known. */
  #list(set: Parameter | Cast, operand: Typed, scope: Scope): Parameter | Cast {
    if (!isParameter(set)) return this.#castItself(set, scope)
    const typeName = operand.typeName ?? operand.type?.name ?? null
    this.use(set, { typeName: typeName ?? 'any type', type: operand.type, subject: subjectOf(operand), list: true })
    if (typeName === null) return set
    const element = operand.type === null ? castToNamed(set, typeName) : castTo(set, operand.type)
    return { ...element, type: { ...element.type, dimensions: element.type.dimensions + 1 } }
  }

  #exists(expression: Exists, scope: Scope): Expression {
    return { ...expression, query: this.#parts.query(expression.query, scope) }
  }

  #subquery(expression: SubQuery, scope: Scope): SubQuery {
    return { ...expression, query: this.#parts.query(expression.query, scope) }
  }

  #jsonStep(expression: Extract<Expression, { kind: 'json step' }>, scope: Scope): Typed {
    const operand = this.typed(expression.operand, scope)
    if (operand.type !== null && !isJson(operand.type)) {
      throw new GatewayError(
        'PARSE_ERROR',
        `column "${operand.column ?? ''}" is ${operand.typeName ?? operand.type.name}, and -> and ->> lead into json and jsonb only`,
        { span: expression.span },
      )
    }
    const asText = expression.operator === '->>' || expression.operator === '#>>'
    return {
      expression: { ...expression, operand: operand.expression, step: this.expression(expression.step, scope) },
      type: null,
      typeName: asText ? 'text' : (operand.typeName ?? 'jsonb'),
      column: operand.column,
    }
  }

  #cast(expression: Cast, scope: Scope): Typed {
    return { ...UNKNOWN, typeName: typeNameOf(expression.type), expression: this.#castItself(expression, scope) }
  }

  /** The author's own cast types a parameter too. */
  #castItself(expression: Cast, scope: Scope): Cast {
    const { operand, type, span } = expression
    const typeName = typeNameOf(type)
    if (isNaming(type)) {
      throw new GatewayError('FORBIDDEN', `nothing can be cast to ${typeName}: it names what the caller may not see`, {
        span,
      })
    }
    if (!isParameter(operand)) return { ...expression, operand: this.expression(operand, scope) }
    this.use(operand, { typeName, type: null, subject: null, list: type.dimensions > 0 })
    return expression
  }

  /** `column @@ words`: the column as it is when it holds a tsvector, else made into one (language reference, notes). */
  #textSearch(left: Expression, right: Expression, scope: Scope): Expression {
    const document = this.typed(left, scope)
    const language = cast(text(this.#parts.searchLanguage), 'regconfig')
    const words = this.meet(right, { ...UNKNOWN, typeName: 'text', column: document.column }, scope)
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

  orders(orders: readonly Order[], scope: Scope): readonly Order[] {
    return orders.map(item => {
      // A bare name is one of the answer's own first (manual, 7.5).
      if (isOutput(item.expression, scope)) return item
      const typed = this.typed(item.expression, { ...scope, outputs: NOTHING.outputs })
      refuseUnordered(typed)
      return { ...item, expression: typed.expression }
    })
  }

  count(count: Count | null, what: string): Count | null {
    if (count !== null && isParameter(count)) {
      this.use(count, { typeName: 'bigint', type: null, subject: what, list: false })
    }
    return count
  }

  /** What a parameter stands for. Wherever it stands it is one value in one form: the JSON of a text is not the text. */
  use(parameter: Parameter, use: ParameterUse): void {
    const key = keyOf(parameter)
    const before = this.parameters.get(key)
    if (before !== undefined && !this.#supposed.delete(key) && formOf(before) !== formOf(use)) {
      throw new GatewayError(
        'PARSE_ERROR',
        `the same parameter is ${formOf(before)} in one place and ${formOf(use)} in another; use two parameters`,
        { span: parameter.span },
      )
    }
    this.parameters.set(key, use)
  }
}

function formOf({ list, type, typeName }: ParameterUse): 'a list' | 'JSON' | 'a plain value' {
  if (list) return 'a list'
  return (type === null ? typeName === 'json' || typeName === 'jsonb' : isJson(type)) ? 'JSON' : 'a plain value'
}

/** A bare name that is what one of the statement's own fields is called. */
export function isOutput(expression: Expression, scope: Scope): boolean {
  const [name = ''] = expression.kind === 'column' && expression.path.length === 1 ? expression.path : []
  return name !== '' && scope.outputs.has(name)
}

function subjectOf({ column }: Typed): string | null {
  return column === null ? null : `column "${column}"`
}

export function isParameter(expression: Expression): expression is Parameter {
  return expression.kind === 'position' || expression.kind === 'named'
}

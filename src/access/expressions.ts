/** Checks expressions: resolves every name, and types every parameter by its context. */
import type { InlinedBody } from '../catalog/model.ts'
import { GatewayError } from '../errors.ts'
import { hasOperandsOfOneType, listAsJson } from '../language/sql/json-list.ts'
import type {
  Arithmetic,
  Case,
  Cast,
  Comparison,
  Count,
  Expression,
  FrameBound,
  FunctionCall,
  Get,
  In,
  Is,
  Order,
  Parameter,
  SubQuery,
  TypeName,
  WindowBody,
} from '../language/tree/ast.ts'
import { cast, literal } from '../language/tree/build.ts'
import { isAggregate, UNTYPED_ARGUMENTS } from '../language/tree/functions.ts'
import { unreachable } from '../unreachable.ts'
import { boundedArguments, boundPadding } from './built-values.ts'
import { boundedCollection, collectedMentions } from './collected-values.ts'
import { comparisonIn, type OperandCheck, pairIn, patternIn } from './comparisons.ts'
import { boundedElements } from './containment.ts'
import { copiesBy, isSmall } from './copies.ts'
import {
  DIGITS_OF_NUMERIC,
  digitsOfArithmetic,
  digitsOfCall,
  digitsOfCast,
  digitsOfColumn,
  digitsOfLiteral,
  digitsOfType,
  divides,
  productsOf,
} from './digits.ts'
import type { CallableName } from './functions.ts'
import { isNarrow } from './narrow.ts'
import {
  isParameter,
  type ParameterKey,
  type ParameterUse,
  ParameterUses,
  subjectOf,
  type TypeOfParameter,
} from './parameters.ts'
import { boundedPattern, type PatternOperator, searches } from './patterns.ts'
import { type AccessScope, assertWholeRow, NOTHING, resolveName } from './scope.ts'
import type { Tally } from './tally.ts'
import {
  comparable,
  isJsonValue,
  refuseArray,
  refuseIncomparable,
  refuseUncountable,
  refuseUnordered,
  type Typed,
  UNKNOWN,
  untyped,
} from './typed.ts'
import { baseOf, isJson, typeNameOf } from './types.ts'

/** The context of an expression check, provided by the check of the statement. */
export interface ExpressionCheckerParts {
  /** The PostgreSQL name of a text search configuration, for `@@`. */
  readonly searchLanguage: string
  /** Checks a query inside an expression. */
  readonly query: (query: Get, outer: AccessScope) => Get
  /**
   * Rejects functions that a statement cannot call; qualifies the others so that their names are
   * unambiguous.
   */
  readonly function: (call: FunctionCall) => CallableName
  /** What PostgreSQL may replace a call of a database function by. */
  readonly inlined: (name: string) => InlinedBody | undefined
  /** Rejects types that nothing can be cast to; qualifies the others so that their names are unambiguous. */
  readonly type: (type: TypeName) => TypeName
  readonly parameterType: TypeOfParameter
  readonly parameterBytes: (parameter: Parameter) => number
  readonly tally: Tally
}

/** Functions for which PostgreSQL resolves all arguments to one type. */
const ALIKE_ARGUMENTS: ReadonlySet<string> = new Set(['coalesce', 'nullif', 'greatest', 'least'])

/** Checks the expressions of one statement and collects the uses of its parameters. */
export class ExpressionChecker implements OperandCheck {
  readonly #parts: ExpressionCheckerParts
  readonly #uses: ParameterUses

  constructor(parts: ExpressionCheckerParts) {
    this.#parts = parts
    this.#uses = new ParameterUses(parts.parameterType)
  }

  /** The use of each parameter found so far. */
  get parameters(): ReadonlyMap<ParameterKey, ParameterUse> {
    return this.#uses.byKey
  }

  get searchLanguage(): string {
    return this.#parts.searchLanguage
  }

  optional(expression: Expression | null, scope: AccessScope): Expression | null {
    return expression === null ? null : this.expression(expression, scope)
  }

  expression(expression: Expression, scope: AccessScope): Expression {
    return this.typed(expression, scope).expression
  }

  typed(expression: Expression, scope: AccessScope): Typed {
    const { tally } = this.#parts
    const before = tally.mark()
    const typed = this.#typed(expression, scope)
    tally.copySince(before, copiesBy(expression), expression.span)
    tally.addMentions(collectedMentions(typed.expression))
    if (isNarrow(typed)) tally.forgetMentions(before)
    return typed
  }

  #typed(expression: Expression, scope: AccessScope): Typed {
    const inner = (operand: Expression) => this.expression(operand, scope)
    const { tally } = this.#parts
    tally.addTerms(1, expression.span)
    switch (expression.kind) {
      case 'column': {
        if (isOutput(expression, scope)) return untyped(expression)
        const found = resolveName(expression, scope)
        if (found.growth == null && !isSmall(found)) tally.addMentions(1)
        if (found.growth == null) return { ...found, digits: digitsOfColumn(found.type, found.typeName) }
        tally.add(found.growth, expression.span)
        return found
      }
      case 'and':
      case 'or':
        return untyped({ ...expression, operands: expression.operands.map(inner) })
      case 'not':
        return untyped({ ...expression, operand: inner(expression.operand) })
      case 'negate': {
        const { expression: operand, digits } = this.typed(expression.operand, scope)
        return { ...untyped({ ...expression, operand }), ...(digits === undefined ? {} : { digits }) }
      }
      case 'comparison':
        return untyped(comparisonIn(this, expression, scope))
      case 'distinct from':
        return untyped(pairIn(this, expression, scope, refuseIncomparable))
      case 'pattern':
        return untyped({
          ...expression,
          ...patternIn(this, expression.operator, expression.operand, expression.pattern, scope),
        })
      case 'is':
        return untyped(this.#is(expression, scope))
      case 'between': {
        const operand = comparable(this.typed(expression.operand, scope))
        refuseUncountable(operand, expression.low)
        refuseUncountable(operand, expression.high)
        const low = this.meet(expression.low, operand, scope)
        const high = this.meet(expression.high, operand, scope)
        return untyped({ ...expression, operand: operand.expression, low, high })
      }
      case 'in':
        return untyped(this.#in(expression, scope))
      case 'exists':
        return untyped({ ...expression, query: this.#parts.query(expression.query, scope) })
      case 'subquery':
        return untyped(this.#subquery(expression, scope))
      case 'json test':
        return untyped({ ...expression, operand: inner(expression.operand) })
      case 'json step':
        return this.#jsonStep(expression, scope)
      case 'patch':
        return {
          ...untyped({ ...expression, operand: inner(expression.operand), step: inner(expression.step) }),
          typeName: 'jsonb',
        }
      case 'arithmetic':
        return this.#arithmetic(expression, scope)
      case 'cast':
        return this.#cast(expression, scope)
      case 'literal':
        tally.addBytes(expression.value.length, expression.span)
        return { ...untyped(expression), digits: digitsOfLiteral(expression) }
      case 'position':
      case 'named':
        return { ...this.#uses.alone(expression), ...this.#sizeOf(expression) }
      case 'function':
        return this.#call(expression, scope)
      case 'case':
        return untyped(this.#case(expression, scope))
      case 'whole row':
        assertWholeRow(expression, scope)
        return untyped(expression)
      case 'array':
      case 'row':
        return untyped({ ...expression, items: expression.items.map(inner) })
      default:
        return unreachable(expression)
    }
  }

  #arithmetic(expression: Arithmetic, scope: AccessScope): Typed {
    if (hasOperandsOfOneType(expression)) {
      const [left, right] = this.#alike([expression.left, expression.right], scope)
      return untyped({ ...expression, left, right })
    }
    const { operator, span } = expression
    const left = this.typed(expression.left, scope)
    const right = this.typed(expression.right, scope)
    const { digits: leftDigits = DIGITS_OF_NUMERIC } = left
    const { digits: rightDigits = DIGITS_OF_NUMERIC } = right
    if (operator !== '+' && operator !== '-') this.#parts.tally.addProducts(productsOf(leftDigits, rightDigits), span)
    return {
      ...untyped({ ...expression, left: left.expression, right: right.expression }),
      digits: digitsOfArithmetic(operator, leftDigits, rightDigits),
    }
  }

  /** Expressions that PostgreSQL resolves to one type: next to JSON, a list is JSON. */
  #alike<const E extends readonly Expression[]>(
    expressions: E,
    scope: AccessScope,
  ): { readonly [N in keyof E]: Expression } {
    const typed = expressions.map(expression => this.typed(expression, scope))
    const areJson = typed.some(isJsonValue)
    return typed.map(({ expression }) => (areJson ? listAsJson(expression) : expression)) as {
      readonly [N in keyof E]: Expression
    }
  }

  #case(expression: Case, scope: AccessScope): Case {
    const { whens, else: otherwise } = expression
    const thens = this.#alike([...whens.map(({ then }) => then), ...(otherwise === null ? [] : [otherwise])], scope)
    return {
      ...expression,
      operand: this.optional(expression.operand, scope),
      whens: whens.map(({ when, then }, index) => ({
        when: this.expression(when, scope),
        // biome-ignore lint/suspicious/noThenProperty: a branch has a `then`, and nothing awaits it.
        then: thens[index] ?? then,
      })),
      else: otherwise === null ? null : (thens.at(-1) ?? null),
    }
  }

  #call(call: FunctionCall, around: AccessScope): Typed {
    // Inside an aggregate a name is always a column, not a field's alias
    // (docs/reference/language.md#conditions-on-groups).
    const scope = isAggregate(call) ? { ...around, outputs: NOTHING.outputs } : around
    const { over } = call
    const { result, ...named } = this.#parts.function(call)
    const { tally } = this.#parts
    const typed = call.arguments.map(argument => {
      const before = tally.mark()
      return { ...this.typed(argument, scope), growth: tally.since(before) }
    })
    const areJson = ALIKE_ARGUMENTS.has(named.name) && typed.some(isJsonValue)
    const args = typed.map(argument => {
      const { expression, typeName } = argument
      if (areJson) return { ...argument, expression: listAsJson(expression) }
      const isOpen = isParameter(expression) && typeName === 'text' && UNTYPED_ARGUMENTS.has(named.name)
      return isOpen ? { ...argument, expression: cast(expression, 'text') } : argument
    })
    const isOwn = named.schema === 'pg_catalog' || named.schema === null
    const digits = args.map(argument => argument.digits ?? DIGITS_OF_NUMERIC)
    const [dividend = 0, divisor = 0] = digits
    const inlined = isOwn ? undefined : this.#parts.inlined(named.name)
    if (inlined !== undefined) tally.addInlined(inlined, typed, call.span)
    if (isOwn && divides(named)) tally.addProducts(productsOf(dividend, divisor), call.span)
    const checked: FunctionCall = {
      ...call,
      ...named,
      arguments:
        named.schema === 'pg_catalog'
          ? boundedArguments(named.name, call, args, tally)
          : args.map(({ expression }) => expression),
      orderBy: this.orders(call.orderBy, scope),
      filter: this.optional(call.filter, scope),
      over: over === null || typeof over === 'string' ? over : this.window(over, scope),
    }
    if (isOwn) return { ...untyped(boundedCollection(checked, args, tally)), digits: digitsOfCall(named.name, digits) }
    if (result !== undefined) return { ...untyped(checked), type: result.type, typeName: result.typeText }
    return isOwn ? { ...untyped(checked), digits: digitsOfCall(named.name, digits) } : untyped(checked)
  }

  window(body: WindowBody, scope: AccessScope): WindowBody {
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

  /**
   * A row of only NULLs is NULL in SQL, though a column that holds one is not (PostgreSQL manual, 9.2, `IS
   * NULL`). JSON shows the difference, and a cursor that ignored it would never advance.
   */
  #is(expression: Is, scope: AccessScope): Expression {
    if (isParameter(expression.operand)) return { ...expression, operand: this.#uses.suppose(expression.operand) }
    const operand = this.typed(expression.operand, scope)
    const isRow = operand.type !== null && baseOf(operand.type).kind === 'composite'
    if (expression.what !== 'null' || !isRow) return { ...expression, operand: operand.expression }
    const { span, negated } = expression
    return { kind: 'distinct from', negated: !negated, left: operand.expression, right: literal('null', ''), span }
  }

  /** `expression` where it is compared with `other`: a parameter is cast to the other's type. */
  meet(
    expression: Expression,
    other: Typed,
    scope: AccessScope,
    subject: string | null = subjectOf(other),
  ): Expression {
    if (isParameter(expression)) return this.#uses.meet(expression, other, subject)
    const value = isJsonValue(other) ? listAsJson(expression) : expression
    return comparable(this.typed(value, scope)).expression
  }

  pattern(operator: PatternOperator, expression: Expression, other: Typed, scope: AccessScope): Expression {
    const { tally, parameterBytes } = this.#parts
    const before = tally.mark()
    const checked = this.meet(expression, other, scope)
    if (!searches(operator, tally)) return checked
    if (!isParameter(expression)) return boundedPattern(operator, checked, tally.since(before), tally)
    tally.addPattern(parameterBytes(expression), expression.span)
    this.#uses.pattern(expression, tally.limits.maxPatternBytes)
    return checked
  }

  contained(expression: Comparison, compared: (expression: Comparison) => Comparison, scope: AccessScope): Comparison {
    const { tally } = this.#parts
    const before = tally.mark()
    const checked = compared(expression)
    const growth = tally.since(before)
    const bounded = (operand: Expression, written: Expression) =>
      boundedElements(
        { checked: operand, written, growth },
        {
          tally,
          isStored: part => this.#isStored(part, scope),
          onParameter: parameter => this.#uses.contained(parameter, tally.limits.maxContainedElements),
        },
      )
    return {
      ...checked,
      left: bounded(checked.left, expression.left),
      right: bounded(checked.right, expression.right),
    }
  }

  /** Reports whether the expression is a column, or a part of one, that no subquery computes. */
  #isStored(expression: Expression, scope: AccessScope): boolean {
    switch (expression.kind) {
      case 'column':
        return !isOutput(expression, scope) && resolveName(expression, scope).growth == null
      case 'json step':
      case 'cast':
        return this.#isStored(expression.operand, scope)
      default:
        return false
    }
  }

  #in(expression: In, scope: AccessScope): Expression {
    const operand = comparable(this.typed(expression.operand, scope))
    refuseIncomparable(operand)
    const { set } = expression
    if (set.kind === 'subquery') return { ...expression, operand: operand.expression, set: this.#subquery(set, scope) }
    if (set.kind === 'in values') {
      const values = set.values.map(value => this.meet(value, operand, scope))
      return { ...expression, operand: operand.expression, set: { ...set, values } }
    }
    if (isParameter(set)) refuseArray(operand)
    const list = isParameter(set) ? this.#uses.list(set, operand) : this.#cast(set, scope).expression
    return { ...expression, operand: operand.expression, set: list }
  }

  #subquery(expression: SubQuery, scope: AccessScope): SubQuery {
    return { ...expression, query: this.#parts.query(expression.query, scope) }
  }

  #jsonStep(expression: Extract<Expression, { kind: 'json step' }>, scope: AccessScope): Typed {
    const operand = this.typed(expression.operand, scope)
    if (operand.type !== null && !isJson(operand.type)) {
      throw new GatewayError(
        'PARSE_ERROR',
        `column "${operand.column ?? ''}" is ` +
          `${operand.typeName ?? operand.type.name}; -> and ->> take json and jsonb only`,
        { span: expression.span },
      )
    }
    const { operator } = expression
    const asText = operator === '->>' || operator === '#>>'
    const steps = operator === '#>' || operator === '#>>'
    return {
      expression: {
        ...expression,
        operand: operand.expression,
        step: this.meet(expression.step, steps ? { ...UNKNOWN, typeName: 'text[]' } : UNKNOWN, scope),
      },
      type: null,
      typeName: asText ? 'text' : (operand.typeName ?? 'jsonb'),
      column: operand.column,
    }
  }

  #cast(expression: Cast, scope: AccessScope): Typed & { readonly expression: Cast } {
    const { operand } = expression
    const type = this.#parts.type(expression.type)
    boundPadding(type, this.#parts.tally)
    const typed = isParameter(operand) ? this.#castParameter(operand, type) : this.typed(operand, scope)
    return {
      ...UNKNOWN,
      typeName: typeNameOf(type),
      expression: { ...expression, type, operand: typed.expression },
      digits: digitsOfCast(type, typed.digits),
    }
  }

  /** A cast in the query also types a parameter. */
  #castParameter(parameter: Parameter, type: TypeName): Typed {
    this.use(parameter, { typeName: typeNameOf(type), type: null, subject: null, list: type.dimensions > 0 })
    return { ...untyped(parameter), ...this.#sizeOf(parameter) }
  }

  #sizeOf(parameter: Parameter): Pick<Typed, 'digits'> {
    const { parameterBytes, parameterType, tally } = this.#parts
    tally.addBytes(parameterBytes(parameter), parameter.span)
    return { digits: digitsOfType(parameterType(parameter)) }
  }

  orders(orders: readonly Order[], scope: AccessScope): readonly Order[] {
    return orders.map(item => {
      // A bare name is one of the result's own columns first (PostgreSQL manual, 7.5).
      if (isOutput(item.expression, scope)) return item
      const typed = this.typed(item.expression, { ...scope, outputs: NOTHING.outputs, unusableOutputs: scope.outputs })
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

  /** Records the use of a parameter that is not an operand. */
  use(parameter: Parameter, use: ParameterUse): void {
    this.#uses.use(parameter, use)
  }
}

/** True if the expression is a bare name that one of the statement's own fields has. */
export function isOutput(expression: Expression, scope: AccessScope): boolean {
  const [name = ''] = expression.kind === 'column' && expression.path.length === 1 ? expression.path : []
  return name !== '' && scope.outputs.has(name)
}

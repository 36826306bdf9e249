/** The parameters of one statement: each takes its type from its context. */
import type { DataType } from '../catalog/model.ts'
import { GatewayError } from '../errors.ts'
import type { Cast, Expression, Parameter } from '../language/tree/ast.ts'
import { cast } from '../language/tree/build.ts'
import type { PatternUse } from './patterns.ts'
import { isJsonValue, type Typed, UNKNOWN, untyped } from './typed.ts'
import { castTo, castToNamed } from './types.ts'

/** How a statement uses a parameter: its type and the subject for messages. */
export interface ParameterUse {
  /** The type that it is cast to, as PostgreSQL names it. */
  readonly typeName: string
  /** The type; null if the context has no known type, as in a step into JSON. */
  readonly type: DataType | null
  /**
   * The column or argument that it is compared with, for messages: `column "status"`, `argument "since"`;
   * null for none.
   */
  readonly subject: string | null
  /** True if it holds a list of values, sent as one array. */
  readonly list: boolean
  /** Set if it is the pattern of a `like`. */
  readonly pattern?: PatternUse
  /** Maximum number of elements, if the parameter is an operand of `@>` or a similar operator. */
  readonly containedMax?: number
}

/** `n` of `$n`, or the name of `:name`. */
export type ParameterKey = number | string

/** The key of a parameter in maps. */
export function parameterKeyOf(parameter: Parameter): ParameterKey {
  return parameter.kind === 'position' ? parameter.n : parameter.name
}

/** True if the expression is a parameter. */
export function isParameter(expression: Expression): expression is Parameter {
  return expression.kind === 'position' || expression.kind === 'named'
}

/** The type of a parameter whose context has none; null leaves it to PostgreSQL. */
export type TypeOfParameter = (parameter: Parameter) => string | null

/** Collects the uses of a statement's parameters. */
export class ParameterUses {
  readonly byKey: Map<ParameterKey, ParameterUse> = new Map()
  readonly #typeOf: TypeOfParameter
  /** Parameters used only in IS NULL tests so far; any other use determines their type. */
  readonly #supposed = new Set<ParameterKey>()

  constructor(typeOf: TypeOfParameter) {
    this.#typeOf = typeOf
  }

  /**
   * Records the use of a parameter. All uses of a parameter must agree, because it is one value in one
   * form: the JSON encoding of a text differs from the text.
   */
  use(parameter: Parameter, use: ParameterUse): void {
    const key = parameterKeyOf(parameter)
    const before = this.byKey.get(key)
    if (before !== undefined && !this.#supposed.delete(key) && formOf(before) !== formOf(use)) {
      throw new GatewayError(
        'PARSE_ERROR',
        `the same parameter is ${formOf(before)} in one place and ${formOf(use)} in another; use two parameters`,
        { span: parameter.span },
      )
    }
    const { pattern, containedMax } = before ?? {}
    const kept = {
      ...(pattern === undefined ? {} : { pattern }),
      ...(containedMax === undefined ? {} : { containedMax }),
    }
    this.byKey.set(key, { ...use, ...kept })
  }

  /** Records that a parameter, already used as a text, is a pattern. */
  pattern(parameter: Parameter, bytesMax: number): void {
    const key = parameterKeyOf(parameter)
    const use = this.byKey.get(key)
    const mentions = (use?.pattern?.mentions ?? 0) + 1
    if (use !== undefined) this.byKey.set(key, { ...use, pattern: { mentions, bytesMax } })
  }

  /** Bounds the elements of a parameter that is an operand of `@>` or a similar operator. */
  contained(parameter: Parameter, containedMax: number): void {
    const key = parameterKeyOf(parameter)
    const use = this.byKey.get(key)
    if (use !== undefined) this.byKey.set(key, { ...use, containedMax })
  }

  /** A parameter without a typed context. */
  alone(parameter: Parameter): Typed {
    const typeName = this.#typeOf(parameter)
    if (typeName === null) return untyped(parameter)
    this.use(parameter, { typeName, type: null, subject: null, list: false })
    // PostgreSQL converts an untyped text to whatever type the context requires; it does not convert a
    // number.
    if (typeName === 'text') return { ...UNKNOWN, typeName, expression: parameter }
    return { ...UNKNOWN, typeName, expression: cast(parameter, typeName) }
  }

  /**
   * Gives a parameter in an IS NULL test a type, as in `:since is null or …`. PostgreSQL requires one, and
   * any type works.
   */
  suppose(parameter: Parameter): Expression {
    const typeName = this.#typeOf(parameter)
    const key = parameterKeyOf(parameter)
    if (typeName === null) return parameter
    if (!this.byKey.has(key)) {
      this.use(parameter, { typeName, type: null, subject: null, list: false })
      this.#supposed.add(key)
    }
    return cast(parameter, typeName === 'bool' ? 'bool' : 'text')
  }

  /** A parameter that is compared with `other`: it is cast to the type of `other`. */
  meet(parameter: Parameter, other: Typed, subject: string | null): Expression {
    if (other.type !== null) {
      this.use(parameter, { typeName: other.typeName ?? other.type.name, type: other.type, subject, list: false })
      return castTo(parameter, other.type)
    }
    if (other.typeName !== null) {
      this.use(parameter, { typeName: other.typeName, type: null, subject, list: false })
      return castToNamed(parameter, other.typeName)
    }
    return this.alone(parameter).expression
  }

  /** A parameter in place of a list: one array of the operand's type, if that is known. */
  list(parameter: Parameter, operand: Typed): Parameter | Cast {
    const typeName = operand.typeName ?? operand.type?.name ?? null
    this.use(parameter, {
      typeName: typeName ?? 'any type',
      type: operand.type,
      subject: subjectOf(operand),
      list: true,
    })
    if (typeName === null) return parameter
    const element = operand.type === null ? castToNamed(parameter, typeName) : castTo(parameter, operand.type)
    return { ...element, type: { ...element.type, dimensions: element.type.dimensions + 1 } }
  }
}

function formOf(use: ParameterUse): 'a list' | 'JSON' | 'a plain value' {
  if (use.list) return 'a list'
  return isJsonValue(use) ? 'JSON' : 'a plain value'
}

/** How messages name the column that an expression is; null if it is not a column. */
export function subjectOf({ column }: Typed): string | null {
  return column === null ? null : `column "${column}"`
}

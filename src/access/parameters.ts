/** The parameters of one statement: what each meets says what it is. */
import type { DataType } from '../catalog/model.ts'
import { GatewayError } from '../errors.ts'
import type { Cast, Expression, Parameter } from '../language/tree/ast.ts'
import { cast } from '../language/tree/build.ts'
import type { PatternUse } from './patterns.ts'
import { isJsonValue, type Typed, UNKNOWN, untyped } from './typed.ts'
import { castTo, castToNamed } from './types.ts'

export interface ParameterUse {
  /** The type it was cast to, as PostgreSQL names it. */
  readonly typeName: string
  /** Null where it met nothing whose type is known, as in a step into JSON. */
  readonly type: DataType | null
  /** What it met, for messages: `column "status"`, `argument "since"`. */
  readonly subject: string | null
  /** It stands for many values: one array. */
  readonly list: boolean
  /** It is what `like` looks for. */
  readonly pattern?: PatternUse
}

/** `n` of `$n`, or the name of `:name`. */
export type ParameterKey = number | string

export function keyOf(parameter: Parameter): ParameterKey {
  return parameter.kind === 'position' ? parameter.n : parameter.name
}

export function isParameter(expression: Expression): expression is Parameter {
  return expression.kind === 'position' || expression.kind === 'named'
}

/** The type of a parameter where it meets nothing that has one; null leaves it to PostgreSQL. */
export type TypeOfParameter = (parameter: Parameter) => string | null

export class ParameterUses {
  readonly byKey: Map<ParameterKey, ParameterUse> = new Map()
  readonly #typeOf: TypeOfParameter
  /** Parameters that were only asked whether they are null so far: what else they meet says what they are. */
  readonly #supposed = new Set<ParameterKey>()

  constructor(typeOf: TypeOfParameter) {
    this.#typeOf = typeOf
  }

  /**
   * What a parameter stands for. Wherever it stands it is one value in one form: the JSON of a text is not
   * the text.
   */
  use(parameter: Parameter, use: ParameterUse): void {
    const key = keyOf(parameter)
    const before = this.byKey.get(key)
    if (before !== undefined && !this.#supposed.delete(key) && formOf(before) !== formOf(use)) {
      throw new GatewayError(
        'PARSE_ERROR',
        `the same parameter is ${formOf(before)} in one place and ${formOf(use)} in another; use two parameters`,
        { span: parameter.span },
      )
    }
    this.byKey.set(key, before?.pattern === undefined ? use : { ...use, pattern: before.pattern })
  }

  /** One that has met a text whose pattern it is. */
  pattern(parameter: Parameter, bytesMax: number): void {
    const key = keyOf(parameter)
    const use = this.byKey.get(key)
    const mentions = (use?.pattern?.mentions ?? 0) + 1
    if (use !== undefined) this.byKey.set(key, { ...use, pattern: { mentions, bytesMax } })
  }

  /** One that stands alone. */
  alone(parameter: Parameter): Typed {
    const typeName = this.#typeOf(parameter)
    if (typeName === null) return untyped(parameter)
    this.use(parameter, { typeName, type: null, subject: null, list: false })
    // A text is what PostgreSQL takes for whatever is wanted in its place; a number would not be.
    if (typeName === 'text') return { ...UNKNOWN, typeName, expression: parameter }
    return { ...UNKNOWN, typeName, expression: cast(parameter, typeName) }
  }

  /** `:since is null or …`: PostgreSQL wants a type at once, and any does. */
  suppose(parameter: Parameter): Expression {
    const typeName = this.#typeOf(parameter)
    const key = keyOf(parameter)
    if (typeName === null) return parameter
    if (!this.byKey.has(key)) {
      this.use(parameter, { typeName, type: null, subject: null, list: false })
      this.#supposed.add(key)
    }
    return cast(parameter, typeName === 'bool' ? 'bool' : 'text')
  }

  /** One that is compared with `other`: it is cast to the other's type. */
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

  /** One array in place of a list: of the operand's type, where that is known. */
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

export function subjectOf({ column }: Typed): string | null {
  return column === null ? null : `column "${column}"`
}

/** Formats literals, parameters and types. */

import { scanJson } from '../../json/text/scan.ts'
import { isKnownType } from '../syntax/parse-type.ts'
import { type Literal, type Parameter, PLACEHOLDER, type TypeName } from '../tree/ast.ts'
import { LanguageError } from '../tree/error.ts'
import { NESTING_MAX } from '../tree/nesting.ts'
import { formatDotted, formatText, quoteName } from './format-name.ts'

const FORMS: Readonly<Record<Literal['type'], RegExp | null>> = {
  integer: /^-?[0-9]+$/,
  decimal: /^-?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?$/i,
  boolean: /^(true|false)$/,
  duration: /^[0-9]+(s|m|h|d|w|mo|y)$/,
  json: null,
  text: null,
  null: null,
}

/** Formats a literal. */
export function formatLiteral({ type, value, span }: Literal): string {
  if (FORMS[type]?.test(value) === false) {
    throw new LanguageError(`the ${type} ${JSON.stringify(value)} has no text form`, span)
  }
  switch (type) {
    case 'text':
      return formatText(value)
    case 'null':
      return 'null'
    case 'json':
      return isJsonLiteral(value) ? value : `${formatText(value)}::jsonb`
    default:
      return value
  }
}

/**
 * Reports whether the text of a JSON literal is parsed as JSON: it is an object, or a list that contains one.
 * Other JSON is formatted as a text with a cast.
 */
export function isJsonLiteral(value: string): boolean {
  if (!/^[[{]/.test(value)) return false
  const { end, hasObject } = scanJson(value, 0, NESTING_MAX)
  return end === value.length && hasObject
}

/** Reports whether the literal is a number. */
export function isNumberLiteral({ type }: Literal): boolean {
  return type === 'integer' || type === 'decimal'
}

/** Reports whether the literal is a number with a minus sign. */
export function isNegative(literal: Literal): boolean {
  return isNumberLiteral(literal) && literal.value.startsWith('-')
}

/** A parameter's name is one word, possibly a keyword. In the condition of a policy it can be a path. */
const PARAMETER = /^(?![0-9])[\p{L}\p{M}\p{N}_]+$/u
const POLICY_PARAMETER = /^[A-Za-z_]\w*(\.[A-Za-z_]\w*)+$/

/** Formats a parameter: `$1`, `:name`, or the placeholder of a pattern. */
export function formatParameter(parameter: Parameter): string {
  if (parameter.kind === 'position') return `$${parameter.n}`
  if (parameter.name === PLACEHOLDER) return PLACEHOLDER
  if (PARAMETER.test(parameter.name)) return `:${parameter.name}`
  if (POLICY_PARAMETER.test(parameter.name)) return `$${parameter.name}`
  throw new LanguageError(`the parameter name ${JSON.stringify(parameter.name)} has no text form`, parameter.span)
}

/** Names of types that the language translates to PostgreSQL's. */
const SYNONYM = /^(string|str|i32|i64|f64)$/

/**
 * `int4`, `numeric(10, 2)[]`, `sales.status`; a type without a schema that is not a known type is quoted in
 * backticks.
 */
export function formatType({ schema, name, modifiers, dimensions }: TypeName): string {
  const isKnown = isKnownType(name) && !SYNONYM.test(name)
  const bare = schema === null ? (isKnown ? name : quoteName(name)) : formatDotted([schema, name])
  return `${bare}${modifiers.length > 0 ? `(${modifiers.join(', ')})` : ''}${'[]'.repeat(dimensions)}`
}

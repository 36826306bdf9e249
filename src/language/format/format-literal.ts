/** Literals, parameters and types in canonical form. */

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

/** Whether the text is read as JSON where it stands: an object, or a list with one in it. Other JSON is a text with a cast. */
export function isJsonLiteral(value: string): boolean {
  if (!/^[[{]/.test(value)) return false
  const { end, hasObject } = scanJson(value, 0, NESTING_MAX)
  return end === value.length && hasObject
}

export function isNumber({ type }: Literal): boolean {
  return type === 'integer' || type === 'decimal'
}

export function isNegative(literal: Literal): boolean {
  return isNumber(literal) && literal.value.startsWith('-')
}

/** A parameter's name is one word, keyword or not. In the conditions of a policy it is a path, too. */
const PARAMETER = /^(?![0-9])[\p{L}\p{M}\p{N}_]+$/u
const POLICY_PARAMETER = /^[A-Za-z_]\w*(\.[A-Za-z_]\w*)+$/

export function formatParameter(parameter: Parameter): string {
  if (parameter.kind === 'position') return `$${parameter.n}`
  if (parameter.name === PLACEHOLDER) return PLACEHOLDER
  if (PARAMETER.test(parameter.name)) return `:${parameter.name}`
  if (POLICY_PARAMETER.test(parameter.name)) return `$${parameter.name}`
  throw new LanguageError(`the parameter name ${JSON.stringify(parameter.name)} has no text form`, parameter.span)
}

/** Names of the language that stand for another type. */
const SYNONYM = /^(string|str|i32|i64|f64)$/

/** `int4`, `numeric(10, 2)[]`, `sales.status`; a type without a schema that the language does not know is written in back-ticks. */
export function formatType({ schema, name, modifiers, dimensions }: TypeName): string {
  const isKnown = isKnownType(name) && !SYNONYM.test(name)
  const bare = schema === null ? (isKnown ? name : quoteName(name)) : formatDotted([schema, name])
  return `${bare}${modifiers.length > 0 ? `(${modifiers.join(', ')})` : ''}${'[]'.repeat(dimensions)}`
}

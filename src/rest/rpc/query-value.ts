/**
 * Converts an argument in a query string to PostgreSQL's text form of its type. Arrays and ranges have the
 * notations of filters.
 */
import { baseOf } from '../../access/types.ts'
import type { FunctionInput } from '../../catalog/model.ts'
import { GatewayError } from '../../errors.ts'
import { toArrayLiteral } from '../../text/array-text.ts'
import { shorten } from '../../text/shorten.ts'
import { toArrayOperand, toMultirangeOperand, toRangeOperand } from '../parameters/list-values.ts'
import { takesArray } from './match-score.ts'
import type { QueryValue } from './passed-arguments.ts'
import { printArgument } from './signature.ts'

/**
 * The text form of an argument. A repeated parameter is an array.
 * @throws {GatewayError} `PARSE_ERROR` for a malformed array.
 */
export function toParameter({ texts }: QueryValue, input: FunctionInput): string {
  const [text = ''] = texts
  if (takesArray(input.type)) {
    if (texts.length > 1) return toArrayLiteral(texts)
    return toArrayOperand(text, message => {
      throw new GatewayError('PARSE_ERROR', `the value "${shorten(text)}" for ${printArgument(input)} ${message}`)
    })
  }
  switch (baseOf(input.type).kind) {
    case 'range':
      return toRangeOperand(text)
    case 'multirange':
      return toMultirangeOperand(text)
    default:
      return text
  }
}

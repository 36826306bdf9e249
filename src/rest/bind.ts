/**
 * Binds a request's values to a statement's parameters and converts query-string notations to PostgreSQL's
 * text forms.
 */
import { assertElements } from '../access/containment.ts'
import type { ParameterUse } from '../access/parameters.ts'
import { assertPatterns } from '../access/patterns.ts'
import { baseOf } from '../access/types.ts'
import type { BoundStatement, CompiledStatement, StatementValue } from '../compile/statement.ts'
import { GatewayError } from '../errors.ts'
import { shorten } from '../text/shorten.ts'
import { toArrayOperand, toMultirangeOperand, toRangeOperand } from './parameters/list-values.ts'

/**
 * Fills the parameters of `statement`; element n − 1 of `values` is the value of `$n`.
 * @throws {GatewayError} `PARSE_ERROR` for a value that is not valid for its parameter.
 */
export function bindValues<S extends CompiledStatement>(
  statement: S,
  values: readonly StatementValue[],
): BoundStatement<S> {
  const bound = statement.parameters.map(parameter => {
    if ('literal' in parameter) return parameter.literal
    const value = values[Number(parameter.key) - 1]
    if (value === undefined) throw new Error(`the request has no value for ${parameter.key}`)
    return textOf(value, parameter.use)
  })
  assertPatterns(statement.parameters, bound)
  assertElements(statement.parameters, bound)
  return { statement, values: bound }
}

/**
 * Converts a value to PostgreSQL's text form for the type of its parameter.
 * @throws {GatewayError} `PARSE_ERROR` for a malformed array.
 */
export function textOf(value: StatementValue, use: ParameterUse): StatementValue {
  // A buffer holds JSON, which PostgreSQL parses itself.
  if (typeof value !== 'string' || use.type === null || use.list) return value
  switch (baseOf(use.type).kind) {
    case 'array':
      return toArrayOperand(value, message => {
        throw new GatewayError(
          'PARSE_ERROR',
          `the value "${shorten(value)}" for ${use.subject ?? 'a parameter'} ${message}`,
        )
      })
    case 'range':
      return toRangeOperand(value)
    case 'multirange':
      return toMultirangeOperand(value)
    default:
      return value
  }
}

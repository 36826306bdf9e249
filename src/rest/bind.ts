/** Fills a statement's parameters from a request's values: the notations of the query string become PostgreSQL's text forms. */
import type { ParameterUse } from '../access/parameters.ts'
import { assertPatterns } from '../access/patterns.ts'
import { baseOf } from '../access/types.ts'
import type { BoundStatement, Statement, StatementValue } from '../compile/statement.ts'
import { GatewayError } from '../errors.ts'
import { shorten } from '../text/shorten.ts'
import { toArrayOperand, toMultirangeOperand, toRangeOperand } from './parameters/list-values.ts'

export function bindValues<S extends Statement>(statement: S, values: readonly StatementValue[]): BoundStatement<S> {
  const bound = statement.parameters.map(parameter => {
    if ('literal' in parameter) return parameter.literal
    const value = values[Number(parameter.key) - 1]
    if (value === undefined) throw new Error(`the request has no value for ${parameter.key}`)
    return textOf(value, parameter.use)
  })
  assertPatterns(statement.parameters, bound)
  return { statement, values: bound }
}

/** A value in PostgreSQL's text form. */
export function textOf(value: StatementValue, use: ParameterUse): StatementValue {
  // Bytes are JSON: PostgreSQL takes that apart itself.
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

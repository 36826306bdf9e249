/** Fills a statement's parameters from a request's values: the notations of the query string become PostgreSQL's text forms. */
import type { ParameterUse } from '../access/check.ts'
import { baseOf } from '../access/types.ts'
import { GatewayError } from '../errors.ts'
import type { BoundStatement, Statement } from '../run/statement.ts'
import { shorten } from '../shorten.ts'
import { toArrayOperand, toMultirangeOperand, toRangeOperand } from './list-values.ts'

export function bindValues(statement: Statement, values: readonly string[]): BoundStatement {
  return {
    statement,
    values: statement.parameters.map(({ n, use }) => {
      const value = values[n - 1]
      if (value === undefined) throw new Error(`the request has no value for $${n}`)
      return toText(value, use)
    }),
  }
}

function toText(value: string, use: ParameterUse): string {
  if (use.type === null || use.list) return value
  switch (baseOf(use.type).kind) {
    case 'array':
      return toArrayOperand(value, message => {
        throw new GatewayError(
          'PARSE_ERROR',
          `the value "${shorten(value)}" for column "${use.column ?? ''}" ${message}`,
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

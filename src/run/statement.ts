/** A checked tree as SQL: the only way from the tree to text that runs. */
import type { CheckedQuery, ParameterUse } from '../access/check.ts'
import { GatewayError } from '../errors.ts'
import { LanguageError } from '../language/error.ts'
import { printRows, type RowsOptions } from '../language/print-rows.ts'

declare const printed: unique symbol

/** Text that may run, with what each of its `$1 …` is. It depends on the shape of the request, never on its values. */
export interface Statement {
  readonly [printed]: true
  readonly text: string
  readonly parameters: readonly StatementParameter[]
}

export interface StatementParameter {
  /** Which of the tree's parameters: `n` of its `$n`, counted from 1. */
  readonly n: number
  readonly use: ParameterUse
}

/** A statement with the values of its parameters, in the statement's order and PostgreSQL's text form. */
export interface BoundStatement {
  readonly statement: Statement
  readonly values: readonly string[]
}

/**
 * Each row of the answer is one row of PostgreSQL's: column 1 the row as JSON text, then the text of each sort key, for cursors.
 */
export function printRead(checked: CheckedQuery, keys: 'with keys' | 'without keys'): Statement {
  const { query } = checked
  const { text, parameters } = print(query, {
    keys: keys === 'with keys' ? query.orderBy.map(order => order.expression) : [],
  })
  const numbered = parameters.map((parameter): StatementParameter => {
    if (parameter.kind !== 'position') throw new Error(`a request's tree has no ${parameter.kind} parameters`)
    const use = checked.parameters.get(parameter.n)
    if (use === undefined) throw new Error(`parameter $${parameter.n} met nothing that gives it a type`)
    return { n: parameter.n, use }
  })
  return { text, parameters: numbered } as unknown as Statement
}

/** What the printer refuses – a tree too deep – has passed every check of names, and still is the request's doing. */
function print(query: CheckedQuery['query'], options: RowsOptions): ReturnType<typeof printRows> {
  try {
    return printRows(query, options)
  } catch (error) {
    if (error instanceof LanguageError) throw new GatewayError('PARSE_ERROR', error.message, { cause: error })
    throw error
  }
}

/** Makes statements: for `compile/` alone, which checks what it prints. */
import type { CheckedQuery } from '../access/check.ts'
import { GatewayError } from '../errors.ts'
import type { Sql } from '../language/sql/printer.ts'
import { LanguageError, RepetitionError } from '../language/tree/error.ts'
import { LIMIT_NAMES } from '../statement-limits.ts'
import type { Statement, StatementParameter, Unbranded } from './statement.ts'

/** Says that the text was printed from a tree that passed the check, or from the catalogue alone. */
export function statement<S extends Statement>(fields: Unbranded<S>): S {
  return fields as unknown as S
}

/** What the printer may write at most. */
export interface Bounds {
  readonly repeatedCharactersMax: number
}

/** The text, and what each parameter in it is. */
export function printed(
  { parameters, limits }: Pick<CheckedQuery, 'parameters' | 'limits'>,
  print: (bounds: Bounds) => Sql,
): { readonly text: string; readonly parameters: readonly StatementParameter[] } {
  const sql = refusing(() => print({ repeatedCharactersMax: limits.maxRepeatedCharacters }))
  const numbered = sql.parameters.map((parameter): StatementParameter => {
    if (parameter.kind === 'literal') return { literal: parameter.value }
    const key = parameter.kind === 'position' ? parameter.n : parameter.name
    const use = parameters.get(key)
    if (use === undefined) throw new Error(`parameter ${key} met nothing that gives it a type`)
    return { key, use }
  })
  return { text: sql.text, parameters: numbered }
}

/** What the printer refuses – a tree too deep – has passed every check of names, and still is the request's doing. */
function refusing(print: () => Sql): Sql {
  try {
    return print()
  } catch (error) {
    if (error instanceof LanguageError) {
      const span = error.span === null ? {} : { span: error.span }
      if (error instanceof RepetitionError) {
        const limit = LIMIT_NAMES.maxRepeatedCharacters
        throw new GatewayError('PARSE_ERROR', `${error.message} (${limit})`, { cause: error, limit, ...span })
      }
      throw new GatewayError('PARSE_ERROR', error.message, { cause: error, ...span })
    }
    throw error
  }
}

/** Creates statements. Only for `compile/`, which checks the trees it prints. */
import type { CheckedQuery } from '../access/check.ts'
import { GatewayError } from '../errors.ts'
import type { Sql } from '../language/sql/printer.ts'
import { LanguageError, RepetitionError } from '../language/tree/error.ts'
import { LIMIT_NAMES } from '../statement-limits.ts'
import type { CompiledStatement, StatementParameter, Unbranded } from './statement.ts'

/** Marks the text as printed from a checked tree, or from the catalog only. */
export function statement<S extends CompiledStatement>(fields: Unbranded<S>): S {
  return fields as unknown as S
}

/** Limits on the printed text. */
export interface PrintLimits {
  readonly repeatedCharactersMax: number
  readonly repetitionsMax: number
  readonly nestedBytesMax: number
}

/** Prints the text and describes each of its parameters. */
export function printed(
  { parameters, limits }: Pick<CheckedQuery, 'parameters' | 'limits'>,
  print: (bounds: PrintLimits) => Sql,
): { readonly text: string; readonly parameters: readonly StatementParameter[] } {
  const sql = refusing(() =>
    print({
      repeatedCharactersMax: limits.maxRepeatedCharacters,
      repetitionsMax: limits.maxRepetitions,
      nestedBytesMax: limits.maxCollectedBytes,
    }),
  )
  const numbered = sql.parameters.map((parameter): StatementParameter => {
    if (parameter.kind === 'literal') return { literal: parameter.value }
    const key = parameter.kind === 'position' ? parameter.n : parameter.name
    const use = parameters.get(key)
    if (use === undefined) throw new Error(`parameter ${key} has no use that gives it a type`)
    return { key, use }
  })
  return { text: sql.text, parameters: numbered }
}

/**
 * Translates errors of the printer. A tree that is too deep passes every check of names and is still an error
 * of the request.
 */
function refusing(print: () => Sql): Sql {
  try {
    return print()
  } catch (error) {
    if (error instanceof LanguageError) {
      const span = error.span === null ? {} : { span: error.span }
      if (error instanceof RepetitionError) {
        const limit = LIMIT_NAMES[error.of === 'times' ? 'maxRepetitions' : 'maxRepeatedCharacters']
        throw new GatewayError('PARSE_ERROR', `${error.message} (${limit})`, { cause: error, limit, ...span })
      }
      throw new GatewayError('PARSE_ERROR', error.message, { cause: error, ...span })
    }
    throw error
  }
}

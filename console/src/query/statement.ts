/** Errors and SQL of a query text, found in the browser. */
import { LanguageError, parse, printSql } from '../../../src/language/index.ts'

/** The error of a text; null if it is valid. */
export function syntaxErrorOf(text: string): LanguageError | null {
  try {
    parse(text)
    return null
  } catch (error) {
    if (error instanceof LanguageError) return error
    throw error
  }
}

/** The SQL of a text, before names are checked and row-level security applies; null if it has none. */
export function sqlOf(text: string): string | null {
  try {
    return printSql(parse(text)).text
  } catch (error) {
    if (error instanceof LanguageError) return null
    throw error
  }
}

/** The short text of a value, for a cell. */
import { type Json, printJson } from './json.ts'

/** Limit on the characters of a cell; the row shows the whole value. */
export const CELL_CHARACTERS_MAX = 120

export function cellText(value: Json): string {
  const text = typeof value === 'string' ? value : printJson(value)
  return text.length <= CELL_CHARACTERS_MAX ? text : `${text.slice(0, CELL_CHARACTERS_MAX)}…`
}

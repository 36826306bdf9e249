/**
 * The words of a JSON text (RFC 8259), as patterns that match where they are set to. Strings are narrower
 * than in the RFC, as jsonb takes them: no `\u0000` and no halves of surrogate pairs, written out or escaped.
 * For JSON in strings; `json-scanner` has the same grammar for bytes.
 */

export const STRING: RegExp =
  /"(?:[^"\\\x00-\x1f\p{Surrogate}]|\\["\\/bfnrt]|\\u(?!0000)(?:[0-9A-Ca-cE-Fe-f][0-9A-Fa-f]{3}|[Dd][0-7][0-9A-Fa-f]{2}|[Dd][89ABab][0-9A-Fa-f]{2}\\u[Dd][C-Fc-f][0-9A-Fa-f]{2}))*"/uy

/** As defined by the RFC, to distinguish what PostgreSQL cannot store from what is not a string. */
export const ANY_STRING: RegExp = /"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y

/** A number, or one of three words. */
export const SCALAR: RegExp =
  /(?:-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null)(?![A-Za-z0-9_])/y

/** Also nothing at all. */
export const BLANKS: RegExp = /[ \t\r\n]*/y

/** Where the word that begins at the offset ends; -1 where none does. */
export function endOf(word: RegExp, text: string, at: number): number {
  word.lastIndex = at
  return word.test(text) ? word.lastIndex : -1
}

/**
 * The tokens of a JSON text (RFC 8259), as sticky patterns. Strings are narrower than in the RFC, as jsonb
 * accepts them: without `\u0000` and unpaired surrogates, literal or escaped. For JSON in strings;
 * `json-scanner` has the same grammar for bytes.
 */

const CODE_UNIT = '[0-9A-Ca-cE-Fe-f][0-9A-Fa-f]{3}|[Dd][0-7][0-9A-Fa-f]{2}'
const SURROGATE_PAIR = String.raw`[Dd][89ABab][0-9A-Fa-f]{2}\\u[Dd][C-Fc-f][0-9A-Fa-f]{2}`
export const STRING: RegExp = new RegExp(
  String.raw`"(?:[^"\\\x00-\x1f\p{Surrogate}]|\\["\\/bfnrt]|\\u(?!0000)(?:${CODE_UNIT}|${SURROGATE_PAIR}))*"`,
  'uy',
)

/** A string as defined by the RFC, to distinguish strings that PostgreSQL cannot store from invalid ones. */
export const ANY_STRING: RegExp = /"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y

/** A number, or one of three words. */
export const SCALAR: RegExp =
  /(?:-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null)(?![A-Za-z0-9_])/y

/** White space, possibly empty. */
export const BLANKS: RegExp = /[ \t\r\n]*/y

/** The end of the token that begins at the offset; -1 without a token. */
export function endOf(word: RegExp, text: string, at: number): number {
  word.lastIndex = at
  return word.test(text) ? word.lastIndex : -1
}

/**
 * Prepares a password for SCRAM (RFC 4013) as PostgreSQL does: a password that SASLprep forbids is used
 * unchanged (PostgreSQL's `pg_saslprep` and its callers).
 */
import { LEFT_TO_RIGHT, RIGHT_TO_LEFT, UNASSIGNED } from './stringprep-tables.ts'

/** RFC 3454, B.1: mapped to nothing. */
// biome-ignore lint/suspicious/noMisleadingCharacterClass: single code points are meant
const NOTHING = /[\u00AD\u034F\u1806\u180B-\u180D\u200B-\u200D\u2060\uFE00-\uFE0F\uFEFF]/gu
/**
 * RFC 3454, C.1.2: spaces other than the ASCII one. U+200B is in both tables; RFC 4013, 2.1 maps spaces
 * first.
 */
const SPACES = /[\u00A0\u1680\u2000-\u200B\u202F\u205F\u3000]/gu
/**
 * RFC 4013, 2.3: control characters, private use, non-characters, surrogates, and what is inappropriate for
 * plain text.
 */
const PROHIBITED = new RegExp(
  [
    '[',
    String.raw`\p{Cc}\p{Co}\p{Cs}\p{Noncharacter_Code_Point}\u06DD\u070F\u180E\u200C-\u200F\u2028-\u202E`,
    String.raw`\u2060-\u2063\u206A-\u206F\uFEFF\uFFF9-\uFFFD\u2FF0-\u2FFB\u0340\u0341\u{1D173}-\u{1D17A}`,
    String.raw`\u{E0001}\u{E0020}-\u{E007F}`,
    ']',
  ].join(''),
  'u',
)

export function saslprep(password: string): string {
  if (/^[ -~]*$/.test(password)) return password
  const prepared = password.replace(SPACES, ' ').replace(NOTHING, '').normalize('NFKC')
  if (prepared === '' || PROHIBITED.test(prepared) || UNASSIGNED.test(prepared) || mixesDirections(prepared)) {
    return password
  }
  return prepared
}

/**
 * RFC 3454, 6: right-to-left text must not be mixed with left-to-right, and must begin and end with itself.
 */
function mixesDirections(text: string): boolean {
  if (!RIGHT_TO_LEFT.test(text)) return false
  const characters = [...text]
  const first = characters[0] as string
  const last = characters[characters.length - 1] as string
  return LEFT_TO_RIGHT.test(text) || !RIGHT_TO_LEFT.test(first) || !RIGHT_TO_LEFT.test(last)
}

/**
 * The session settings that the text of a function, or the stored form of an expression, can read. Whatever
 * is not certain counts as reading all settings.
 */
import { commentEnd } from '../text/comment-end.ts'

/** The settings that a text or an expression reads. */
export interface SettingNames {
  /** In lower case. */
  readonly names: readonly string[]
  /** Why it may read any setting; null if it reads only these. */
  readonly unclear: string | null
}

/** PostgreSQL's functions that read settings by computed names, or run a text, as regular expressions. */
export const ANY_SETTING = 'pg_show_all_settings|(query|cursor|table|schema|database)_to_xml[a-z_]*|ts_stat|ts_rewrite'

/** These and the view of the settings as whole words of a text. */
const ANY_WORD = new RegExp(`\\b(?:pg_settings|${ANY_SETTING})\\b`, 'i')

/** A call that names the setting with a literal without escapes. Only its type may follow the literal. */
const CALL = /\bcurrent_setting"?\s*\(\s*(?:'([^'\\]*)'|\$(\w*)\$([^$\\]*)\$\2\$)\s*(?:::\s*text\s*)?(?=[,)])/gi

/** A text in the language of SQL or PL/pgSQL. Names in comments and strings count as well. */
export function settingNamesOf(body: string): SettingNames {
  if (/\bu&["']/i.test(body)) return unclear('uses Unicode escapes')
  const any = ANY_WORD.exec(body)
  if (any !== null) return unclear(`uses ${any[0].toLowerCase()}`)
  const names = [...body.matchAll(CALL)].map(([, quoted, , dollars]) => (quoted ?? dollars ?? '').toLowerCase())
  if (names.length !== (body.match(/current_setting/gi)?.length ?? 0)) return unclear('computes the name of a setting')
  const dynamic = dynamicWord(body)
  return dynamic === null ? { names: [...new Set(names)].sort(), unclear: null } : unclear(dynamic)
}

function unclear(reason: string): SettingNames {
  return { names: [], unclear: reason }
}

/** A backslash in a plain string ends the search: its meaning depends on a setting. */
const TOKEN = new RegExp(
  [
    String.raw`(?<skipped>e'(?:[^'\\]|\\[^]|'')*'|'(?:[^'\\]|'')*'|--[^\n\r]*|"(?:[^"]|"")+"|\s+|\$\d+|\d+)`,
    String.raw`(?<comment>/\*)|\$(?<tag>(?:[a-z_\x80-\uffff][\w\x80-\uffff]*)?)\$`,
    String.raw`(?<word>[a-z_\x80-\uffff][\w$\x80-\uffff]*)|(?<other>[^'"])`,
  ].join('|'),
  'iy',
)

/** The words that follow DO in statements other than code blocks. */
const AFTER_DO: ReadonlySet<string> = new Set(['nothing', 'update', 'also', 'instead'])

/** The objects that a function can create without the text of another function. */
const PLAIN_OBJECTS: ReadonlySet<string> = new Set(['table', 'temp', 'temporary', 'unlogged', 'index', 'unique'])

/** Why the statements are not all in the text: one of them runs a text, or shows a setting. */
function dynamicWord(body: string): string | null {
  let before = ''
  for (const word of wordsOf(body)) {
    if (word === null) return 'cannot be read with certainty'
    if (word === 'execute' || word === 'show') return `uses ${word.toUpperCase()}`
    if (before === 'do' && !AFTER_DO.has(word)) return 'uses DO'
    if (before === 'create' && !PLAIN_OBJECTS.has(word)) return 'uses CREATE'
    before = word
  }
  return before === 'do' || before === 'create' ? `uses ${before.toUpperCase()}` : null
}

/** The words outside of strings and comments, in lower case; null where the text cannot be divided. */
function* wordsOf(body: string): Generator<string | null> {
  const token = new RegExp(TOKEN)
  while (token.lastIndex < body.length) {
    const at = token.lastIndex
    const groups = token.exec(body)?.groups
    if (groups === undefined) return yield null
    const { comment, tag, word } = groups
    if (word !== undefined) yield word.toLowerCase()
    else if (comment !== undefined || tag !== undefined) {
      const end = comment === undefined ? endOfDollars(body, token.lastIndex, `$${tag}$`) : commentEnd(body, at)
      if (end === null) return yield null
      token.lastIndex = end
    }
  }
}

function endOfDollars(body: string, from: number, delimiter: string): number | null {
  const end = body.indexOf(delimiter, from)
  return end < 0 ? null : end + delimiter.length
}

/** Decodes a stored text constant: its length, four bytes of header, and its bytes as signed numbers. */
export function textOfConstant(printed: string): string | null {
  const [length, ...bytes] = printed
    .split(/[[\]\s]+/)
    .filter(Boolean)
    .map(Number)
  if (length === undefined || bytes.length !== length || length < 4) return null
  return Buffer.from(bytes.slice(4)).toString('utf8')
}

/** The words of a search: which of them count, and their stems. English, like the documentation. */

/** Words that say nothing about the subject of a text. The index does not contain them. */
const STOP_WORDS: ReadonlySet<string> = new Set(
  (
    'about also an any are at be been but can could do does for had has have how instead into it its me my of ' +
    'only our should so some than that the their them then there these they this to use using want was we what ' +
    'whether which while who whose why will would you your else'
  ).split(' '),
)

/** Words of the query language that are as frequent in texts. They count only if a search has no others. */
const KEYWORDS: ReadonlySet<string> = new Set('all and as by each every from if in is on or when where with'.split(' '))

/** Reports whether the index has no such word: single characters and stop words. */
export function isStopWord(word: string): boolean {
  return word.length === 1 || STOP_WORDS.has(word)
}

/** Reports whether a search with other words finds the same without this one. */
export function isWeak(word: string): boolean {
  return isStopWord(word) || KEYWORDS.has(word)
}

/** Beginnings that are too short to be a stem: `ring`, `used`. */
const STEM_LENGTH_MIN = 3

/** Endings with their replacements; the first that fits is replaced. */
const ENDINGS: readonly (readonly [RegExp, string])[] = [
  [/ically$/, 'ic'],
  [/ally$|ly$/, ''],
  [/ies$|ied$/, 'y'],
  [/(ss|x|ch|sh)es$/, '$1'],
  [/([^sui])s$/, '$1'],
]

/** Endings of verbs and of the nouns made from them: `creates`, `creating`, `created`, `creation`. */
const OF_VERBS = /(?:ing|ed|ion|e)$/

/** The stem of a word in lower case: the same for `retries`, `retried` and `retry`. */
export function stemOf(word: string): string {
  const plain = ENDINGS.reduce((found, [ending, by]) => {
    if (found !== word) return found
    const stem = word.replace(ending, by)
    return stem.length >= STEM_LENGTH_MIN ? stem : word
  }, word)
  const stem = plain.replace(OF_VERBS, '')
  if (stem === plain || stem.length < STEM_LENGTH_MIN || !/[aeiouy]/.test(stem)) return plain
  // `dropped`, `drop`.
  return stem.replace(/([bdgmnprt])\1$/, '$1')
}

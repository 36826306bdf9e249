/** The nearest known word, for suggestions in errors. */

/** Longer words are no slips of the finger. */
const WORD_LENGTH_MAX = 32

const EDITS_MAX = 2

/**
 * The candidate with the fewest edits (insert, delete, replace a letter, swap two neighbours) from `word`, letter case not counted;
 * one edit for each three letters and at most `EDITS_MAX`, and of equals the one that begins like the word, since fingers slip late. Null
 * where none is near enough to be meant.
 */
export function nearestWord(word: string, candidates: Iterable<string>): string | null {
  if (word.length > WORD_LENGTH_MAX) return null
  const wanted = word.toLowerCase()
  let found: string | null = null
  let least = Math.min(EDITS_MAX, Math.max(1, Math.floor(wanted.length / 3)))
  for (const candidate of candidates) {
    if (Math.abs(candidate.length - wanted.length) > least) continue
    const edits = editsBetween(wanted, candidate)
    // A word of one or two letters is near everything: as many edits as letters mean nothing.
    if (edits > least || edits >= Math.min(wanted.length, candidate.length)) continue
    const isNearer = found === null || edits < least
    if (isNearer || commonStart(wanted, candidate) > commonStart(wanted, found ?? '')) found = candidate
    least = edits
  }
  return found
}

function commonStart(a: string, b: string): number {
  let length = 0
  while (length < a.length && a[length] === b[length]) length++
  return length
}

/** Optimal string alignment: Damerau-Levenshtein where no letter is edited twice. */
function editsBetween(a: string, b: string): number {
  let beforeLast: readonly number[] = []
  let last: readonly number[] = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const replaced = (last[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      const others = Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1)
      row.push(Math.min(replaced, others, swapped ? (beforeLast[j - 2] ?? 0) + 1 : others))
    }
    beforeLast = last
    last = row
  }
  return last[b.length] ?? 0
}

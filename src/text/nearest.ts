/**
 * The nearest known name, for error messages: `unknown column "stauts"; did you mean "status"?` Implemented
 * here because no package supports transpositions with a bound ([decision
 * 0032](../../docs/decisions/0032-packages-or-own-code.md)).
 */

/** Limits on the names compared. */
export interface Bounds {
  /** Longer texts, written or known, are not compared. */
  readonly lengthMax: number
  /** One edit for each three letters, and at most this many. */
  readonly editsMax: number
}

/**
 * PostgreSQL truncates names at 63 bytes; `schema.table` is the longest reasonable name. Longer ones are
 * hostile.
 */
export const NAMES: Bounds = { lengthMax: 128, editsMax: 3 }

/** Words of a language are short, and near to each other. */
export const WORDS: Bounds = { lengthMax: 32, editsMax: 2 }

/**
 * The candidate with the fewest edits (insert, delete, replace a letter, swap two neighbors) from `name`,
 * ignoring case; among equals the one with the same beginning, then the first. Null if none is near enough: a
 * wrong suggestion is worse than none.
 * Takes time in O(candidates × length): lengths are compared first, and only a band of the edit table is
 * computed.
 */
export function nearest(
  name: string,
  candidates: Iterable<string>,
  { lengthMax, editsMax }: Bounds = NAMES,
): string | null {
  if (name.length > lengthMax) return null
  const wanted = name.toLowerCase()
  let found: string | null = null
  let foundStart = -1
  let least = Math.min(editsMax, Math.max(1, Math.floor(wanted.length / 3)))
  for (const candidate of candidates) {
    if (candidate.length > lengthMax) continue
    const known = candidate.toLowerCase()
    const start = commonStart(wanted, known)
    const bound = found === null || start > foundStart ? least : least - 1
    // A short name is near everything: at least one letter must be the same.
    const edits = editsWithin(wanted, known, Math.min(bound, Math.max(wanted.length, known.length) - 1))
    if (edits === null) continue
    found = candidate
    foundStart = start
    if (edits === 0) break
    least = edits
  }
  return found
}

function commonStart(a: string, b: string): number {
  let length = 0
  while (length < a.length && a[length] === b[length]) length++
  return length
}

/**
 * The number of edits between two texts, or null if more than `bound`. Optimal string alignment:
 * Damerau-Levenshtein where no letter is edited twice (Boytsov, "Indexing methods for approximate dictionary
 * searching", 2011, 2.2). Without `swaps`, swapping two neighbors is two edits (Levenshtein).
 */
export function editsWithin(a: string, b: string, bound: number, swaps = true): number | null {
  if (Math.abs(a.length - b.length) > bound) return null
  const tooMany = bound + 1
  let beforeLast: number[] = []
  let last: number[] = []
  let row: number[] = []
  for (let j = 0; j <= Math.min(b.length, tooMany); j++) row.push(j)
  for (let i = 1; i <= a.length; i++) {
    ;[beforeLast, last, row] = [last, row, beforeLast]
    // Only cells within `bound` of the diagonal matter. Their neighbours outside get a value above the bound.
    const first = Math.max(1, i - bound)
    const end = Math.min(b.length, i + bound)
    row[first - 1] = first === 1 ? Math.min(i, tooMany) : tooMany
    let least = row[first - 1] ?? tooMany
    for (let j = first; j <= end; j++) {
      const replaced = (last[j - 1] ?? tooMany) + (a[i - 1] === b[j - 1] ? 0 : 1)
      // Before the first letter, the index is out of range and yields undefined, which equals no letter.
      const swapped = swaps && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      const edits = Math.min(
        replaced,
        (last[j] ?? tooMany) + 1,
        (row[j - 1] ?? tooMany) + 1,
        swapped ? (beforeLast[j - 2] ?? tooMany) + 1 : tooMany,
      )
      row[j] = edits
      least = Math.min(least, edits)
    }
    row[end + 1] = tooMany
    if (least > bound) return null
  }
  const edits = row[b.length] ?? tooMany
  return edits > bound ? null : edits
}

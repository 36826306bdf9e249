/**
 * Finds the name that is most similar to one that does not exist: among the names that share a trigram (or
 * else a bigram) with it, the one with the smallest edit distance.
 */

import { editsWithin } from '../text/nearest.ts'

/** Suggestions for tables and functions are at least this similar. */
const SCORE_MIN = 0.75

/** Limits the work for long or many names. */
const LENGTH_MAX = 128

/** The most similar name; null if none is similar enough. */
export function similarName(name: string, names: readonly string[], scoreMin: number = SCORE_MIN): string | null {
  const wanted = name.toLowerCase()
  if (wanted.length > LENGTH_MAX) return null
  for (const size of [3, 2]) {
    const found = mostSimilar(wanted, names, size, scoreMin)
    if (found !== null) return found
  }
  return null
}

function mostSimilar(wanted: string, names: readonly string[], size: number, scoreMin: number): string | null {
  const grams = gramsOf(wanted, size)
  const near = names.flatMap(candidate => {
    const known = candidate.toLowerCase()
    if (known.length > LENGTH_MAX || !sharesGram(grams, known, size)) return []
    const length = Math.max(wanted.length, known.length)
    const edits = editsWithin(wanted, known, Math.ceil((1 - scoreMin) * length), false)
    return edits === null ? [] : [{ candidate, score: 1 - edits / length }]
  })
  const best = near.filter(({ score }) => score >= scoreMin).toSorted((a, b) => b.score - a.score)
  return best[0]?.candidate ?? null
}

function gramsOf(text: string, size: number): ReadonlySet<string> {
  const padded = `-${text}-`
  const grams = new Set<string>()
  for (let at = 0; at + size <= padded.length; at += 1) grams.add(padded.slice(at, at + size))
  return grams
}

function sharesGram(grams: ReadonlySet<string>, text: string, size: number): boolean {
  for (const gram of gramsOf(text, size)) if (grams.has(gram)) return true
  return false
}

/** PostgreSQL suggests columns up to this distance. */
const COLUMN_DISTANCE_MAX = 3

/** The columns that PostgreSQL suggests for a name that does not exist: one, two equally near, or none. */
export function suggestedColumns(name: string, columns: Iterable<string>): readonly string[] {
  let distance = Math.min(COLUMN_DISTANCE_MAX, Math.floor(name.length / 2))
  let found: string[] = []
  for (const column of columns) {
    if (column.length > LENGTH_MAX || name.length > LENGTH_MAX) continue
    const edits = editsWithin(column, name, distance, false)
    if (edits === null) continue
    if (edits < distance) found = []
    distance = edits
    found.push(column)
  }
  return found.length > 2 ? [] : found
}

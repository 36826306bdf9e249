/**
 * The patterns of an allow-list: a query without its values (decision 0013). The key is the query in
 * canonical form with a placeholder at every position that a line can leave open; the values are those at
 * the placeholders.
 */

export interface QueryShape {
  readonly key: string
  /**
   * The value at each placeholder of the key, in order; null for a value that is not part of the text, such
   * as a parameter's, so no line can require it.
   */
  readonly values: readonly (string | null)[]
  /** The line that approves exactly this shape: names at placeholders are kept, data values are left open. */
  line(): string
}

/** A line of the list. */
export interface QueryPattern {
  readonly key: string
  /** The value that the line requires at each placeholder; null for any value. */
  readonly values: readonly (string | null)[]
}

/** The patterns of a list, indexed for matching. */
export interface PatternSet {
  readonly size: number
  has(shape: Pick<QueryShape, 'key' | 'values'>): boolean
  add(pattern: QueryPattern): void
}

/**
 * Lines with the same key differ in which placeholders they fix. A match takes one look-up for each such
 * set of placeholders, however many lines there are.
 */
export function createPatternSet(): PatternSet {
  const known = new Map<string, Map<string, Choice>>()
  let size = 0
  return {
    get size() {
      return size
    },
    has({ key, values }) {
      const choices = known.get(key)
      if (choices === undefined) return false
      for (const { filled, lines } of choices.values()) {
        if (!filled.includes(true)) return true
        if (lines.has(JSON.stringify(values.map((value, index) => (filled[index] ? value : null))))) return true
      }
      return false
    },
    add({ key, values }) {
      const filled = values.map(value => value !== null)
      const choices = known.get(key) ?? new Map<string, Choice>()
      known.set(key, choices)
      const name = filled.join()
      const choice = choices.get(name) ?? { filled, lines: new Set<string>() }
      choices.set(name, choice)
      const before = choice.lines.size
      choice.lines.add(JSON.stringify(values))
      size += choice.lines.size - before
    },
  }
}

interface Choice {
  readonly filled: readonly boolean[]
  readonly lines: Set<string>
}

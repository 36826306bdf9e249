/**
 * What an allow-list compares: a query apart from its values (decision 0013). The key is the query in
 * canonical form with every place open that a line may leave open; the values are what stands in these
 * places.
 */

export interface QueryShape {
  readonly key: string
  /**
   * One for each open place of the key, in order. Null: it comes from elsewhere, as that of a parameter, so
   * no line can demand it.
   */
  readonly values: readonly (string | null)[]
  /** The line that approves just this: names that stand in open places are kept, data is left open. */
  line(): string
}

/** A line of the list. */
export interface QueryPattern {
  readonly key: string
  /** Null: any. */
  readonly values: readonly (string | null)[]
}

export interface PatternSet {
  readonly size: number
  has(shape: Pick<QueryShape, 'key' | 'values'>): boolean
  add(pattern: QueryPattern): void
}

/**
 * Lines of one key are told apart by which places they fill; one look-up for each such choice, however many
 * lines there are.
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

/** Shapes of texts, kept: an application sends the same texts with other parameters, and canonical form takes longer than parsing. */
import { LRUCache } from 'lru-cache'
import type { QueryShape } from '../access/list/pattern.ts'
import { shapeOfQuery } from '../access/list/query-shape.ts'
import type { Statement } from '../language/tree/ast.ts'

const SHAPES_MAX = 1_000

/** Of all texts and keys together. */
const CHARACTERS_MAX = 8 * 1024 * 1024

/** A longer text is not kept: one caller's giants would push out everybody's ordinary ones. */
const ONE_TEXT_CHARACTERS_MAX = 16 * 1024

export interface Shapes {
  /** `tree` is what `text` was parsed as. */
  of(text: string, tree: Statement): QueryShape
}

export function createShapes(): Shapes {
  const known = new LRUCache<string, Pick<QueryShape, 'key' | 'values'>>({
    max: SHAPES_MAX,
    maxSize: CHARACTERS_MAX,
    // The values are parts of the text.
    sizeCalculation: ({ key }, text) => 2 * text.length + key.length,
  })
  return {
    of(text, tree) {
      // Not the tree, which is many times as large: its line is made for the few that want it.
      const found = known.get(text)
      if (found !== undefined) return { ...found, line: () => shapeOfQuery(tree).line() }
      const shape = shapeOfQuery(tree)
      if (text.length <= ONE_TEXT_CHARACTERS_MAX) known.set(text, { key: shape.key, values: shape.values })
      return shape
    },
  }
}

/** The examples of the language by the ids that a search finds them under. */
import type { Example } from '../../language/corpus/example.ts'
import { EXAMPLES } from '../../language/corpus/index.ts'
import type { Kind } from './model.ts'

export const EXAMPLE_KIND: Kind = 'example'

/** `example:join-3`: the third one of joins. */
export const EXAMPLE_IDS: ReadonlyMap<string, Example> = new Map(
  EXAMPLES.map((example, at) => {
    const before = EXAMPLES.slice(0, at).filter(({ construct }) => construct === example.construct)
    return [`example:${example.construct}-${before.length + 1}`, example]
  }),
)

export function exampleOfId(id: string): Example | null {
  return EXAMPLE_IDS.get(id) ?? null
}

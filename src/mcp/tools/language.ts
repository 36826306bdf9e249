/** Tools that teach the language: its grammar by construct, and examples with their SQL. */
import { CONSTRUCTS, type Construct } from '../../language/corpus/constructs.ts'
import type { Example } from '../../language/corpus/example.ts'
import { NOTES } from '../../language/corpus/grammar.ts'
import { EXAMPLES, INVALID } from '../../language/corpus/index.ts'
import { printEbnf } from '../../language/corpus/markdown.ts'
import { optional } from '../arguments.ts'
import { type Part, partOf } from '../constructs.ts'
import { EXAMPLE_KIND, exampleOfId } from '../library/examples.ts'
import type { Library } from '../library/library.ts'
import { SEARCH_LENGTH_MAX } from '../library/search.ts'
import { arrayOf, record, STRING } from '../schema.ts'
import { defineTool, type Tool } from '../tool.ts'
import { limit } from './limit.ts'

/** A card is read whole by every agent that asks, so it is short. */
const CARD_EXAMPLES_MAX = 6
const CARD_MISTAKES_MAX = 3

const CONSTRUCT = optional('A construct: where, join, with, conflict, order, nest, …', 40)

const EXAMPLE = record({ query: STRING, sql: STRING, note: STRING })

export interface Card {
  readonly construct: string
  /** In EBNF. */
  readonly grammar: string
  readonly notes: readonly string[]
  readonly examples: readonly ShownExample[]
}

interface ShownExample {
  readonly query: string
  readonly sql: string
  readonly note: string
}

export const syntax: Tool = defineTool({
  name: 'svc_syntax',
  title: 'Grammar card',
  description:
    'The grammar of one construct with notes, common mistakes and examples; without an argument, the list of constructs.',
  arguments: { construct: CONSTRUCT },
  output: {
    type: 'object',
    oneOf: [
      record({
        card: record({ construct: STRING, grammar: STRING, notes: arrayOf(STRING), examples: arrayOf(EXAMPLE) }),
      }),
      record({ constructs: arrayOf(record({ construct: STRING, title: STRING })) }),
    ],
  },
  run: ({ construct }) => (construct === null ? { constructs: listed() } : { card: cardOf(partOf(construct)) }),
})

export function examplesTool(library: Library): Tool {
  return defineTool({
    name: 'svc_examples',
    title: 'Examples with their SQL',
    description:
      'Queries with the SQL they become, each verified against PostgreSQL: of a construct, by words (e.g. "latest row of each group"), or both.',
    arguments: {
      construct: CONSTRUCT,
      query: optional('Words that say what the query should do', SEARCH_LENGTH_MAX),
      limit,
    },
    output: record({ examples: arrayOf(EXAMPLE) }),
    run({ construct, query, limit }) {
      const part = construct === null ? null : partOf(construct)
      const candidates = query === null ? spread(part?.constructs ?? ALL) : searched(library, query)
      const fitting = candidates.filter(example => part === null || part.constructs.includes(example.construct))
      return { examples: fitting.slice(0, limit).map(shown) }
    },
  })
}

const ALL = Object.keys(CONSTRUCTS) as Construct[]

function listed(): readonly { readonly construct: string; readonly title: string }[] {
  return Object.entries(CONSTRUCTS).map(([construct, title]) => ({ construct, title }))
}

export function cardOf({ name, constructs, productions }: Part): Card {
  const notes = NOTES.filter(note => note.constructs.some(construct => constructs.includes(construct)))
  const mistakes = INVALID.filter(({ construct }) => constructs.includes(construct))
    .slice(0, CARD_MISTAKES_MAX)
    .map(({ query, error, hint }) => `Refused: ${JSON.stringify(query)} – ${hint ?? error}`)
  return {
    construct: name,
    grammar: productions.map(printEbnf).join('\n'),
    notes: [...notes.map(({ text }) => text), ...mistakes],
    examples: spread(constructs).slice(0, CARD_EXAMPLES_MAX).map(shown),
  }
}

/** In turn one of each construct, so that a few of them show all. */
function spread(constructs: readonly Construct[]): readonly Example[] {
  const groups = constructs.map(construct => EXAMPLES.filter(example => example.construct === construct))
  const longest = Math.max(...groups.map(({ length }) => length))
  return Array.from({ length: longest }, (_, at) => groups.flatMap(group => group[at] ?? [])).flat()
}

function searched(library: Library, query: string): readonly Example[] {
  return library.search(query, EXAMPLE_KIND, EXAMPLES.length).flatMap(({ entry }) => exampleOfId(entry.id) ?? [])
}

function shown({ query, formatted = query, sql, note }: Example): ShownExample {
  return { query: formatted, sql, note }
}

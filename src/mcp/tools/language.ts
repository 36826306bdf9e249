/** Tools that teach the language: its grammar by construct, and examples with their SQL. */
import type { Construct, Corpus, QueryExample } from '../../corpus/corpus.ts'
import { printEbnf } from '../../corpus/markdown.ts'
import { optional } from '../arguments.ts'
import { type ConstructLookup, lookUpConstruct } from '../constructs.ts'
import type { Library } from '../library/library.ts'
import { EXAMPLE_KIND } from '../library/of-corpus.ts'
import { SEARCH_LENGTH_MAX } from '../library/search.ts'
import { arrayOf, record, STRING_SCHEMA } from '../schema.ts'
import { defineTool, type Tool } from '../tool.ts'
import { limit } from './limit.ts'

/** Limit on the examples of a card, which agents read completely. */
const CARD_EXAMPLES_MAX = 6
const CARD_MISTAKES_MAX = 3

const CONSTRUCT = optional('A construct: where, join, with, conflict, order, nest, …', 40)

const EXAMPLE = record({ query: STRING_SCHEMA, sql: STRING_SCHEMA, note: STRING_SCHEMA })

/** The description of a construct. */
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

/** The tool that describes constructs. */
export function syntaxTool({ corpus }: Library): Tool {
  return defineTool({
    name: 'svc_syntax',
    title: 'Grammar card',
    description:
      'The grammar of one construct with notes, common mistakes and examples; ' +
      'without an argument, the list of constructs.',
    arguments: { construct: CONSTRUCT },
    output: {
      type: 'object',
      oneOf: [
        record({
          card: record({
            construct: STRING_SCHEMA,
            grammar: STRING_SCHEMA,
            notes: arrayOf(STRING_SCHEMA),
            examples: arrayOf(EXAMPLE),
          }),
        }),
        record({ constructs: arrayOf(record({ construct: STRING_SCHEMA, title: STRING_SCHEMA })) }),
      ],
    },
    run: ({ construct }) =>
      construct === null
        ? { constructs: listed(corpus) }
        : { card: cardOf(lookUpConstruct(construct, corpus), corpus) },
  })
}

/** The tool that shows examples. */
export function examplesTool(library: Library): Tool {
  return defineTool({
    name: 'svc_examples',
    title: 'Examples with their SQL',
    description:
      'Queries with the SQL they become, each verified against PostgreSQL: of a construct, ' +
      'by words (e.g. "latest row of each group"), or both.',
    arguments: {
      construct: CONSTRUCT,
      query: optional('Words that describe what the query should do', SEARCH_LENGTH_MAX),
      limit,
    },
    output: record({ examples: arrayOf(EXAMPLE) }),
    run({ construct, query, limit }) {
      const { corpus } = library
      const part = construct === null ? null : lookUpConstruct(construct, corpus)
      const candidates =
        query === null ? spread(part?.constructs ?? Object.keys(corpus.constructs), corpus) : searched(library, query)
      const fitting = candidates.filter(example => part === null || part.constructs.includes(example.construct))
      return { examples: fitting.slice(0, limit).map(shown) }
    },
  })
}

function listed({ constructs }: Corpus): readonly { readonly construct: string; readonly title: string }[] {
  return Object.entries(constructs).map(([construct, title]) => ({ construct, title }))
}

/** The description of the constructs that were looked up. */
export function cardOf({ name, constructs, productions }: ConstructLookup, corpus: Corpus): Card {
  const notes = corpus.notes.filter(note => note.constructs.some(construct => constructs.includes(construct)))
  const mistakes = corpus.invalid
    .filter(({ construct }) => constructs.includes(construct))
    .slice(0, CARD_MISTAKES_MAX)
    .map(({ query, error, hint }) => `Refused: ${JSON.stringify(query)} – ${hint ?? error}`)
  return {
    construct: name,
    grammar: productions.map(printEbnf).join('\n'),
    notes: [...notes.map(({ text }) => text), ...mistakes],
    examples: spread(constructs, corpus).slice(0, CARD_EXAMPLES_MAX).map(shown),
  }
}

/** In turn one of each construct, so that a few of them show all. */
function spread(constructs: readonly Construct[], { examples }: Corpus): readonly QueryExample[] {
  const groups = constructs.map(construct => examples.filter(example => example.construct === construct))
  const longest = Math.max(...groups.map(({ length }) => length))
  return Array.from({ length: longest }, (_, at) => groups.flatMap(group => group[at] ?? [])).flat()
}

function searched(library: Library, query: string): readonly QueryExample[] {
  return library
    .search(query, EXAMPLE_KIND, library.corpus.examples.length)
    .flatMap(({ entry }) => library.example(entry.id) ?? [])
}

function shown({ query, formatted = query, sql, note }: QueryExample): ShownExample {
  return { query: formatted, sql, note }
}

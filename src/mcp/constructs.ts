/** The names of the language's constructs, and what belongs to each. */
import type { Construct, Corpus, Production } from '../corpus/corpus.ts'
import { notAmong } from './arguments.ts'

/** The constructs and productions that a requested name refers to. */
export interface ConstructLookup {
  /** As requested. */
  readonly name: string
  /** The most likely meaning first. */
  readonly constructs: readonly [Construct, ...Construct[]]
  readonly productions: readonly Production[]
}

/** Common words for constructs that have another name here, and for groups of constructs. */
const ALSO: Readonly<Record<string, readonly [Construct, ...Construct[]]>> = {
  where: ['logic', 'comparison', 'is', 'between', 'in', 'exists', 'pattern', 'search'],
  filter: ['logic', 'comparison', 'is', 'between', 'in', 'exists', 'pattern', 'search'],
  select: ['get', 'fields'],
  insert: ['add'],
  upsert: ['conflict'],
  update: ['set'],
  delete: ['del'],
  create: ['make'],
  'order by': ['order'],
  'group by': ['aggregate'],
  group: ['aggregate', 'having'],
  cte: ['with'],
  union: ['compound'],
  intersect: ['compound'],
  except: ['compound'],
  offset: ['limit'],
  values: ['add', 'set'],
  null: ['is'],
  like: ['pattern'],
  over: ['window'],
  procedure: ['call'],
}

/** Constructs that are one of the choices of a production which is shown by another's examples. */
const CHOICE_OF: Readonly<Partial<Record<Construct, string>>> = {
  between: 'test',
  in: 'test',
  pattern: 'operator',
  search: 'operator',
}

/** Lower case, as all names are looked up. */
export function partNames({ constructs, grammar }: Corpus): readonly string[] {
  return [...new Set([...Object.keys(constructs), ...Object.keys(ALSO), ...grammar.map(({ name }) => name)])]
}

const NAME_LENGTH_MAX = 40

/** Throws an `RpcError` about the argument `construct` with the nearest name where there is no such part. */
export function lookUpConstruct(written: string, corpus: Corpus): ConstructLookup {
  const name = written.trim().toLowerCase().replace(/\s+/g, ' ')
  const named = corpus.grammar.filter(production => production.name === name)
  const constructs = constructsOf(name, named, corpus)
  if (name.length > NAME_LENGTH_MAX || constructs === null) throw notAmong('construct', written, partNames(corpus))
  const [main] = constructs
  // A part that is several has too many productions; the rules of each are shown with its own name.
  const others = corpus.grammar.filter(
    production => production.construct === main || production.name === CHOICE_OF[main],
  )
  return { name, constructs, productions: [...new Set([...named, ...others])] }
}

function constructsOf(
  name: string,
  named: readonly Production[],
  corpus: Corpus,
): ConstructLookup['constructs'] | null {
  if (Object.hasOwn(ALSO, name)) return ALSO[name] ?? null
  if (Object.hasOwn(corpus.constructs, name)) return [name]
  const [production] = named
  return production === undefined ? null : [production.construct ?? 'get']
}

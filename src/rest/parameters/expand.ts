/**
 * The notation of `expand`: `customers(id,name),nested:items.product,approver:users!approved_by`
 * (docs/reference/reading.md#related-rows). Names are not looked up here.
 */
import { type ColumnPath, readColumnPath, responseName } from './column-path.ts'
import { NameReader } from './name-reader.ts'
import { checkedAlias } from './select.ts'

/** Limit on the related tables of one request, at all levels. */
const EXPANDED_TABLES_MAX = 64

/** The largest value of `max_expand_depth`. */
export const EXPAND_DEPTH_MAX = 16

/** A member of the list of columns of a relation, as written. */
export type WrittenColumn =
  | { readonly kind: 'star' }
  | { readonly kind: 'column'; readonly path: ColumnPath; readonly alias: string | null }

/** One relation of `expand` as written, and the relations below it. */
export interface WrittenRelation {
  readonly alias: string | null
  readonly nested: boolean
  readonly relation: string
  readonly hint: string | null
  /** The columns in parentheses; null without parentheses, which means all columns. */
  readonly select: readonly WrittenColumn[] | null
  readonly below: readonly WrittenRelation[]
}

/** A relation whose levels below are still being read. */
interface OpenRelation extends WrittenRelation {
  select: WrittenColumn[] | null
  readonly below: OpenRelation[]
}

/**
 * Parses `expand`:
 * expand = path { "," path } ;   path = step { "." step }
 * step = [ alias ":" ] [ "nested:" ] relation [ "!" hint ] [ "(" item { "," item } ")" ]
 * item = "*" | [ alias ":" ] column { ( "->" | "->>" ) key } | path
 *
 * Paths with the same beginning are one expansion: `items,items.product` embeds the items once. A plain name
 * in parentheses is a column; the catalog decides whether it is a relation instead.
 * @throws {GatewayError} `PARSE_ERROR` for a malformed path or an exceeded limit.
 */
export function parseExpand(text: string | undefined, maxDepth: number): readonly WrittenRelation[] {
  if (text === undefined || text === '') return []
  return new ExpandReader(text, maxDepth).read()
}

const STOPS = ['.', ',', ':', '!', '(', ')']

/** The beginning of a step: its words before `!`, parentheses and dots. The last one can be a JSON path. */
interface Head {
  readonly words: readonly string[]
  readonly path: ColumnPath
}

class ExpandReader {
  readonly #reader: NameReader
  readonly #maxDepth: number
  #count = 0

  constructor(text: string, maxDepth: number) {
    this.#reader = new NameReader(text, 'expand')
    this.#maxDepth = maxDepth
  }

  read(): readonly WrittenRelation[] {
    const roots: OpenRelation[] = []
    do this.#path(this.#head(), roots, 1)
    while (this.#reader.take(','))
    if (!this.#reader.done) this.#reader.fail('has text after a relation', 'separate relations with a comma')
    return roots
  }

  #head(): Head {
    const words: string[] = []
    for (;;) {
      const path = readColumnPath(this.#reader, STOPS)
      if (!this.#reader.take(':')) return { words, path }
      if (path.steps.length > 0) this.#reader.fail('has a JSON path as an alias')
      words.push(path.column)
    }
  }

  /** Reads the rest of a path whose first step begins with `head`. */
  #path(head: Head, roots: OpenRelation[], from: number): void {
    let level = roots
    let depth = from
    for (let next = head; ; next = this.#head()) {
      // A qualified name takes two steps for one level (qualified.ts); only the catalog can tell.
      if (depth > 2 * this.#maxDepth) {
        this.#reader.fail(`goes deeper than ${this.#maxDepth} levels (max_expand_depth)`)
      }
      const step = this.#step(next, level)
      if (this.#reader.take('(')) this.#items(step, depth + 1)
      if (!this.#reader.take('.')) return
      level = step.below
      depth += 1
    }
  }

  /** Reads the hint of a step, and adds the step to `level` unless it is already there. */
  #step({ words, path }: Head, level: OpenRelation[]): OpenRelation {
    const reader = this.#reader
    if (path.steps.length > 0) reader.fail('has a JSON path as a relation')
    const hint = reader.take('!') ? reader.name(['.', ',', '(', ')']) : null
    const nested = words.at(-1) === 'nested'
    const [alias, ...more] = nested ? words.slice(0, -1) : words
    if (more.length > 0) reader.fail('has too many colons', 'write alias:nested:relation')
    const step: OpenRelation = {
      ...{ alias: alias === undefined ? null : checkedAlias(alias, reader), nested, relation: path.column, hint },
      ...{ select: null, below: [] },
    }
    const known = level.find(other => isSame(other, step))
    if (known !== undefined) return known
    this.#count += 1
    if (this.#count > EXPANDED_TABLES_MAX) reader.fail(`embeds more than ${EXPANDED_TABLES_MAX} tables`)
    level.push(step)
    return step
  }

  /** Reads the columns and relations in the parentheses of `step`. */
  #items(step: OpenRelation, depth: number): void {
    const reader = this.#reader
    if (step.select !== null) reader.fail(`lists the columns of "${step.relation}" twice`, 'write them in one list')
    const select: WrittenColumn[] = []
    step.select = select
    const seen = new Set<string>()
    do {
      if (reader.take('*')) {
        if (select.some(({ kind }) => kind === 'star')) reader.fail('has "*" twice')
        select.push({ kind: 'star' })
        continue
      }
      const head = this.#head()
      if (head.words.at(-1) === 'nested' || ['.', '!', '('].includes(reader.next)) {
        this.#path(head, step.below, depth)
        continue
      }
      const column = this.#column(head)
      const name = column.alias ?? responseName(column.path)
      if (seen.has(name)) reader.fail(`has "${name}" twice`, 'give one of them another name: alias:column')
      seen.add(name)
      select.push(column)
    } while (reader.take(','))
    if (!reader.take(')')) reader.fail('has a parenthesis that is not closed', 'end the list of columns with ")"')
  }

  #column({ words: [alias, ...more], path }: Head): WrittenColumn & { readonly kind: 'column' } {
    if (more.length > 0) this.#reader.fail('has too many colons', 'write alias:column')
    const name = checkedAlias(alias ?? responseName(path), this.#reader)
    return { kind: 'column', path, alias: path.steps.length === 0 && name === path.column ? null : name }
  }
}

function isSame(a: WrittenRelation, b: WrittenRelation): boolean {
  return a.alias === b.alias && a.nested === b.nested && a.relation === b.relation && a.hint === b.hint
}

/** The name of a relation in the response. */
export function keyOfRelation({ alias, relation }: Pick<WrittenRelation, 'alias' | 'relation'>): string {
  return alias ?? relation
}

/** The relation that an item in parentheses could name; null for paths into JSON and `*`. */
export function asRelation(item: WrittenColumn): WrittenRelation | null {
  if (item.kind === 'star' || item.path.steps.length > 0) return null
  return { alias: item.alias, nested: false, relation: item.path.column, hint: null, select: null, below: [] }
}

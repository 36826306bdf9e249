/** `expand=customers,nested:items.product,approver:users!approved_by` → nests (docs/reference/reading.md#related-rows). */

import { childJoin } from '../../access/relations.ts'
import type { View } from '../../access/rights.ts'
import type { Relation, Table } from '../../catalog/model.ts'
import { GatewayError } from '../../errors.ts'
import type { Nest } from '../../language/tree/ast.ts'
import { impliedColumn, integer, nest, order } from '../../language/tree/build.ts'
import { NameReader } from '../parameters/names.ts'
import { checkedAlias } from '../parameters/select.ts'
import { joinQualified } from './qualified.ts'
import { findRelation, otherTable } from './relation.ts'

export interface ExpandLimits {
  /** Levels below the table itself. */
  readonly maxExpandDepth: number
  /** Rows of one nested array; 0 is no cap. */
  readonly maxResultRows: number
}

/** Related tables in one request, at all levels. */
const EXPANDED_TABLES_MAX = 64

/** One relation as written, with what hangs below it. */
export interface Expansion {
  readonly alias: string | null
  readonly nested: boolean
  readonly relation: string
  readonly hint: string | null
  readonly below: Expansion[]
}

/**
 *   expand = path { "," path } ;   path = step { "." step }
 *   step   = [ alias ":" ] [ "nested:" ] relation [ "!" hint ]
 *
 * Paths with the same beginning are one expansion: `items,items.product` embeds the items once.
 */
export function parseExpand(text: string | undefined, maxDepth: number): readonly Expansion[] {
  if (text === undefined || text === '') return []
  const reader = new NameReader(text, 'expand')
  const roots: Expansion[] = []
  let count = 0
  do {
    let level = roots
    let depth = 0
    do {
      depth += 1
      // A level may be written in two steps (qualified.ts); which are, only the catalogue says.
      if (depth > 2 * maxDepth) reader.fail(`goes deeper than ${maxDepth} levels (max_expand_depth)`)
      const step = readStep(reader)
      const known = level.find(other => isSame(other, step))
      if (known === undefined) {
        count += 1
        if (count > EXPANDED_TABLES_MAX) reader.fail(`embeds more than ${EXPANDED_TABLES_MAX} tables`)
        level.push(step)
      }
      level = (known ?? step).below
    } while (reader.take('.'))
  } while (reader.take(','))
  if (!reader.done) reader.fail('goes on after a relation', 'separate relations with a comma')
  return roots
}

const STOPS = ['.', ',', ':', '!']

function readStep(reader: NameReader): Expansion {
  const words: string[] = [reader.name(STOPS)]
  while (reader.take(':')) words.push(reader.name(STOPS))
  const hint = reader.take('!') ? reader.name(['.', ',']) : null
  const relation = words.pop() ?? ''
  const nested = words.at(-1) === 'nested'
  if (nested) words.pop()
  const [alias, ...more] = words
  if (more.length > 0) reader.fail('has too many colons', 'write alias:nested:relation')
  return { alias: alias === undefined ? null : checkedAlias(alias, reader), nested, relation, hint, below: [] }
}

function isSame(a: Expansion, b: Expansion): boolean {
  return a.alias === b.alias && a.nested === b.nested && a.relation === b.relation && a.hint === b.hint
}

/** The nests of `table`'s row, each with its join condition: the tree needs the catalogue for nothing that follows. */
export function expandNests(
  expansions: readonly Expansion[],
  table: Table,
  alias: string,
  view: View,
  limits: ExpandLimits,
): readonly Nest[] {
  return new NestBuilder(view, limits).nests(expansions, table, alias, 1)
}

/** `level`: counted from 1, for the relations of the table itself. */
export function assertExpandDepth(level: number, maxDepth: number): void {
  if (level <= maxDepth) return
  throw new GatewayError('PARSE_ERROR', `expand goes deeper than ${maxDepth} levels (max_expand_depth)`)
}

class NestBuilder {
  readonly #view: View
  readonly #limits: ExpandLimits
  /** SQL aliases are numbered, so that two levels of one table (a self-reference) cannot meet. */
  #aliases = 0

  constructor(view: View, limits: ExpandLimits) {
    this.#view = view
    this.#limits = limits
  }

  nests(expansions: readonly Expansion[], table: Table, alias: string, level: number): readonly Nest[] {
    if (expansions.length > 0) assertExpandDepth(level, this.#limits.maxExpandDepth)
    const names = new Set<string>()
    return joinQualified(expansions, table).map(expansion => {
      const name = expansion.alias ?? expansion.relation
      if (names.has(name)) {
        throw new GatewayError(
          'PARSE_ERROR',
          `expand has "${name}" twice; give one of them another name: alias:${name}`,
        )
      }
      names.add(name)
      return this.#nest(expansion, name, table, alias, level)
    })
  }

  #nest(expansion: Expansion, name: string, table: Table, parent: string, level: number): Nest {
    const relation = findRelation(table, expansion, this.#view)
    const target = otherTable(this.#view.catalog, relation)
    this.#aliases += 1
    const alias = `t${this.#aliases}`
    return nest({
      many: relation.cardinality === 'many',
      table: { schema: target.schema, name: target.name },
      alias,
      name,
      on: childJoin(relation, parent, alias, this.#view.catalog, `j${this.#aliases}`),
      nests: this.nests(expansion.below, target, alias, level + 1),
      orderBy: relation.cardinality === 'many' ? target.primaryKey.map(key => order(impliedColumn(alias, key))) : [],
      limit: this.#rowLimit(relation),
    })
  }

  /** An array is a result too: `max_result_rows` caps it. */
  #rowLimit(relation: Relation) {
    const { maxResultRows } = this.#limits
    return relation.cardinality === 'many' && maxResultRows > 0 ? integer(String(maxResultRows)) : null
  }
}

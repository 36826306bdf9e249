/**
 * Parses `expand=customers,nested:items.product,approver:users!approved_by` and builds its nested tables
 * (docs/reference/reading.md#related-rows).
 */

import { childJoin } from '../../access/relations.ts'
import type { View } from '../../access/rights.ts'
import type { Relation, Table } from '../../catalog/model.ts'
import { GatewayError } from '../../errors.ts'
import type { Nest } from '../../language/tree/ast.ts'
import { impliedColumn, integer, nest, order } from '../../language/tree/build.ts'
import { NameReader } from '../parameters/name-reader.ts'
import { checkedAlias } from '../parameters/select.ts'
import { joinQualified } from './qualified.ts'
import { otherTable, resolveRelation } from './relation.ts'

/** Limits on `expand`. */
export interface ExpandLimits {
  /** Limit on the levels below the requested table (`max_expand_depth`). */
  readonly maxExpandDepth: number
  /** Limit on the rows of one nested array (`max_result_rows`); 0 means no limit. */
  readonly maxResultRows: number
}

/** Limit on the related tables of one request, at all levels. */
const EXPANDED_TABLES_MAX = 64

/** One relation of `expand` and the relations below it. */
export interface ExpandedRelation {
  readonly alias: string | null
  readonly nested: boolean
  readonly relation: string
  readonly hint: string | null
  readonly below: ExpandedRelation[]
}

/**
 * Parses `expand`:
 * expand = path { "," path } ;   path = step { "." step }
 * step = [ alias ":" ] [ "nested:" ] relation [ "!" hint ]
 *
 * Paths with the same beginning are one expansion: `items,items.product` embeds the items once.
 * @throws {GatewayError} `PARSE_ERROR` for a malformed path or an exceeded limit.
 */
export function parseExpand(text: string | undefined, maxDepth: number): readonly ExpandedRelation[] {
  if (text === undefined || text === '') return []
  const reader = new NameReader(text, 'expand')
  const roots: ExpandedRelation[] = []
  let count = 0
  do {
    let level = roots
    let depth = 0
    do {
      depth += 1
      // A qualified name takes two steps for one level (qualified.ts); only the catalog can tell.
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
  if (!reader.done) reader.fail('has text after a relation', 'separate relations with a comma')
  return roots
}

const STOPS = ['.', ',', ':', '!']

function readStep(reader: NameReader): ExpandedRelation {
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

function isSame(a: ExpandedRelation, b: ExpandedRelation): boolean {
  return a.alias === b.alias && a.nested === b.nested && a.relation === b.relation && a.hint === b.hint
}

/**
 * Builds the nested tables of a row of `table` with their join conditions.
 * @throws {GatewayError} `PARSE_ERROR` for an unknown or ambiguous relation, a repeated name or too many
 * levels.
 */
export function expandNests(
  expansions: readonly ExpandedRelation[],
  table: Table,
  alias: string,
  view: View,
  limits: ExpandLimits,
): readonly Nest[] {
  return new NestBuilder(view, limits).nests(expansions, table, alias, 1)
}

/**
 * Checks a level; the relations of the requested table are level 1.
 * @throws {GatewayError} `PARSE_ERROR` if it is too deep.
 */
export function assertExpandDepth(level: number, maxDepth: number): void {
  if (level <= maxDepth) return
  throw new GatewayError('PARSE_ERROR', `expand goes deeper than ${maxDepth} levels (max_expand_depth)`)
}

class NestBuilder {
  readonly #view: View
  readonly #limits: ExpandLimits
  /** SQL aliases are numbered, so that two levels of a self-referencing table never collide. */
  #aliases = 0

  constructor(view: View, limits: ExpandLimits) {
    this.#view = view
    this.#limits = limits
  }

  nests(expansions: readonly ExpandedRelation[], table: Table, alias: string, level: number): readonly Nest[] {
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

  #nest(expansion: ExpandedRelation, name: string, table: Table, parent: string, level: number): Nest {
    const relation = resolveRelation(table, expansion, this.#view)
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

  /** `max_result_rows` also limits nested arrays. */
  #rowLimit(relation: Relation) {
    const { maxResultRows } = this.#limits
    return relation.cardinality === 'many' && maxResultRows > 0 ? integer(String(maxResultRows)) : null
  }
}

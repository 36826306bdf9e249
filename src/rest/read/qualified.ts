/**
 * Tables of other schemas in `expand`. Their names are `schema.table`, but a dot also separates two levels.
 * If the part before the dot is not a relation and both parts together are one, the parts are joined. A
 * quoted name is never split.
 */
import type { Table } from '../../catalog/model.ts'
import type { ExpandedRelation } from './expand.ts'

/** Joins the parts of qualified names among the relations of `table`. */
export function joinQualified(expansions: readonly ExpandedRelation[], table: Table): readonly ExpandedRelation[] {
  return expansions.flatMap(expansion => joined(expansion, table) ?? [expansion])
}

/** The joined expansions, or null if the first part is a relation itself or the joined parts are not. */
function joined(expansion: ExpandedRelation, { relations }: Table): readonly ExpandedRelation[] | null {
  const { alias, nested, relation, hint, below } = expansion
  const isRelation = relations.some(({ name, table, shortName }) => [name, table, shortName].includes(relation))
  if (isRelation || hint !== null || below.length === 0) return null
  const whole = below.map(step => ({ ...step, alias, nested, relation: `${relation}.${step.relation}` }))
  const isWhole = below.every(
    (step, index) =>
      step.alias === null && !step.nested && relations.some(({ table }) => table === whole[index]?.relation),
  )
  return isWhole ? whole : null
}

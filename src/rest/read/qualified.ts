/**
 * Tables of other schemas in `expand`: their names are `schema.table`, and a dot is also a step down. What begins with no
 * relation's name, and is one with the step below, is that one; written in quotes it can be nothing else.
 */
import type { Table } from '../../catalog/model.ts'
import type { Expansion } from './expand.ts'

export function joinQualified(expansions: readonly Expansion[], table: Table): readonly Expansion[] {
  return expansions.flatMap(expansion => joined(expansion, table) ?? [expansion])
}

/** Null where the first part is a relation itself, or the parts do not come to one. */
function joined(expansion: Expansion, { relations }: Table): readonly Expansion[] | null {
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

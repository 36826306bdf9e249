/**
 * Tables of other schemas in `expand`. Their names are `schema.table`, but a dot also separates two levels.
 * If the part before the dot is not a relation and both parts together are one, the parts are joined. A
 * quoted name is never split.
 */
import type { Table } from '../../catalog/model.ts'
import type { WrittenRelation } from '../parameters/expand.ts'

/** A relation as written or with its parameters. */
type Joinable<T> = Pick<WrittenRelation, 'alias' | 'nested' | 'relation' | 'hint'> & {
  readonly select: readonly unknown[] | null
  readonly rows?: unknown
  readonly below: readonly T[]
}

/** Joins the parts of qualified names among the relations of `table`. */
export function joinQualified<T extends Joinable<T>>(expansions: readonly T[], table: Table): readonly T[] {
  return expansions.flatMap(expansion => joined(expansion, table) ?? [expansion])
}

/** The joined expansions, or null if the first part is a relation itself or the joined parts are not. */
function joined<T extends Joinable<T>>(expansion: T, { relations }: Table): readonly T[] | null {
  const { alias, nested, relation, hint, select, rows, below } = expansion
  const isRelation = relations.some(({ name, table, shortName }) => [name, table, shortName].includes(relation))
  if (isRelation || hint !== null || select !== null || below.length === 0) return null
  const whole = below.map(step => ({
    ...{ ...step, alias, nested, relation: `${relation}.${step.relation}` },
    // The parameters of an alias are those of the joined relation.
    ...(alias !== null && rows != null ? { rows } : {}),
  }))
  const isWhole = below.every(
    (step, index) =>
      step.alias === null && !step.nested && relations.some(({ table }) => table === whole[index]?.relation),
  )
  const hasBoth = rows != null && (alias === null || below.some(step => step.rows != null))
  return isWhole && !hasBoth ? whole : null
}

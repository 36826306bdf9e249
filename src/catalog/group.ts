/** Groups the rows of introspection, which arrive as one list for all relations. */

/** Groups by OID; each group keeps the order of the list. */
export function groupByRelation<T extends { readonly relation: number }>(
  items: readonly T[],
): ReadonlyMap<number, readonly T[]> {
  const groups = new Map<number, T[]>()
  for (const item of items) {
    const group = groups.get(item.relation)
    if (group === undefined) groups.set(item.relation, [item])
    else group.push(item)
  }
  return groups
}

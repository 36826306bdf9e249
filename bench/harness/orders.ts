/** The caller's orders, for requests by id. */
import { TENANT } from './database.ts'
import type { World } from './world.ts'

export interface Ids {
  readonly first: number
  readonly last: number
}

/** Throws if there are gaps, because every random id must exist. */
export async function orderIds(world: World): Promise<Ids> {
  const database = await world.database()
  const [row] = await database.admin(
    `select min(id)::int as first, max(id)::int as last, count(*)::int as count from orders
      where tenant_id = '${TENANT.id}'`,
  )
  const { first, last, count } = row as { first: number; last: number; count: number }
  if (last - first + 1 !== count)
    throw new Error(`orders ${first} to ${last} of the caller are only ${count}; start with fresh data`)
  return { first, last }
}

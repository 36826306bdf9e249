/** The name of a tenant in the log and in traces. */
import { createHash } from 'node:crypto'
import { LRUCache } from 'lru-cache'

/** Few tenants send most requests. */
const hashes = new LRUCache<string, string>({ max: 10_000 })

/** Eight hexadecimal digits that identify a tenant without naming it. */
export function tenantHash(tenantId: string): string {
  const known = hashes.get(tenantId)
  if (known !== undefined) return known
  const hash = createHash('sha256').update(tenantId).digest('hex').slice(0, 8)
  hashes.set(tenantId, hash)
  return hash
}

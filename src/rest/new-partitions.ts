/**
 * Partitions that were attached after the catalog was read. An error names the partition and its constraint,
 * so the first violation in an unknown partition reads it from the database.
 */
import type { View } from '../access/rights.ts'
import { type Catalog, type Partition, resourceName } from '../catalog/model.ts'

/** Limit on reads per second of the whole process: violations must not cause queries at a client's rate. */
export const READS_PER_SECOND = 5

/** An error does not wait longer for a partition. */
const WAIT_MS = 1_000

/** A partition is not read again during this time, whether or not it was found. */
const FRESH_MS = 10_000

/** Limit on the partitions that are kept for one catalog; the oldest is dropped. */
const KEPT_MAX = 1_000

/** The table of an error, and the constraint that it violates; null if the error names none. */
export interface Violated {
  readonly schema: string
  readonly table: string
  readonly constraint: string | null
}

/** Reads a partition from the database; null if the table is not one. */
export type FindPartition = (
  schema: string,
  name: string,
) => Promise<{ readonly root: number; readonly constraints: Partition['constraints'] } | null>

interface Kept {
  readonly at: number
  readonly partition: Partition | null
}

const keptByCatalog = new WeakMap<Catalog, Map<string, Kept>>()

/** The partition of this resource name, or undefined if it is not known to be one. */
export function partitionNamed(resource: string, catalog: Catalog): Partition | undefined {
  return keptByCatalog.get(catalog)?.get(resource)?.partition ?? catalog.partitions.get(resource)
}

export interface NewPartitionsParts {
  readonly find: FindPartition
  /** Milliseconds, monotonic. */
  readonly now: () => number
}

/** Reads partitions that errors name. */
export class NewPartitions {
  readonly #parts: NewPartitionsParts
  readonly #reading = new Map<string, Promise<void>>()
  #second = Number.NEGATIVE_INFINITY
  #reads = 0

  constructor(parts: NewPartitionsParts) {
    this.#parts = parts
  }

  /** Null if the catalog has the constraint, or the partition was read lately or cannot be read now. */
  learn(violated: Violated, { catalog }: Pick<View, 'catalog'>): Promise<void> | null {
    const resource = resourceName({ schema: violated.schema, name: violated.table }, catalog.schemas)
    const { constraint } = violated
    const known = partitionNamed(resource, catalog) ?? catalog.tables.get(resource)
    if (known !== undefined && (constraint === null || known.constraints.has(constraint))) return null
    const now = this.#parts.now()
    const kept = keptByCatalog.get(catalog)?.get(resource)
    if (kept !== undefined && now - kept.at < FRESH_MS) return null
    const reading = this.#reading.get(resource)
    if (reading !== undefined) return reading
    if (!this.#mayRead(now)) return null
    const read = this.#read(violated, resource, catalog).finally(() => this.#reading.delete(resource))
    const begun = Promise.race([read, elapsed(WAIT_MS)])
    this.#reading.set(resource, begun)
    return begun
  }

  #mayRead(now: number): boolean {
    if (now - this.#second >= 1_000) [this.#second, this.#reads] = [now, 0]
    this.#reads += 1
    return this.#reads <= READS_PER_SECOND
  }

  /** An error leaves the partition unknown; the response then has no columns. */
  async #read({ schema, table }: Violated, resource: string, catalog: Catalog): Promise<void> {
    try {
      const found = await this.#parts.find(schema, table)
      const root = found === null ? undefined : tableOf(found.root, catalog)
      const partition = found === null || root === undefined ? null : { table: root, constraints: found.constraints }
      const kept = keptByCatalog.get(catalog) ?? new Map<string, Kept>()
      keptByCatalog.set(catalog, kept)
      kept.delete(resource)
      kept.set(resource, { at: this.#parts.now(), partition })
      const [oldest] = kept.keys()
      if (kept.size > KEPT_MAX && oldest !== undefined) kept.delete(oldest)
    } catch {
      return
    }
  }
}

function tableOf(oid: number, { tables }: Catalog): string | undefined {
  for (const table of tables.values()) if (table.oid === oid) return table.resource
  return undefined
}

function elapsed(ms: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, ms).unref())
}

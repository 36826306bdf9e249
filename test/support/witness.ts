/** Hears what webhooks say of numbered writes, and remembers little of each, however often it comes: what has been told, and everything that is wrong with how. */
import { createHash } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import type { Received } from './receiver.ts'

export interface Witness {
  /** The change that it tells of, as the audit has it, and whether it comes for the first time. Call it at once: it sees the order. */
  hear(received: Received): { readonly change: string; readonly isFirst: boolean }
  /** Changes that have been heard of, with the id under which. */
  readonly ids: ReadonlyMap<string, unknown>
  /** By counter, the last that was heard of. */
  readonly versions: ReadonlyMap<number, number>
  /** Bad signatures, an id or a body that is not what it was, a version of a counter that is not the next. */
  readonly wrong: readonly string[]
}

export function createWitness(secret: string): Witness {
  const verifier = new Webhook(secret)
  const ids = new Map<string, unknown>()
  const bodies = new Map<unknown, string>()
  const versions = new Map<number, number>()
  const wrong: string[] = []

  function verify({ headers, text }: Received, change: string): void {
    try {
      verifier.verify(text, headers as Record<string, string>)
    } catch (error) {
      wrong.push(`${change}: ${String(error)}`)
    }
  }

  function identify({ headers, text }: Received, change: string): boolean {
    const id = headers['webhook-id']
    const before = ids.get(change)
    const digest = createHash('sha256').update(text).digest('base64')
    if (before !== undefined && before !== id) wrong.push(`${change}: came as ${before} and as ${id}`)
    if ((bodies.get(id) ?? digest) !== digest) wrong.push(`${change}: ${id} came with another body`)
    ids.set(change, id)
    bodies.set(id, digest)
    return before === undefined
  }

  /** Each version comes behind the one before it; the last one may come again, as long as nobody knows that it has been taken. */
  function follow(id: number, version: number, change: string): void {
    const before = versions.get(id) ?? 0
    if (version !== before && version !== before + 1) wrong.push(`${change}: version ${version} came after ${before}`)
    versions.set(id, version)
  }

  return {
    ...{ ids, versions, wrong },
    hear(received) {
      const { table, operation, data } = received.json
      const row = data.new ?? data.old
      const change = `${table} ${operation} ${row.id} ${row.write}`
      verify(received, change)
      if (table === 'counters') follow(row.id, row.version, change)
      return { change, isFirst: identify(received, change) }
    },
  }
}

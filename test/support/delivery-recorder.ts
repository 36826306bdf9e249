/**
 * Records webhooks about numbered writes in little memory, however often each one arrives: the delivered
 * changes, and every violation of the delivery guarantees.
 */
import { createHash } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import type { Received } from './receiver.ts'

export interface DeliveryRecorder {
  /**
   * Returns the change that the webhook reports, in the audit's form, and whether it is the first report of
   * it. Call it at once, because it checks the order.
   */
  record(received: Received): { readonly change: string; readonly isFirst: boolean }
  /** The delivered changes with their webhook ids. */
  readonly ids: ReadonlyMap<string, unknown>
  /** The last delivered version of each counter. */
  readonly versions: ReadonlyMap<number, number>
  /**
   * Violations: bad signatures, an id or a body that changed between attempts, a counter version out of
   * order.
   */
  readonly wrong: readonly string[]
}

export function createDeliveryRecorder(secret: string): DeliveryRecorder {
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

  /**
   * Each version follows the one before it. The last one may be delivered again as long as the gateway has
   * not seen its acknowledgement.
   */
  function follow(id: number, version: number, change: string): void {
    const before = versions.get(id) ?? 0
    if (version !== before && version !== before + 1) wrong.push(`${change}: version ${version} came after ${before}`)
    versions.set(id, version)
  }

  return {
    ...{ ids, versions, wrong },
    record(received) {
      const { table, operation, data } = received.json
      const row = data.new ?? data.old
      const change = `${table} ${operation} ${row.id} ${row.write}`
      verify(received, change)
      if (table === 'counters') follow(row.id, row.version, change)
      return { change, isFirst: identify(received, change) }
    },
  }
}

/**
 * Webhooks as a whole (docs/guides/webhooks.md): turns row changes into deliveries, which operators can list,
 * redeliver and purge.
 */
import { randomBytes } from 'node:crypto'
import type { Catalog, Table } from '../catalog/model.ts'
import type { Clock } from '../clock.ts'
import type { Emit } from '../events.ts'
import type { AddressGuard } from '../outbound/address-guard.ts'
import type { ResolveName } from '../outbound/connector.ts'
import { printTraceparent, type TraceContext } from '../trace-context.ts'
import { createDeadLetters, type DeadLetter } from './dead-letters.ts'
import { createDeliverer, type Deliverer } from './deliverer.ts'
import { newId, type Outcome } from './delivery.ts'
import { ENDPOINT_IN_FLIGHT_MAX, type QueueStats } from './endpoint-queues.ts'
import { ListenerIndex, type WebhookListeners } from './listeners.ts'
import { EMPTY_OUTBOX, type OutboxDepth } from './outbox/depth.ts'
import type { Outbox } from './outbox/outbox.ts'
import { printPayload, type WebhookChange } from './payload.ts'
import { createSender, type Sender } from './sender.ts'
import { endpointOf, type RowOperation, TRIGGER_OPERATION_OF, type Trigger } from './trigger.ts'
import type { Triggers } from './triggers.ts'

/** The dependencies of webhooks. */
export interface WebhooksParts {
  readonly triggers: Triggers
  /** The outbox; null keeps all deliveries in memory. */
  readonly outbox: Outbox | null
  readonly catalog: () => Catalog
  readonly guard: AddressGuard
  readonly clock: Clock
  /** A random number from 0 up to 1. */
  readonly random: () => number
  readonly userAgent: string
  readonly emit: Emit
  /** Resolves host names; the system's resolver by default. */
  readonly resolve?: ResolveName
}

/** A change of one row. */
export interface RowChange extends Omit<WebhookChange, 'table' | 'atMs'> {
  readonly operation: RowOperation
}

/** Where deliveries are stored. */
export type Storage = 'outbox' | 'memory'

/** Figures of the queues in memory and in the outbox. */
export interface WebhookStats extends QueueStats {
  /** Age of the oldest pending delivery, in memory or in the outbox; null for none. */
  readonly oldestAgeMs: number | null
  /** Triggers disabled by an endpoint that answered 410. */
  readonly disabled: number
  readonly deadLetters: number
  /** Dead letters dropped to make room for newer ones. */
  readonly dropped: number
  /** Changes that were not delivered: too many at once, or rows that were not visible. */
  readonly undelivered: number
  readonly outbox: OutboxDepth
}

/** A write of which only names are known. */
interface UnresolvedWrite {
  readonly table: { readonly schema: string | null; readonly name: string }
  readonly operations: readonly RowOperation[]
}

/** Limit on changed rows that have not become deliveries yet. */
export const CHANGES_MAX = 100_000

/** Changes processed before other work of the event loop gets a turn. */
const CHANGES_PER_TURN = 200

interface PendingChange {
  readonly table: Table
  readonly change: RowChange & WebhookChange
  /** Names of triggers. */
  readonly names: readonly string[]
  readonly traceparent: string | null
}

/** The webhooks of one gateway. */
export class Webhooks {
  readonly outbox: Outbox | null
  readonly #parts: WebhooksParts
  readonly #listeners: ListenerIndex
  readonly #deadLetters = createDeadLetters()
  readonly #sender: Sender
  readonly #deliverer: Deliverer
  #pending: PendingChange[] = []
  #isDue = false
  #undelivered = 0

  constructor(parts: WebhooksParts) {
    const { guard, clock, resolve } = parts
    this.outbox = parts.outbox
    this.#parts = parts
    this.#listeners = new ListenerIndex(parts)
    this.#sender = createSender({ guard, clock, connections: ENDPOINT_IN_FLIGHT_MAX, ...(resolve ? { resolve } : {}) })
    this.#deliverer = createDeliverer({ ...parts, sender: this.#sender, deadLetters: this.#deadLetters })
  }

  // // --- called for each write ---

  listeners(table: Table, operations: readonly RowOperation[]): WebhookListeners {
    return this.#listeners.listeners(table, operations)
  }

  /**
   * True if a trigger depends on the gateway to report the write to a table that is known only by its name.
   */
  wantsUnresolved({ table: { schema, name }, operations }: UnresolvedWrite): boolean {
    const tables = [...this.#parts.catalog().tables.values()]
    const isMeant = (table: Table) => table.schema === schema && table.name === name
    return tables.some(table => isMeant(table) && this.#listeners.needsGateway(table, operations))
  }

  /** Queues the changes for the named triggers and returns immediately; deliveries are created later. */
  committed(table: Table, changes: readonly RowChange[], names: readonly string[], trace?: TraceContext): void {
    const atMs = this.#parts.clock.now()
    const taken = changes.slice(0, CHANGES_MAX - this.#pending.length)
    const traceparent = trace === undefined ? null : printTraceparent(trace)
    for (const change of taken)
      this.#pending.push({ table, change: { ...change, table: table.resource, atMs }, names, traceparent })
    const left = changes.length - taken.length
    this.#undelivered += left
    if (left > 0)
      this.#warn(
        table,
        new Error(`${left} changes exceed the limit of ${CHANGES_MAX} pending changes; no webhooks are sent for them`),
      )
    this.#schedule()
  }

  /** Reports a write whose rows cannot be read back. */
  reportUnreadable(table: Table): void {
    this.#undelivered += 1
    const error = new Error(
      'a write changed rows that are not readable by the role of the gateway; no webhooks are sent for them',
    )
    this.#warn(table, error)
  }

  /** Wakes the outbox worker after a write whose webhooks of these triggers are stored. */
  reportStored(names: readonly string[]): void {
    this.outbox?.wake(names)
  }

  // // --- called for operators ---

  triggers(): readonly { readonly trigger: Trigger; readonly isActive: boolean; readonly storage: Storage }[] {
    const { triggers } = this.#parts
    return triggers.all().map(trigger => ({
      trigger,
      isActive: triggers.isActive(trigger),
      storage: triggers.isStored(trigger) ? 'outbox' : 'memory',
    }))
  }

  /** The dead letters in memory. */
  deadLetters(): readonly DeadLetter[] {
    return this.#deadLetters.all()
  }

  deadLetter(id: string): DeadLetter | undefined {
    return this.#deadLetters.get(id)
  }

  /**
   * Queues a dead letter again, with the same id. Returns false if it does not exist, or its body was not
   * kept.
   */
  redeliver(id: string): boolean {
    const letter = this.#deadLetters.get(id)
    const trigger = letter && this.#parts.triggers.named(letter.delivery.trigger)
    if (letter === undefined || trigger === undefined || letter.delivery.body.length === 0) return false
    this.#deadLetters.remove(id)
    this.#deliverer.add({ ...letter.delivery, endpoint: endpointOf(trigger), tries: 0 })
    return true
  }

  /** Deletes a dead letter. Returns false if it does not exist. */
  purge(id: string): boolean {
    const known = this.#deadLetters.get(id) !== undefined
    this.#deadLetters.remove(id)
    return known
  }

  /** Sends a test message once; null if no trigger has this name. */
  async test(name: string): Promise<{ readonly id: string; readonly outcome: Outcome } | null> {
    const { triggers, clock } = this.#parts
    const trigger = triggers.named(name)
    if (trigger === undefined) return null
    const id = newId(randomBytes)
    const nothing = { table: trigger.table, operation: 'TEST', after: null, before: null, atMs: clock.now() } as const
    return { id, outcome: await this.#deliverer.tryOnce(trigger, id, printPayload(trigger, nothing)) }
  }

  /** Figures of memory and outbox. The database is queried at most once every few seconds. */
  async stats(): Promise<WebhookStats> {
    const { triggers, clock } = this.#parts
    const all = triggers.all()
    const held = this.#deliverer.stats()
    const depth = (await this.outbox?.depth()) ?? EMPTY_OUTBOX
    const ages = [depth.oldestAgeMs, held.oldestMs === null ? null : Math.max(0, clock.now() - held.oldestMs)]
    return {
      ...{ ...held, throttled: held.throttled + (this.outbox?.throttled() ?? 0), outbox: depth },
      oldestAgeMs: ages.reduce((most, age) => (age === null || (most !== null && most > age) ? most : age), null),
      disabled: all.filter(trigger => trigger.enabled && !triggers.isActive(trigger)).length,
      deadLetters: this.#deadLetters.all().length + depth.deadLetters,
      dropped: this.#deadLetters.dropped(),
      undelivered: this.#undelivered,
    }
  }

  /** Waits for deliveries that are in flight or ready, up to the deadline. */
  async close({ deadlineMs }: { readonly deadlineMs: number }): Promise<void> {
    const closed = this.outbox?.close({ deadlineMs })
    while (this.#pending.length > 0) this.#deliverSome()
    const lost = await this.#drainWithin(deadlineMs)
    await Promise.all([this.#sender.close(), closed])
    if (lost === 0) return
    const error = new Error(`${lost} undelivered webhooks in memory are lost`)
    this.#parts.emit({ kind: 'webhooks', event: 'lost', detail: { error, deliveries: lost } })
  }

  /** Returns how many deliveries are lost. */
  async #drainWithin(deadlineMs: number): Promise<number> {
    let cancel = (): void => {}
    const late = new Promise<'late'>(resolve => {
      cancel = this.#parts.clock.after(deadlineMs, () => resolve('late'))
    })
    const drained = await Promise.race([this.#deliverer.drain(), late])
    cancel()
    if (drained !== 'late') return drained
    const { inFlight } = this.#deliverer.stats()
    return this.#deliverer.stop() + inFlight
  }

  // --- from changes to deliveries ---

  /** Runs after pending responses have been written. */
  #schedule(): void {
    if (this.#isDue || this.#pending.length === 0) return
    this.#isDue = true
    setImmediate(() => this.#deliverSome())
  }

  #deliverSome(): void {
    this.#isDue = false
    const batch = this.#pending.slice(0, CHANGES_PER_TURN)
    this.#pending = this.#pending.slice(CHANGES_PER_TURN)
    for (const each of batch) this.#deliver(each)
    this.#schedule()
  }

  #deliver({ table, change, names, traceparent }: PendingChange): void {
    for (const trigger of this.#parts.triggers.on(table, [TRIGGER_OPERATION_OF[change.operation]])) {
      if (!names.includes(trigger.name)) continue
      this.#deliverer.add({
        ...{ id: newId(randomBytes), trigger: trigger.name, endpoint: endpointOf(trigger), tries: 0 },
        ...{ table: table.resource, operation: change.operation, createdAtMs: change.atMs },
        ...{ body: printPayload(trigger, change), traceparent },
      })
    }
  }

  #warn(table: Table, error: Error): void {
    this.#parts.emit({ kind: 'webhooks', event: 'changes not delivered', detail: { error, table: table.resource } })
  }
}

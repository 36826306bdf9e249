/** Webhooks as a whole (docs/guides/webhooks.md): changes of rows become deliveries, which operators can list, send again and delete. */
import { randomBytes } from 'node:crypto'
import type { Catalog, Table } from '../catalog/model.ts'
import type { Clock } from '../clock.ts'
import type { Emit } from '../events.ts'
import type { AddressGuard } from '../outbound/address-guard.ts'
import type { Resolve } from '../outbound/connector.ts'
import { createDeadLetters, type DeadLetter } from './dead-letters.ts'
import { createDeliverer, type Deliverer } from './deliverer.ts'
import { newId, type Outcome } from './delivery.ts'
import { type Hearers, Hearing } from './hearers.ts'
import { LANE_IN_FLIGHT_MAX, type LaneStats } from './lanes.ts'
import { type Depth, EMPTY } from './outbox/depth.ts'
import type { Outbox } from './outbox/outbox.ts'
import { type Change, printPayload } from './payload.ts'
import { createSender, type Sender } from './sender.ts'
import { endpointOf, type Happened, OPERATION_OF, type Trigger } from './trigger.ts'
import type { Triggers } from './triggers.ts'

export interface WebhooksParts {
  readonly triggers: Triggers
  /** Whose turns deliveries take: the column of a table with the tenant of a row. */
  readonly tenantColumn: string
  /** Shows the database that a statement is this gateway's. */
  readonly ticket: string
  /** Has the deliveries of some of them; null: of none. */
  readonly outbox: Outbox | null
  readonly catalog: () => Catalog
  readonly guard: AddressGuard
  readonly clock: Clock
  /** From 0 to 1. */
  readonly random: () => number
  readonly userAgent: string
  readonly emit: Emit
  /** How names become addresses; the system's way where it is left out. */
  readonly resolve?: Resolve
}

/** What happened to one row. */
export interface RowChange extends Omit<Change, 'table' | 'atMs'> {
  readonly happened: Happened
}

/** Where deliveries are while they wait. */
export type Storage = 'outbox' | 'memory'

export interface WebhookStats extends LaneStats {
  /** Of the oldest that waits, in memory or in the outbox; null if none does. */
  readonly oldestAgeMs: number | null
  /** By an endpoint that answered 410. */
  readonly disabled: number
  readonly deadLetters: number
  /** Dead letters that newer ones pushed out. */
  readonly forgotten: number
  /** Changes of which nobody was told: too many at once, or rows that could not be seen. */
  readonly untold: number
  readonly outbox: Depth
}

/** A write of which only the names are known. */
interface HiddenWrite {
  readonly table: { readonly schema: string | null; readonly name: string }
  readonly happened: readonly Happened[]
}

/** Rows that were changed and have not become deliveries yet; of one write there are as many as it may have. */
export const CHANGES_MAX = 100_000

/** Made before other work gets a turn. */
const CHANGES_AT_ONCE = 200

interface Pending {
  readonly table: Table
  readonly change: RowChange & Change
  /** Of triggers. */
  readonly names: readonly string[]
}

export class Webhooks {
  readonly outbox: Outbox | null
  readonly #parts: WebhooksParts
  readonly #hearing: Hearing
  readonly #deadLetters = createDeadLetters()
  readonly #sender: Sender
  readonly #deliverer: Deliverer
  #pending: Pending[] = []
  #isDue = false
  #untold = 0

  constructor(parts: WebhooksParts) {
    const { guard, clock, resolve } = parts
    this.outbox = parts.outbox
    this.#parts = parts
    this.#hearing = new Hearing(parts)
    this.#sender = createSender({ guard, clock, connections: LANE_IN_FLIGHT_MAX, ...(resolve ? { resolve } : {}) })
    this.#deliverer = createDeliverer({ ...parts, sender: this.#sender, deadLetters: this.#deadLetters })
  }

  // --- what the runner tells ---

  hearers(table: Table, happened: readonly Happened[]): Hearers {
    return this.#hearing.hearers(table, happened)
  }

  /** Whether somebody is told who has to hear of it from us, of a table that is only known by its names. */
  wantsHidden({ table: { schema, name }, happened }: HiddenWrite): boolean {
    const tables = [...this.#parts.catalog().tables.values()]
    const isMeant = (table: Table) => table.schema === schema && table.name === name
    return tables.some(table => isMeant(table) && this.#hearing.needsUs(table, happened))
  }

  /** Returns at once: deliveries are made later, for the triggers of these names. */
  committed(table: Table, changes: readonly RowChange[], names: readonly string[]): void {
    const atMs = this.#parts.clock.now()
    const taken = changes.slice(0, CHANGES_MAX - this.#pending.length)
    for (const change of taken) this.#pending.push({ table, change: { ...change, table: table.resource, atMs }, names })
    const left = changes.length - taken.length
    this.#untold += left
    if (left > 0) this.#warn(table, new Error(`${left} changes at once are too many; nobody is told of them`))
    this.#schedule()
  }

  unseen(table: Table): void {
    this.#untold += 1
    const error = new Error('rows were written that the role of the gateway may not see; nobody is told of them')
    this.#warn(table, error)
  }

  stored(names: readonly string[]): void {
    this.outbox?.wake(names)
  }

  // --- what operators ask ---

  triggers(): readonly { readonly trigger: Trigger; readonly isActive: boolean; readonly storage: Storage }[] {
    const { triggers } = this.#parts
    return triggers.all().map(trigger => ({
      trigger,
      isActive: triggers.isActive(trigger),
      storage: triggers.writerOf(trigger) === 'nobody' ? 'memory' : 'outbox',
    }))
  }

  /** Of memory. */
  deadLetters(): readonly DeadLetter[] {
    return this.#deadLetters.all()
  }

  deadLetter(id: string): DeadLetter | undefined {
    return this.#deadLetters.get(id)
  }

  /** As if it were new, with the same id; false if there is none, or nothing of it that could be sent. */
  redeliver(id: string): boolean {
    const letter = this.#deadLetters.get(id)
    const trigger = letter && this.#parts.triggers.named(letter.delivery.trigger)
    if (letter === undefined || trigger === undefined || letter.delivery.body.length === 0) return false
    this.#deadLetters.remove(id)
    this.#deliverer.add({ ...letter.delivery, endpoint: endpointOf(trigger), tries: 0 })
    return true
  }

  purge(id: string): boolean {
    const known = this.#deadLetters.get(id) !== undefined
    this.#deadLetters.remove(id)
    return known
  }

  /** Sends something that looks like a webhook, once; null if there is no such trigger. */
  async test(name: string): Promise<{ readonly id: string; readonly outcome: Outcome } | null> {
    const { triggers, clock } = this.#parts
    const trigger = triggers.named(name)
    if (trigger === undefined) return null
    const id = newId(randomBytes)
    const nothing = { table: trigger.table, happened: 'TEST', after: null, before: null, atMs: clock.now() } as const
    return { id, outcome: await this.#deliverer.tryOnce(trigger, id, printPayload(trigger, nothing)) }
  }

  /** Asks the database for what it has, once in a few seconds. */
  async stats(): Promise<WebhookStats> {
    const { triggers, clock } = this.#parts
    const all = triggers.all()
    const held = this.#deliverer.stats()
    const depth = (await this.outbox?.depth()) ?? EMPTY
    const ages = [depth.oldestAgeMs, held.oldestMs === null ? null : Math.max(0, clock.now() - held.oldestMs)]
    return {
      ...{ ...held, narrow: held.narrow + (this.outbox?.narrow() ?? 0), outbox: depth },
      oldestAgeMs: ages.reduce((most, age) => (age === null || (most !== null && most > age) ? most : age), null),
      disabled: all.filter(trigger => trigger.enabled && !triggers.isActive(trigger)).length,
      deadLetters: this.#deadLetters.all().length + depth.deadLetters,
      forgotten: this.#deadLetters.forgotten(),
      untold: this.#untold,
    }
  }

  /** Lets what is in flight and what waits for its first turn finish. */
  async close({ deadlineMs }: { readonly deadlineMs: number }): Promise<void> {
    const closed = this.outbox?.close({ deadlineMs })
    while (this.#pending.length > 0) this.#deliverSome()
    const lost = await this.#drainWithin(deadlineMs)
    await Promise.all([this.#sender.close(), closed])
    if (lost === 0) return
    const error = new Error(`${lost} webhooks were waiting in memory and are lost`)
    this.#parts.emit({ kind: 'webhooks', event: 'lost', detail: { error, deliveries: lost } })
  }

  /** Answers how many deliveries are lost. */
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

  /** After the answers that are due now. */
  #schedule(): void {
    if (this.#isDue || this.#pending.length === 0) return
    this.#isDue = true
    setImmediate(() => this.#deliverSome())
  }

  #deliverSome(): void {
    this.#isDue = false
    const some = this.#pending.slice(0, CHANGES_AT_ONCE)
    this.#pending = this.#pending.slice(CHANGES_AT_ONCE)
    for (const each of some) this.#deliver(each)
    this.#schedule()
  }

  #deliver({ table, change, names }: Pending): void {
    for (const trigger of this.#parts.triggers.on(table, [OPERATION_OF[change.happened]])) {
      if (!names.includes(trigger.name)) continue
      this.#deliverer.add({
        ...{ id: newId(randomBytes), trigger: trigger.name, endpoint: endpointOf(trigger), tries: 0 },
        ...{ table: table.resource, happened: change.happened, createdAtMs: change.atMs },
        body: printPayload(trigger, change),
      })
    }
  }

  #warn(table: Table, error: Error): void {
    this.#parts.emit({ kind: 'webhooks', event: 'changes untold', detail: { error, table: table.resource } })
  }
}

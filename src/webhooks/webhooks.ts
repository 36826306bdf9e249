/** Webhooks as a whole (docs/guides/webhooks.md): changes of rows become deliveries, which operators can list, send again and delete. */
import { randomBytes } from 'node:crypto'
import type { Catalog, Table } from '../catalog/model.ts'
import type { Emit } from '../events.ts'
import type { Storing } from '../language/sql/storing.ts'
import type { AddressGuard } from './address-guard.ts'
import type { Clock } from './clock.ts'
import { createDeadLetters, type DeadLetter } from './dead-letters.ts'
import { createDeliverer } from './deliverer.ts'
import { newId, type Outcome } from './delivery.ts'
import { LANE_IN_FLIGHT_MAX, type LaneStats } from './lanes.ts'
import { type Depth, EMPTY } from './outbox/depth.ts'
import type { Outbox } from './outbox/outbox.ts'
import { storingFor } from './outbox/stored.ts'
import { type Change, printPayload } from './payload.ts'
import { createSender, type Resolve } from './sender.ts'
import { endpointOf, type Happened, OPERATION_OF, OPERATIONS, type Trigger } from './trigger.ts'
import type { Triggers, Writer } from './triggers.ts'

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

/** Names of the triggers that are told of a write. */
export interface Hearers {
  /** From memory. */
  readonly memory: readonly string[]
  /** Their webhooks are in the database when the write is committed. */
  readonly outbox: readonly string[]
  /** How the statement itself writes them down, where nobody else does; the same object as long as nothing has changed. */
  readonly storing: Storing | null
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

export interface Webhooks {
  hearers(table: Table, happened: readonly Happened[]): Hearers
  /** Whether somebody is told who has to hear of it from us, of a table that is only known by its names. */
  wantsHidden(write: { readonly table: TableNames; readonly happened: readonly Happened[] }): boolean
  /** Returns at once: deliveries are made later, for the triggers of these names. */
  committed(table: Table, changes: readonly RowChange[], names: readonly string[]): void
  unseen(table: Table): void
  stored(names: readonly string[]): void
  triggers(): readonly { readonly trigger: Trigger; readonly isActive: boolean; readonly storage: Storage }[]
  /** Of memory. */
  deadLetters(): readonly DeadLetter[]
  deadLetter(id: string): DeadLetter | undefined
  /** As if it were new, with the same id; false if there is none, or nothing of it that could be sent. */
  redeliver(id: string): boolean
  purge(id: string): boolean
  /** Sends something that looks like a webhook, once; null if there is no such trigger. */
  test(name: string): Promise<{ readonly id: string; readonly outcome: Outcome } | null>
  /** Asks the database for what it has, once in a few seconds. */
  stats(): Promise<WebhookStats>
  readonly outbox: Outbox | null
  /** Lets what is in flight and what waits for its first turn finish. */
  close(options: { readonly deadlineMs: number }): Promise<void>
}

interface TableNames {
  readonly schema: string | null
  readonly name: string
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

export function createWebhooks(parts: WebhooksParts): Webhooks {
  const { triggers, outbox, guard, clock, emit, resolve } = parts
  const deadLetters = createDeadLetters()
  const sender = createSender({ guard, clock, connections: LANE_IN_FLIGHT_MAX, ...(resolve ? { resolve } : {}) })
  const deliverer = createDeliverer({ ...parts, sender, deadLetters })
  let pending: Pending[] = []
  let isDue = false
  let untold = 0

  function warn(table: Table, error: Error): void {
    emit({ kind: 'webhooks', event: 'changes untold', detail: { error, table: table.resource } })
  }

  function deliver({ table, change, names }: Pending): void {
    for (const trigger of triggers.on(table, [OPERATION_OF[change.happened]])) {
      if (!names.includes(trigger.name)) continue
      deliverer.add({
        ...{ id: newId(randomBytes), trigger: trigger.name, endpoint: endpointOf(trigger), tries: 0 },
        ...{ table: table.resource, happened: change.happened, createdAtMs: change.atMs },
        body: printPayload(trigger, change),
      })
    }
  }

  function deliverSome(): void {
    isDue = false
    const some = pending.slice(0, CHANGES_AT_ONCE)
    pending = pending.slice(CHANGES_AT_ONCE)
    for (const each of some) deliver(each)
    schedule()
  }

  /** After the answers that are due now. */
  function schedule(): void {
    if (isDue || pending.length === 0) return
    isDue = true
    setImmediate(deliverSome)
  }

  function told(table: Table, happened: readonly Happened[]): ReadonlyMap<string, Writer> {
    const operations = happened.map(word => OPERATION_OF[word])
    return new Map(triggers.on(table, operations).map(trigger => [trigger.name, triggers.writerOf(trigger)]))
  }

  /** For all triggers of the table, some of which leave out what was done: one text for whatever that is. */
  function storing(table: Table): Storing {
    const wanting = triggers.on(table, OPERATIONS).filter(trigger => triggers.writerOf(trigger) === 'statement')
    return storingFor(table, wanting, parts)
  }

  const knownOf = new WeakMap<Table, Known>()

  /** Every write asks, and the answer is the same until the triggers or what is installed are others. */
  function known(table: Table): Known {
    const found = knownOf.get(table)
    const generation = triggers.generation()
    if (found?.generation === generation) return found
    const made = { generation, storing: null, hearers: new Map() }
    knownOf.set(table, made)
    return made
  }

  function hearersOf(table: Table, happened: readonly Happened[], of: Known): Hearers {
    const writers = [...told(table, happened)]
    const names = (isBy: (writer: Writer) => boolean) =>
      writers.filter(([, writer]) => isBy(writer)).map(([name]) => name)
    const isStoring = writers.some(([, writer]) => writer === 'statement')
    if (isStoring) of.storing ??= storing(table)
    return {
      memory: names(writer => writer === 'nobody'),
      outbox: names(writer => writer !== 'nobody'),
      storing: isStoring ? of.storing : null,
    }
  }

  return {
    hearers(table, happened) {
      const of = known(table)
      const key = happened.length === 1 ? (happened[0] ?? '') : happened.join()
      const found = of.hearers.get(key)
      if (found !== undefined) return found
      const made = hearersOf(table, happened, of)
      of.hearers.set(key, made)
      return made
    },
    wantsHidden({ table: { schema, name }, happened }) {
      const tables = [...parts.catalog().tables.values()]
      const isTold = (table: Table) => [...told(table, happened).values()].some(writer => writer !== 'database')
      return tables.some(table => table.schema === schema && table.name === name && isTold(table))
    },
    committed(table, changes, names) {
      const atMs = clock.now()
      const taken = changes.slice(0, CHANGES_MAX - pending.length)
      for (const change of taken) pending.push({ table, change: { ...change, table: table.resource, atMs }, names })
      const left = changes.length - taken.length
      untold += left
      if (left > 0) warn(table, new Error(`${left} changes at once are too many; nobody is told of them`))
      schedule()
    },
    unseen(table) {
      untold += 1
      warn(table, new Error('rows were written that the role of the gateway may not see; nobody is told of them'))
    },
    stored: names => outbox?.wake(names),
    triggers: () =>
      triggers.all().map(trigger => ({
        ...{
          trigger,
          isActive: triggers.isActive(trigger),
          storage: triggers.writerOf(trigger) === 'nobody' ? 'memory' : 'outbox',
        },
      })),
    outbox,
    deadLetters: () => deadLetters.all(),
    deadLetter: id => deadLetters.get(id),
    redeliver(id) {
      const letter = deadLetters.get(id)
      const trigger = letter && triggers.named(letter.delivery.trigger)
      if (letter === undefined || trigger === undefined || letter.delivery.body.length === 0) return false
      deadLetters.remove(id)
      deliverer.add({ ...letter.delivery, endpoint: endpointOf(trigger), tries: 0 })
      return true
    },
    purge(id) {
      const known = deadLetters.get(id) !== undefined
      deadLetters.remove(id)
      return known
    },
    async test(name) {
      const trigger = triggers.named(name)
      if (trigger === undefined) return null
      const id = newId(randomBytes)
      const nothing = { table: trigger.table, happened: 'TEST', after: null, before: null, atMs: clock.now() } as const
      return { id, outcome: await deliverer.tryOnce(trigger, id, printPayload(trigger, nothing)) }
    },
    async stats() {
      const all = triggers.all()
      const held = deliverer.stats()
      const depth = (await outbox?.depth()) ?? EMPTY
      const ages = [depth.oldestAgeMs, held.oldestMs === null ? null : Math.max(0, clock.now() - held.oldestMs)]
      return {
        ...{ ...held, narrow: held.narrow + (outbox?.narrow() ?? 0), outbox: depth },
        oldestAgeMs: ages.reduce((most, age) => (age === null || (most !== null && most > age) ? most : age), null),
        disabled: all.filter(trigger => trigger.enabled && !triggers.isActive(trigger)).length,
        ...{ deadLetters: deadLetters.all().length + depth.deadLetters, forgotten: deadLetters.forgotten(), untold },
      }
    },
    async close({ deadlineMs }) {
      const closed = outbox?.close({ deadlineMs })
      while (pending.length > 0) deliverSome()
      let cancel = (): void => {}
      const late = new Promise<'late'>(resolve => {
        cancel = clock.after(deadlineMs, () => resolve('late'))
      })
      const drained = await Promise.race([deliverer.drain(), late])
      cancel()
      const { inFlight } = deliverer.stats()
      const lost = drained === 'late' ? deliverer.stop() + inFlight : drained
      await Promise.all([sender.close(), closed])
      if (lost === 0) return
      const error = new Error(`${lost} webhooks were waiting in memory and are lost`)
      emit({ kind: 'webhooks', event: 'lost', detail: { error, deliveries: lost } })
    },
  }
}

/** Who is told of a table's writes. */
interface Known {
  /** Of the triggers. */
  readonly generation: number
  /** Made for the first who needs it. */
  storing: Storing | null
  /** By what the write may do. */
  readonly hearers: Map<string, Hearers>
}

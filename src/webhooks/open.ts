/** Makes webhooks of their parts: triggers, the queue in memory, the outbox in the database. */
import { randomBytes } from 'node:crypto'
import type { Catalog } from '../catalog/model.ts'
import { systemClock } from '../clock.ts'
import type { Environment } from '../config/expand.ts'
import { type Emit, unusableFile } from '../events.ts'
import type { AddressGuard } from '../outbound/address-guard.ts'
import { DatabaseError } from '../postgres/errors.ts'
import type { Database } from '../postgres/types.ts'
import { LANE_IN_FLIGHT_MAX } from './lanes.ts'
import { askThrough } from './outbox/ask.ts'
import { createOutbox } from './outbox/outbox.ts'
import { admit, register } from './outbox/register.ts'
import { createPost } from './post.ts'
import { createSender } from './sender.ts'
import { createTriggers } from './triggers.ts'
import { undeliverable } from './undeliverable.ts'
import { Webhooks } from './webhooks.ts'

export interface HooksParts {
  readonly file: string
  readonly tenantColumn: string
  readonly environment: Environment
  readonly guard: AddressGuard
  /** Of the feed role. */
  readonly database: Pick<Database, 'run'>
  readonly catalog: () => Catalog
  /** Tables whose changes the database writes down, as `schema.table`; null: it has no outbox. */
  readonly captured: () => ReadonlySet<string> | null
  readonly userAgent: string
  readonly emit: Emit
}

export interface Hooks {
  readonly webhooks: Webhooks
  /** The file may be another. */
  reload(): Promise<void>
  /** What is installed, or the schema, may be another. */
  refresh(): Promise<void>
}

/** Read-only transaction (PostgreSQL manual, appendix A). */
const READ_ONLY = '25006'

/** Rejects with `ConfigError` when the file cannot be used, or as the database does. */
export async function openHooks(parts: HooksParts): Promise<Hooks> {
  const { guard, database, catalog, captured, userAgent, emit } = parts
  const ask = askThrough(database)
  const warn = (message: string, fix: string | null) => emit({ kind: 'warning', message, fix })
  const ticket = randomBytes(24).toString('base64url')
  let isReadOnly = false
  const triggers = await createTriggers({
    ...parts,
    onProblem: message => emit(unusableFile(message, 'the triggers read before stay in force')),
    async register(registrations) {
      try {
        await admit(ask, ticket)
        const gone = await register(ask, registrations)
        if (gone.length > 0) emit({ kind: 'webhooks', event: 'triggers unregistered', detail: { triggers: gone } })
        isReadOnly = false
      } catch (error) {
        // A standby: nobody writes there, and nobody can register.
        isReadOnly = error instanceof DatabaseError && error.sqlstate === READ_ONLY
        if (!isReadOnly) throw error
      }
      return !isReadOnly
    },
  })
  const chance = { clock: systemClock, random: Math.random }
  const sender = createSender({ guard, clock: systemClock, connections: LANE_IN_FLIGHT_MAX })
  const outbox = createOutbox({
    ...{ ...chance, ask, triggers, catalog, sender, emit },
    isUsable: () => captured() !== null && !isReadOnly,
    gateway: randomBytes(9).toString('base64url'),
    ticket,
    post: createPost({ sender, clock: systemClock, userAgent }),
    elapsedMs: () => performance.now(),
  })
  const { tenantColumn } = parts
  const webhooks = new Webhooks({
    ...chance,
    triggers,
    tenantColumn,
    ticket,
    outbox,
    catalog,
    guard,
    emit,
    userAgent,
  })
  let told = ''
  tellUndeliverable()
  tellStorage()

  function tellUndeliverable(): void {
    for (const { message, fix } of undeliverable(triggers.all(), guard)) warn(message, fix)
  }

  /** Who relies on webhooks has to know which of them a crash takes along. */
  function tellStorage(): void {
    const held = triggers.all().filter(trigger => triggers.isActive(trigger) && triggers.writerOf(trigger) === 'nobody')
    const message = held.map(({ name }) => `"${name}"`).join(', ')
    if (message !== '' && message !== told) {
      warn(
        `Webhooks of ${message} are delivered from memory: those that are not delivered when the process ends are lost.`,
        'Run svc install, which has the database keep them.',
      )
    }
    told = message
  }

  return {
    webhooks,
    async reload() {
      await triggers.reload()
      tellUndeliverable()
      tellStorage()
    },
    async refresh() {
      try {
        await triggers.refresh()
        tellStorage()
      } catch {
        // The database is away: what was registered still is, and the next look follows soon.
      }
    },
  }
}

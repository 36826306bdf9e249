/** Assembles webhooks from their parts: triggers, the queue in memory, and the outbox in the database. */
import { randomBytes } from 'node:crypto'
import type { Catalog } from '../catalog/model.ts'
import { systemClock } from '../clock.ts'
import type { Environment } from '../config/expand.ts'
import { type Emit, unusableFile } from '../events.ts'
import type { AddressGuard } from '../outbound/address-guard.ts'
import { DatabaseError } from '../postgres/errors.ts'
import type { Database } from '../postgres/types.ts'
import { ENDPOINT_IN_FLIGHT_MAX } from './endpoint-queues.ts'
import { createOutbox } from './outbox/outbox.ts'
import { registerTriggers } from './outbox/register.ts'
import { transactionRunner } from './outbox/transaction.ts'
import { createPost } from './post.ts'
import { createSender } from './sender.ts'
import { createTriggers } from './triggers.ts'
import { undeliverable } from './undeliverable.ts'
import { Webhooks } from './webhooks.ts'

/** The dependencies of webhooks. */
export interface WebhookModuleParts {
  readonly file: string
  readonly tenantColumn: string
  readonly environment: Environment
  readonly guard: AddressGuard
  /** Connections of the feed role. */
  readonly database: Pick<Database, 'run'>
  readonly catalog: () => Catalog
  /** Tables whose changes the database captures, as `schema.table`; null if no outbox is installed. */
  readonly captured: () => ReadonlySet<string> | null
  readonly userAgent: string
  readonly emit: Emit
}

/** Webhooks, and what reloads them. */
export interface WebhookModule {
  readonly webhooks: Webhooks
  /** Reads the events file again. */
  reload(): Promise<void>
  /** Adapts to a changed schema or installation. */
  refresh(): Promise<void>
}

/** Read-only transaction (PostgreSQL manual, appendix A). */
const READ_ONLY = '25006'

/**
 * Opens webhooks.
 * @throws ConfigError if the events file is unusable. Errors of the database are passed on.
 */
export async function openWebhooks(parts: WebhookModuleParts): Promise<WebhookModule> {
  const { guard, database, catalog, captured, userAgent, emit } = parts
  const ask = transactionRunner(database)
  const warn = (message: string, fix: string | null) => emit({ kind: 'warning', message, fix })
  let isReadOnly = false
  const triggers = await createTriggers({
    ...parts,
    onProblem: message => emit(unusableFile(message, 'the triggers read before stay in effect')),
    async register(registrations) {
      try {
        const gone = await registerTriggers(ask, registrations)
        if (gone.length > 0) emit({ kind: 'webhooks', event: 'triggers unregistered', detail: { triggers: gone } })
        isReadOnly = false
      } catch (error) {
        // On a standby nothing can be written or registered.
        isReadOnly = error instanceof DatabaseError && error.sqlstate === READ_ONLY
        if (!isReadOnly) throw error
      }
      return !isReadOnly
    },
  })
  const timing = { clock: systemClock, random: Math.random }
  const sender = createSender({ guard, clock: systemClock, connections: ENDPOINT_IN_FLIGHT_MAX })
  const outbox = createOutbox({
    ...{ ...timing, ask, triggers, catalog, sender, emit },
    isUsable: () => captured() !== null && !isReadOnly,
    gateway: randomBytes(9).toString('base64url'),
    post: createPost({ sender, clock: systemClock, userAgent }),
    elapsedMs: () => performance.now(),
  })
  const webhooks = new Webhooks({
    ...timing,
    triggers,
    outbox,
    catalog,
    guard,
    emit,
    userAgent,
  })
  let lastWarned = ''
  warnUndeliverable()
  warnMemoryStorage()

  function warnUndeliverable(): void {
    for (const { message, fix } of undeliverable(triggers.all(), guard)) warn(message, fix)
  }

  /** Warns about webhooks that would be lost in a crash. */
  function warnMemoryStorage(): void {
    const inMemory = triggers.all().filter(trigger => triggers.isActive(trigger) && !triggers.isStored(trigger))
    const message = inMemory.map(({ name }) => `"${name}"`).join(', ')
    if (message !== '' && message !== lastWarned) {
      warn(
        `Webhooks of ${message} are kept in memory: those not delivered when the process ends are lost.`,
        'Run svc install, and let it capture their tables, to store webhooks in the database.',
      )
    }
    lastWarned = message
  }

  return {
    webhooks,
    async reload() {
      await triggers.reload()
      warnUndeliverable()
      warnMemoryStorage()
    },
    async refresh() {
      try {
        await triggers.refresh()
        warnMemoryStorage()
      } catch {
        // The database is unavailable. Existing registrations stay valid, and the next refresh follows soon.
      }
    },
  }
}

/**
 * Delivers webhooks from the outbox: claims as many as there are free slots, sends them, stores the outcomes.
 * Any number of gateways can do so concurrently. All state is in the database: when a gateway is killed, its
 * leases expire.
 */

import type { Clock } from '../../clock.ts'
import type { Emit } from '../../events.ts'
import { disable } from '../deliverer.ts'
import { attemptEvent, type Delivery, type Outcome, wordOf } from '../delivery.ts'
import { EndpointQueues } from '../endpoint-queues.ts'
import { bodyTooLarge, PAYLOAD_BYTES_MAX, printPayload } from '../payload.ts'
import type { PostWebhook } from '../post.ts'
import { endpointOf, type Trigger } from '../trigger.ts'
import type { Triggers } from '../triggers.ts'
import { verdictOf } from '../verdict.ts'
import { createWakeSignal, type WakeSignal } from '../wake-signal.ts'
import { type ClaimedRow, type ClaimRequest, claim, ROWS_BYTES_MAX } from './claim.ts'
import { type ClaimScheduler, createClaimScheduler } from './fair-claims.ts'
import { type Attempt, attemptOf, release, type Settlement } from './settle.ts'
import { createSettlementWriter, RETRY_DELAY_MS, type SettlementWriter } from './settlement-writer.ts'
import type { RunInTransaction } from './transaction.ts'

/** Webhooks claimed per slot of a healthy endpoint: one in flight, the others ready to follow. */
export const AHEAD = 4

/** Interval of polling for webhooks stored by other gateways or by database triggers. */
export const POLL_MS = 500

/** Delay between two claims, so that webhooks stored during the delay are claimed together. */
const PACE_MS = 4

/** Time that must be left of a lease after the longest possible attempt. */
const LATE_MS = 2_000

/** The dependencies of the worker. */
export interface WorkerParts {
  readonly ask: RunInTransaction
  /** True if an outbox is installed. */
  readonly isUsable: () => boolean
  /** The holder of the leases; unique to this gateway. */
  readonly gateway: string
  readonly triggers: Pick<Triggers, 'all' | 'named' | 'isActive' | 'disable'>
  /** The name of a table in bodies. */
  readonly resourceOf: (schema: string, table: string) => string
  readonly post: PostWebhook
  readonly clock: Clock
  /** Monotonic milliseconds. */
  readonly elapsedMs: () => number
  /** A random number from 0 up to 1. */
  readonly random: () => number
  readonly emit: Emit
}

interface ClaimedDelivery extends Delivery {
  readonly seq: string
  readonly key: string | null
  /** When the lease ends, on the clock of `elapsedMs`. */
  readonly leaseEndMs: number
}

/** The background worker of one gateway. */
export class Worker {
  readonly #parts: WorkerParts
  readonly #queues = new EndpointQueues<ClaimedDelivery>()
  readonly #scheduler: ClaimScheduler = createClaimScheduler(endpoint => this.#queues.capacity(endpoint, AHEAD).free)
  /** Trigger names by `seq` of webhooks that are claimed and whose outcome is not stored yet. */
  readonly #held = new Map<string, string>()
  readonly #wakeSignal: WakeSignal = createWakeSignal()
  /** Triggers that may have new webhooks. */
  readonly #notified = new Set<string>()
  readonly #settlements: SettlementWriter
  readonly #working: Promise<void>
  #polledMs: number = Number.NEGATIVE_INFINITY
  #state: 'open' | 'draining' | 'stopped' = 'open'
  #isUnavailable = false
  #drained: () => void = () => {}

  constructor(parts: WorkerParts) {
    const { ask, gateway, emit } = parts
    this.#parts = parts
    this.#settlements = createSettlementWriter({
      ask,
      gateway,
      emit,
      onWritten: settlements => this.#forget(settlements),
    })
    this.#working = this.#work()
  }

  /** Announces new webhooks of these triggers. */
  wake(names: readonly string[]): void {
    for (const name of names) this.#notified.add(name)
    this.#wakeSignal.send()
  }

  /** The number of throttled endpoints. */
  throttled(): number {
    return this.#queues.stats().throttled
  }

  /** Stops claiming and waits for requests in flight. */
  async drain(): Promise<void> {
    this.#state = 'draining'
    this.#wakeSignal.send()
    await this.#working
    await new Promise<void>(resolve => {
      this.#drained = resolve
      this.#dispatch()
    })
    await this.#settlements.written()
  }

  /** Releases the remaining leases. To be called when nothing is in flight, or requests have been cut off. */
  async stop(): Promise<void> {
    this.#state = 'stopped'
    this.#wakeSignal.send()
    this.#settlements.close()
    await release(this.#parts.ask, this.#parts.gateway, [...this.#held.keys()])
  }

  // --- claiming ---

  async #work(): Promise<void> {
    while (this.#state === 'open') {
      const delayMs = this.#isUnavailable ? RETRY_DELAY_MS : PACE_MS
      await new Promise<void>(resolve => this.#parts.clock.after(delayMs, resolve))
      await this.#claimSome()
      await this.#wakeSignal.wait(POLL_MS)
    }
  }

  async #claimSome(): Promise<void> {
    if (!this.#canClaim()) return
    const { ask, gateway, isUsable, elapsedMs } = this.#parts
    const startedMs = elapsedMs()
    const requested = this.#nextRequests(startedMs)
    if (requested.length === 0) return
    try {
      const claimed = await claim(ask, gateway, requested)
      this.#scheduler.record(requested, claimed)
      this.#takeAll(claimed.webhooks, requested, startedMs)
      this.#markAvailable()
      this.#dispatch()
      if (requested.some(({ trigger }) => this.#canHaveMore(trigger))) this.#wakeSignal.send()
    } catch (error) {
      // The outbox was uninstalled: nothing to report.
      if (isUsable()) this.#markUnavailable(error)
    }
  }

  /** Claims pause while the settlement writer waits for the database, which bounds what is held in memory. */
  #canClaim(): boolean {
    if (this.#state !== 'open' || !this.#parts.isUsable()) return false
    return !this.#settlements.isFull() && (!this.#isUnavailable || this.#settlements.isEmpty())
  }

  #nextRequests(nowMs: number): readonly ClaimRequest[] {
    const { triggers } = this.#parts
    const isPoll = nowMs - this.#polledMs >= POLL_MS
    const active = triggers.all().filter(triggers.isActive)
    const scheduler = this.#scheduler
    const requested = scheduler.next(active, name => isPoll || this.#notified.has(name) || scheduler.hasMore(name))
    if (isPoll) this.#polledMs = nowMs
    this.#notified.clear()
    return requested
  }

  #markUnavailable(error: unknown): void {
    if (!this.#isUnavailable) this.#parts.emit({ kind: 'webhooks', event: 'outbox unavailable', detail: { error } })
    this.#isUnavailable = true
  }

  #markAvailable(): void {
    if (this.#isUnavailable) this.#parts.emit({ kind: 'webhooks', event: 'outbox available again', detail: {} })
    this.#isUnavailable = false
  }

  #takeAll(rows: readonly ClaimedRow[], requested: readonly ClaimRequest[], startedMs: number): void {
    const leases = new Map(requested.map(({ trigger, leaseMs }) => [trigger, startedMs + leaseMs]))
    for (const row of rows) this.#take(row, leases.get(row.trigger) ?? startedMs)
  }

  #take(row: ClaimedRow, leaseEndMs: number): void {
    const { triggers, resourceOf } = this.#parts
    const trigger = triggers.named(row.trigger)
    // The gateway's own lease has expired while the webhook is in flight or its outcome is being written.
    if (this.#held.has(row.seq)) return
    this.#held.set(row.seq, row.trigger)
    if (trigger === undefined || this.#state !== 'open') {
      this.#giveBack(row)
      return
    }
    const table = resourceOf(row.schema, row.table)
    const body = bodyOf(trigger, row, table)
    if (typeof body === 'string') {
      this.#giveUp(row, body)
      return
    }
    const { seq, id, key, operation, createdAtMs, tries, traceparent } = row
    const delivery = {
      id,
      trigger: row.trigger,
      endpoint: endpointOf(trigger),
      table,
      operation,
      body,
      createdAtMs,
      tries,
      traceparent,
    }
    for (const victim of this.#queues.add({ ...delivery, seq, key, leaseEndMs })) this.#giveBack(victim)
  }

  /**
   * True if the trigger has more webhooks and at least half of its slots are free. Claiming for every slot
   * that becomes free would cause too many claims.
   */
  #canHaveMore(name: string): boolean {
    const trigger = this.#parts.triggers.named(name)
    if (trigger === undefined || !this.#scheduler.hasMore(name)) return false
    const { free, most } = this.#queues.capacity(endpointOf(trigger), AHEAD)
    return free * 2 >= most
  }

  // --- sending ---

  #dispatch(): void {
    while (this.#state !== 'stopped') {
      const delivery = this.#queues.take()
      if (delivery === null) break
      const trigger = this.#parts.triggers.named(delivery.trigger)
      if (trigger !== undefined && this.#canSend(delivery, trigger)) {
        void this.#attempt(delivery, trigger)
      } else {
        this.#queues.finish(delivery)
        this.#giveBack(delivery)
      }
    }
    if (this.#state === 'draining' && this.#queues.isIdle()) this.#drained()
  }

  #canSend({ leaseEndMs }: ClaimedDelivery, trigger: Trigger): boolean {
    const { triggers, elapsedMs } = this.#parts
    const isLate = elapsedMs() + trigger.timeoutMs + LATE_MS > leaseEndMs
    return this.#state === 'open' && !isLate && triggers.isActive(trigger)
  }

  async #attempt(delivery: ClaimedDelivery, trigger: Trigger): Promise<void> {
    const { post, elapsedMs } = this.#parts
    const startedMs = elapsedMs()
    const outcome = await post(trigger, delivery.id, delivery.body, delivery.traceparent)
    // The request was cut off; the next holder of the lease repeats the attempt.
    if (this.#state === 'stopped') return
    this.#conclude(delivery, trigger, outcome, elapsedMs() - startedMs)
    this.#dispatch()
    if (this.#canHaveMore(trigger.name)) this.#wakeSignal.send()
  }

  #conclude(delivery: ClaimedDelivery, trigger: Trigger, outcome: Outcome, durationMs: number): void {
    const { triggers, clock, random, emit } = this.#parts
    const tried = { ...delivery, tries: delivery.tries + 1 }
    emit(attemptEvent(tried, outcome, durationMs))
    this.#queues.recordOutcome(delivery, wordOf(outcome) === 'delivered' ? 'good' : 'bad')
    this.#queues.finish(delivery)
    const verdict = verdictOf(outcome, trigger, { tries: tried.tries, nowMs: clock.now(), random: random() })
    if (verdict.kind === 'gone') disable(triggers, trigger, emit)
    const made = attemptOf(tried.tries, outcome, durationMs)
    if (verdict.kind === 'gone' || verdict.kind === 'dead') this.#giveUp(tried, verdict.reason, made)
    else this.#end(delivery, verdict, made)
  }

  // // --- outcomes ---

  #giveUp(of: Settled & Pick<ClaimedDelivery, 'tries'>, reason: string, attempt: Attempt | null = null): void {
    const { id, trigger, tries } = of
    this.#parts.emit({
      ...{ kind: 'webhooks', event: 'dead letter' },
      detail: { error: new Error(reason), trigger, id, tries },
    })
    this.#end(of, { kind: 'dead', reason }, attempt)
  }

  #giveBack(of: Settled): void {
    this.#end(of, { kind: 'back' }, null)
  }

  #end({ seq, id, trigger, key }: Settled, verdict: Settlement['verdict'], attempt: Attempt | null): void {
    this.#settlements.add({ seq, id, trigger, key, verdict, attempt })
  }

  /** Forgets settlements that have been stored. */
  #forget(settlements: readonly Settlement[]): void {
    for (const { seq, trigger, key } of settlements) {
      this.#held.delete(seq)
      // The next webhook with the same key is due now.
      if (key !== null) this.wake([trigger])
    }
  }
}

type Settled = Pick<Settlement, 'seq' | 'id' | 'trigger' | 'key'>

/** The body, or a text with the reason why it is missing. */
function bodyOf(trigger: Trigger, row: ClaimedRow, table: string): Buffer | string {
  const { operation, after, before, bytes, createdAtMs } = row
  if (bytes > ROWS_BYTES_MAX) return `the rows have ${bytes} bytes; the limit is ${ROWS_BYTES_MAX}`
  try {
    const body = printPayload(trigger, { table, operation, after, before, atMs: createdAtMs })
    if (body.length <= PAYLOAD_BYTES_MAX) return body
    return bodyTooLarge(body.length)
  } catch (error) {
    return `the body cannot be built: ${error instanceof Error ? error.message : String(error)}`
  }
}

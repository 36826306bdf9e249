/**
 * Delivers what is in the outbox: claims as much as there are places for, sends it, writes down what came of it. Any number of gateways do so beside each other.
 * Nothing is kept here that the database does not have: a gateway that is killed loses its leases, and they run out.
 */

import type { Clock } from '../../clock.ts'
import type { Emit } from '../../events.ts'
import { type Bell, createBell } from '../bell.ts'
import { disable } from '../deliverer.ts'
import { attemptEvent, type Delivery, type Outcome, wordOf } from '../delivery.ts'
import { Lanes } from '../lanes.ts'
import { PAYLOAD_BYTES_MAX, printPayload } from '../payload.ts'
import type { PostWebhook } from '../post.ts'
import { endpointOf, type Trigger } from '../trigger.ts'
import type { Triggers } from '../triggers.ts'
import { verdictOf } from '../verdict.ts'
import type { Ask } from './ask.ts'
import { type ClaimedRow, claim, ROWS_BYTES_MAX, type Turn } from './claim.ts'
import { AWAY_MS, createLedger, type Ledger } from './ledger.ts'
import { type Attempt, attemptOf, release, type Settlement } from './settle.ts'
import { createTurns, type Turns } from './turns.ts'

/** Claimed for each place of an endpoint that answers well: one is on its way, the others are at hand when it is back. */
export const AHEAD = 4

/** Between two times that somebody else's writes are looked for. */
export const POLL_MS = 500

/** Between two claims: what is written meanwhile is claimed together. */
const PACE_MS = 4

/** Left of a lease when a try begins, beyond the longest that it may take. */
const LATE_MS = 2_000

export interface WorkerParts {
  readonly ask: Ask
  /** There is an outbox. */
  readonly isUsable: () => boolean
  /** Whose the leases are; no other gateway has the same. */
  readonly gateway: string
  readonly triggers: Pick<Triggers, 'all' | 'named' | 'isActive' | 'disable'>
  /** The name of a table in bodies. */
  readonly resourceOf: (schema: string, table: string) => string
  readonly post: PostWebhook
  readonly clock: Clock
  /** Milliseconds that never jump. */
  readonly elapsedMs: () => number
  /** From 0 to 1. */
  readonly random: () => number
  readonly emit: Emit
}

interface Held extends Delivery {
  readonly seq: string
  readonly key: string | null
  /** By `elapsedMs`: when the lease ends. */
  readonly leaseEndMs: number
}

export class Worker {
  readonly #parts: WorkerParts
  readonly #lanes = new Lanes<Held>()
  readonly #turns: Turns = createTurns(endpoint => this.#lanes.room(endpoint, AHEAD).free)
  /** By `seq`: claimed, and not written down yet what came of it. */
  readonly #held = new Map<string, string>()
  readonly #bell: Bell = createBell()
  /** Of them there may be something new. */
  readonly #called = new Set<string>()
  readonly #ledger: Ledger
  readonly #working: Promise<void>
  #lookedMs: number = Number.NEGATIVE_INFINITY
  #state: 'open' | 'draining' | 'stopped' = 'open'
  #isAway = false
  #drained: () => void = () => {}

  constructor(parts: WorkerParts) {
    const { ask, gateway, emit } = parts
    this.#parts = parts
    this.#ledger = createLedger({ ask, gateway, emit, onWritten: settlements => this.#forget(settlements) })
    this.#working = this.#work()
  }

  /** There is something new of these triggers. */
  wake(names: readonly string[]): void {
    for (const name of names) this.#called.add(name)
    this.#bell.ring()
  }

  /** Endpoints that are asked by one delivery at a time. */
  narrow(): number {
    return this.#lanes.stats().narrow
  }

  /** Claims no more, and waits for what is on its way. */
  async drain(): Promise<void> {
    this.#state = 'draining'
    this.#bell.ring()
    await this.#working
    await new Promise<void>(resolve => {
      this.#drained = resolve
      this.#pump()
    })
    await this.#ledger.written()
  }

  /** Gives back what is still held. Call it when nothing is on its way any more, or is cut off. */
  async stop(): Promise<void> {
    this.#state = 'stopped'
    this.#bell.ring()
    this.#ledger.close()
    await release(this.#parts.ask, this.#parts.gateway, [...this.#held.keys()])
  }

  // --- claiming ---

  async #work(): Promise<void> {
    while (this.#state === 'open') {
      const rests = this.#isAway ? AWAY_MS : PACE_MS
      await new Promise<void>(resolve => this.#parts.clock.after(rests, resolve))
      await this.#claimSome()
      await this.#bell.wait(POLL_MS)
    }
  }

  async #claimSome(): Promise<void> {
    if (!this.#mayClaim()) return
    const { ask, gateway, isUsable, elapsedMs } = this.#parts
    const startedMs = elapsedMs()
    const asked = this.#nextTurns(startedMs)
    if (asked.length === 0) return
    try {
      const claimed = await claim(ask, gateway, asked)
      this.#turns.learn(asked, claimed)
      this.#takeAll(claimed.webhooks, asked, startedMs)
      this.#here()
      this.#pump()
      if (asked.some(({ trigger }) => this.#canHaveMore(trigger))) this.#bell.ring()
    } catch (error) {
      // Whoever uninstalls need not be told.
      if (isUsable()) this.#away(error)
    }
  }

  /** While the ledger waits for the database, so does everything else: what is held here stays bounded. */
  #mayClaim(): boolean {
    if (this.#state !== 'open' || !this.#parts.isUsable()) return false
    return !this.#ledger.isFull() && (!this.#isAway || this.#ledger.isEmpty())
  }

  #nextTurns(nowMs: number): readonly Turn[] {
    const { triggers } = this.#parts
    const isPoll = nowMs - this.#lookedMs >= POLL_MS
    const active = triggers.all().filter(triggers.isActive)
    const turns = this.#turns
    const asked = turns.next(active, name => isPoll || this.#called.has(name) || turns.wants(name))
    if (isPoll) this.#lookedMs = nowMs
    this.#called.clear()
    return asked
  }

  #away(error: unknown): void {
    if (!this.#isAway) this.#parts.emit({ kind: 'webhooks', event: 'the outbox cannot be asked', detail: { error } })
    this.#isAway = true
  }

  #here(): void {
    if (this.#isAway) this.#parts.emit({ kind: 'webhooks', event: 'the outbox answers again', detail: {} })
    this.#isAway = false
  }

  #takeAll(rows: readonly ClaimedRow[], asked: readonly Turn[], startedMs: number): void {
    const leases = new Map(asked.map(({ trigger, leaseMs }) => [trigger, startedMs + leaseMs]))
    for (const row of rows) this.#take(row, leases.get(row.trigger) ?? startedMs)
  }

  #take(row: ClaimedRow, leaseEndMs: number): void {
    const { triggers, resourceOf } = this.#parts
    const trigger = triggers.named(row.trigger)
    // Our own lease has run out while it is still on its way, or written down.
    if (this.#held.has(row.seq)) return
    this.#held.set(row.seq, row.trigger)
    if (trigger === undefined || this.#state !== 'open') {
      this.#giveBack(row)
      return
    }
    const table = resourceOf(row.schema, row.table)
    const body = bodyOf(trigger, row, table)
    if (typeof body === 'string') {
      this.#bury(row, body)
      return
    }
    const { seq, id, key, happened, createdAtMs, tries } = row
    const one = { id, trigger: row.trigger, endpoint: endpointOf(trigger), table, happened, body, createdAtMs, tries }
    for (const victim of this.#lanes.add({ ...one, seq, key, leaseEndMs })) this.#giveBack(victim)
  }

  /** There is more, and room for it: a claim for each place that becomes free would be many. */
  #canHaveMore(name: string): boolean {
    const trigger = this.#parts.triggers.named(name)
    if (trigger === undefined || !this.#turns.wants(name)) return false
    const { free, most } = this.#lanes.room(endpointOf(trigger), AHEAD)
    return free * 2 >= most
  }

  // --- sending ---

  #pump(): void {
    while (this.#state !== 'stopped') {
      const delivery = this.#lanes.take()
      if (delivery === null) break
      const trigger = this.#parts.triggers.named(delivery.trigger)
      if (trigger !== undefined && this.#maySend(delivery, trigger)) {
        void this.#attempt(delivery, trigger)
      } else {
        this.#lanes.leave(delivery)
        this.#giveBack(delivery)
      }
    }
    if (this.#state === 'draining' && this.#lanes.isIdle()) this.#drained()
  }

  #maySend({ leaseEndMs }: Held, trigger: Trigger): boolean {
    const { triggers, elapsedMs } = this.#parts
    const isLate = elapsedMs() + trigger.timeoutMs + LATE_MS > leaseEndMs
    return this.#state === 'open' && !isLate && triggers.isActive(trigger)
  }

  async #attempt(delivery: Held, trigger: Trigger): Promise<void> {
    const { post, elapsedMs } = this.#parts
    const startedMs = elapsedMs()
    const outcome = await post(trigger, delivery.id, delivery.body)
    // Cut off: whoever has it next begins this try anew.
    if (this.#state === 'stopped') return
    this.#judge(delivery, trigger, outcome, elapsedMs() - startedMs)
    this.#pump()
    if (this.#canHaveMore(trigger.name)) this.#bell.ring()
  }

  #judge(delivery: Held, trigger: Trigger, outcome: Outcome, durationMs: number): void {
    const { triggers, clock, random, emit } = this.#parts
    const tried = { ...delivery, tries: delivery.tries + 1 }
    emit(attemptEvent(tried, outcome, durationMs))
    this.#lanes.judge(delivery, wordOf(outcome) === 'delivered' ? 'good' : 'bad')
    this.#lanes.leave(delivery)
    const verdict = verdictOf(outcome, trigger, { tries: tried.tries, nowMs: clock.now(), random: random() })
    if (verdict.kind === 'gone') disable(triggers, trigger, emit)
    const made = attemptOf(tried.tries, outcome, durationMs)
    if (verdict.kind === 'gone' || verdict.kind === 'dead') this.#bury(tried, verdict.reason, made)
    else this.#end(delivery, verdict, made)
  }

  // --- what came of it ---

  #bury(of: Ended & Pick<Held, 'tries'>, reason: string, attempt: Attempt | null = null): void {
    const { id, trigger, tries } = of
    this.#parts.emit({
      ...{ kind: 'webhooks', event: 'dead letter' },
      detail: { error: new Error(reason), trigger, id, tries },
    })
    this.#end(of, { kind: 'dead', reason }, attempt)
  }

  #giveBack(of: Ended): void {
    this.#end(of, { kind: 'back' }, null)
  }

  #end({ seq, id, trigger, key }: Ended, verdict: Settlement['verdict'], attempt: Attempt | null): void {
    this.#ledger.add({ seq, id, trigger, key, verdict, attempt })
  }

  /** They are written down. */
  #forget(settlements: readonly Settlement[]): void {
    for (const { seq, trigger, key } of settlements) {
      this.#held.delete(seq)
      // The next of its key is due now.
      if (key !== null) this.wake([trigger])
    }
  }
}

type Ended = Pick<Settlement, 'seq' | 'id' | 'trigger' | 'key'>

/** A text: why there is none. */
function bodyOf(trigger: Trigger, row: ClaimedRow, table: string): Buffer | string {
  const { happened, after, before, bytes, createdAtMs } = row
  if (bytes > ROWS_BYTES_MAX) return `its rows have ${bytes} bytes; at most ${ROWS_BYTES_MAX} are read`
  try {
    const body = printPayload(trigger, { table, happened, after, before, atMs: createdAtMs })
    if (body.length <= PAYLOAD_BYTES_MAX) return body
    return `the body has ${body.length} bytes, at most ${PAYLOAD_BYTES_MAX} are sent; name the columns that are needed in the trigger`
  } catch (error) {
    return `it cannot be printed: ${error instanceof Error ? error.message : String(error)}`
  }
}

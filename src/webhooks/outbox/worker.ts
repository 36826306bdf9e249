/**
 * Delivers what is in the outbox: claims as much as there are places for, sends it, writes down what came of it. Any number of gateways do so beside each other.
 * Nothing is kept here that the database does not have: a gateway that is killed loses its leases, and they run out.
 */
import type { Emit } from '../../events.ts'
import { type Bell, createBell } from '../bell.ts'
import type { Clock } from '../clock.ts'
import { disable } from '../deliverer.ts'
import { attemptEvent, type Delivery, type Outcome, wordOf } from '../delivery.ts'
import { Lanes } from '../lanes.ts'
import { PAYLOAD_BYTES_MAX, printPayload } from '../payload.ts'
import type { PostWebhook } from '../post.ts'
import { endpointOf, type Trigger } from '../trigger.ts'
import type { Triggers } from '../triggers.ts'
import { verdictOf } from '../verdict.ts'
import type { Ask } from './ask.ts'
import { type ClaimedRow, claim, ROWS_BYTES_MAX } from './claim.ts'
import { AWAY_MS, createLedger } from './ledger.ts'
import { type Attempt, release, type Settlement } from './settle.ts'
import { createTurns } from './turns.ts'

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

export interface Worker {
  /** There is something new of these triggers. */
  wake(names: readonly string[]): void
  /** Endpoints that are asked by one delivery at a time. */
  narrow(): number
  /** Claims no more, and waits for what is on its way. */
  drain(): Promise<void>
  /** Gives back what is still held. Call it when nothing is on its way any more, or is cut off. */
  stop(): Promise<void>
}

interface Held extends Delivery {
  readonly seq: string
  readonly key: string | null
  /** By `elapsedMs`: when the lease ends. */
  readonly leaseEndMs: number
}

export function createWorker(parts: WorkerParts): Worker {
  const { ask, isUsable, gateway, triggers, resourceOf, post, clock, elapsedMs, random, emit } = parts
  const lanes = new Lanes<Held>()
  const turns = createTurns(endpoint => lanes.room(endpoint, AHEAD).free)
  /** By `seq`: claimed, and not written down yet what came of it. */
  const held = new Map<string, string>()
  const bell: Bell = createBell()
  /** Of them there may be something new. */
  const called = new Set<string>()
  let lookedMs = Number.NEGATIVE_INFINITY
  const ledger = createLedger({
    ...{ ask, gateway, emit },
    onWritten(settlements) {
      for (const { seq, trigger, key } of settlements) {
        held.delete(seq)
        // The next of its key is due now.
        if (key !== null) wake([trigger])
      }
    },
  })
  let state: 'open' | 'draining' | 'stopped' = 'open'
  let isAway = false
  let drained: () => void = () => {}
  const working = work()

  function wake(names: readonly string[]): void {
    for (const name of names) called.add(name)
    bell.ring()
  }

  async function work(): Promise<void> {
    while (state === 'open') {
      const rests = isAway ? AWAY_MS : PACE_MS
      await new Promise<void>(resolve => clock.after(rests, resolve))
      await claimSome()
      await bell.wait(POLL_MS)
    }
  }

  /** While the ledger waits for the database, so does everything else: what is held here stays bounded. */
  async function claimSome(): Promise<void> {
    if (state !== 'open' || !isUsable() || ledger.isFull() || (isAway && !ledger.isEmpty())) return
    const startedMs = elapsedMs()
    const isPoll = startedMs - lookedMs >= POLL_MS
    const active = triggers.all().filter(triggers.isActive)
    const asked = turns.next(active, name => isPoll || called.has(name) || turns.wants(name))
    if (isPoll) lookedMs = startedMs
    called.clear()
    if (asked.length === 0) return
    try {
      const claimed = await claim(ask, gateway, asked)
      turns.learn(asked, claimed)
      const leases = new Map(asked.map(({ trigger, leaseMs }) => [trigger, startedMs + leaseMs]))
      for (const row of claimed.webhooks) take(row, leases.get(row.trigger) ?? startedMs)
      here()
      pump()
      if (asked.some(({ trigger }) => canHaveMore(trigger))) bell.ring()
    } catch (error) {
      // Whoever uninstalls need not be told.
      if (isUsable()) away(error)
    }
  }

  function away(error: unknown): void {
    if (!isAway) emit({ kind: 'webhooks', event: 'the outbox cannot be asked', detail: { error } })
    isAway = true
  }

  function here(): void {
    if (isAway) emit({ kind: 'webhooks', event: 'the outbox answers again', detail: {} })
    isAway = false
  }

  function take(row: ClaimedRow, leaseEndMs: number): void {
    const trigger = triggers.named(row.trigger)
    // Our own lease has run out while it is still on its way, or written down.
    if (held.has(row.seq)) return
    held.set(row.seq, row.trigger)
    if (trigger === undefined || state !== 'open') {
      giveBack(row)
      return
    }
    const body = bodyOf(trigger, row)
    if (typeof body === 'string') {
      bury(row, body)
      return
    }
    const { seq, id, key, happened, createdAtMs, tries } = row
    const table = resourceOf(row.schema, row.table)
    const one = { id, trigger: row.trigger, endpoint: endpointOf(trigger), table, happened, body, createdAtMs, tries }
    for (const victim of lanes.add({ ...one, seq, key, leaseEndMs })) giveBack(victim)
  }

  /** A text: why there is none. */
  function bodyOf(trigger: Trigger, row: ClaimedRow): Buffer | string {
    const { happened, after, before, bytes, createdAtMs } = row
    if (bytes > ROWS_BYTES_MAX) return `its rows have ${bytes} bytes; at most ${ROWS_BYTES_MAX} are read`
    try {
      const table = resourceOf(row.schema, row.table)
      const body = printPayload(trigger, { table, happened, after, before, atMs: createdAtMs })
      if (body.length <= PAYLOAD_BYTES_MAX) return body
      return `the body has ${body.length} bytes, at most ${PAYLOAD_BYTES_MAX} are sent; name the columns that are needed in the trigger`
    } catch (error) {
      return `it cannot be printed: ${error instanceof Error ? error.message : String(error)}`
    }
  }

  function pump(): void {
    while (state !== 'stopped') {
      const delivery = lanes.take()
      if (delivery === null) break
      const trigger = triggers.named(delivery.trigger)
      const isLate = elapsedMs() + (trigger?.timeoutMs ?? 0) + LATE_MS > delivery.leaseEndMs
      if (trigger !== undefined && triggers.isActive(trigger) && !isLate && state === 'open') {
        void attempt(delivery, trigger)
      } else {
        lanes.leave(delivery)
        giveBack(delivery)
      }
    }
    if (state === 'draining' && lanes.isIdle()) drained()
  }

  /** There is more, and room for it: a claim for each place that becomes free would be many. */
  function canHaveMore(name: string): boolean {
    const trigger = triggers.named(name)
    if (trigger === undefined || !turns.wants(name)) return false
    const { free, most } = lanes.room(endpointOf(trigger), AHEAD)
    return free * 2 >= most
  }

  async function attempt(delivery: Held, trigger: Trigger): Promise<void> {
    const startedMs = elapsedMs()
    const outcome = await post(trigger, delivery.id, delivery.body)
    // Cut off: whoever has it next begins this try anew.
    if (state === 'stopped') return
    judge(delivery, trigger, outcome, elapsedMs() - startedMs)
    pump()
    if (canHaveMore(trigger.name)) bell.ring()
  }

  function judge(delivery: Held, trigger: Trigger, outcome: Outcome, durationMs: number): void {
    const tried = { ...delivery, tries: delivery.tries + 1 }
    emit(attemptEvent(tried, outcome, durationMs))
    lanes.judge(delivery, wordOf(outcome) === 'delivered' ? 'good' : 'bad')
    lanes.leave(delivery)
    const verdict = verdictOf(outcome, trigger, { tries: tried.tries, nowMs: clock.now(), random: random() })
    if (verdict.kind === 'gone') disable(triggers, trigger, emit)
    const made = attemptOf(tried.tries, outcome, durationMs)
    if (verdict.kind === 'gone' || verdict.kind === 'dead') bury(tried, verdict.reason, made)
    else end(delivery, verdict, made)
  }

  function bury(of: Ended & Pick<Held, 'tries'>, reason: string, attempt: Attempt | null = null): void {
    const { id, trigger, tries } = of
    emit({ kind: 'webhooks', event: 'dead letter', detail: { error: new Error(reason), trigger, id, tries } })
    end(of, { kind: 'dead', reason }, attempt)
  }

  function giveBack(of: Ended): void {
    end(of, { kind: 'back' }, null)
  }

  function end({ seq, id, trigger, key }: Ended, verdict: Settlement['verdict'], attempt: Attempt | null): void {
    ledger.add({ seq, id, trigger, key, verdict, attempt })
  }

  return {
    wake,
    narrow: () => lanes.stats().narrow,
    async drain() {
      state = 'draining'
      bell.ring()
      await working
      await new Promise<void>(resolve => {
        drained = resolve
        pump()
      })
      await ledger.written()
    },
    async stop() {
      state = 'stopped'
      bell.ring()
      ledger.close()
      await release(ask, gateway, [...held.keys()])
    },
  }
}

type Ended = Pick<Settlement, 'seq' | 'id' | 'trigger' | 'key'>

function attemptOf(number: number, outcome: Outcome, durationMs: number): Attempt {
  const answered = outcome.kind === 'answered' ? outcome : null
  return {
    ...{ try: number, outcome: wordOf(outcome), durationMs },
    ...{ status: answered?.status ?? null, answer: answered?.body ?? null },
    message: outcome.kind === 'answered' ? `answered ${outcome.status}` : outcome.message,
  }
}

/**
 * Delivers webhooks from memory, in the background
 * (docs/guides/webhooks.md#retries-and-order): endpoints take turns; each delivery is
 * signed, sent, retried after a failure, and finally given up. Nothing is stored: deliveries still pending
 * when the process ends are lost.
 */

import type { Clock } from '../clock.ts'
import type { Emit } from '../events.ts'
import type { DeadLetters } from './dead-letters.ts'
import { attemptEvent, type Delivery, type Outcome, wordOf } from './delivery.ts'
import { EndpointQueues, type QueueStats } from './endpoint-queues.ts'
import { bodyTooLarge, PAYLOAD_BYTES_MAX } from './payload.ts'
import { createPost } from './post.ts'
import type { Sender } from './sender.ts'
import { endpointOf, type Trigger } from './trigger.ts'
import type { Triggers } from './triggers.ts'
import { verdictOf } from './verdict.ts'

/** The dependencies of a deliverer. */
export interface DelivererParts {
  readonly triggers: Pick<Triggers, 'named' | 'isActive' | 'disable'>
  readonly sender: Pick<Sender, 'send'>
  readonly deadLetters: DeadLetters
  readonly clock: Clock
  /** A random number from 0 up to 1. */
  readonly random: () => number
  readonly userAgent: string
  readonly emit: Emit
}

/** Delivers webhooks that are queued in memory. */
export interface Deliverer {
  add(delivery: Delivery): void
  /** Makes one attempt immediately, outside the queue; its outcome has no consequences. */
  tryOnce(trigger: Trigger, id: string, body: Buffer): Promise<Outcome>
  stats(): QueueStats
  /**
   * Stops scheduling retries and resolves when every other delivery has been attempted. Returns how many
   * deliveries were given up because of this.
   */
  drain(): Promise<number>
  /** Stops sending. Returns how many deliveries are lost, not counting those in flight. */
  stop(): number
}

/** Creates a deliverer with empty queues. */
export function createDeliverer(parts: DelivererParts): Deliverer {
  const { triggers, deadLetters, clock, random, emit } = parts
  const post = createPost(parts)
  const queues = new EndpointQueues()
  let state: 'open' | 'draining' | 'stopped' = 'open'
  let abandoned = 0
  let drained: () => void = () => {}

  function giveUp(delivery: Delivery, reason: string, outcome: Outcome | null): void {
    deadLetters.add({ delivery, reason, outcome, atMs: clock.now() })
    const { id, trigger, tries } = delivery
    emit({ kind: 'webhooks', event: 'dead letter', detail: { error: new Error(reason), trigger, id, tries } })
  }

  function dispatch(): void {
    while (state !== 'stopped') {
      const delivery = queues.take()
      if (delivery === null) break
      const trigger = triggers.named(delivery.trigger)
      if (trigger !== undefined && triggers.isActive(trigger)) {
        void attempt(delivery, trigger)
      } else {
        queues.finish(delivery)
        giveUp(delivery, trigger === undefined ? 'the trigger no longer exists' : 'the trigger is disabled', null)
      }
    }
    if (state === 'draining' && queues.isIdle()) drained()
  }

  async function attempt(delivery: Delivery, trigger: Trigger): Promise<void> {
    const startedMs = clock.now()
    conclude(delivery, trigger, await post(trigger, delivery.id, delivery.body, delivery.traceparent), startedMs)
    dispatch()
  }

  function conclude(before: Delivery, trigger: Trigger, outcome: Outcome, startedMs: number): void {
    const tried = { ...before, tries: before.tries + 1 }
    emit(attemptEvent(tried, outcome, clock.now() - startedMs))
    queues.recordOutcome(before, wordOf(outcome) === 'delivered' ? 'good' : 'bad')
    const { tries } = tried
    const verdict = verdictOf(outcome, trigger, { tries, nowMs: clock.now(), random: random() })
    if (verdict.kind === 'again' && state === 'open') {
      scheduleRetry(before, { ...tried, endpoint: endpointOf(trigger) }, verdict.delayMs)
      return
    }
    queues.finish(before)
    if (verdict.kind === 'again') abandoned += 1
    if (verdict.kind === 'gone') disable(triggers, trigger, emit)
    if (verdict.kind === 'gone' || verdict.kind === 'dead') giveUp(tried, verdict.reason, outcome)
  }

  function scheduleRetry(before: Delivery, next: Delivery, delayMs: number): void {
    const wake = (): void => {
      queues.wake(next)
      dispatch()
    }
    queues.retry(before, next, () => clock.after(delayMs, wake))
  }

  return {
    add(delivery) {
      const { length } = delivery.body
      if (length > PAYLOAD_BYTES_MAX) {
        // Kept without its body, which would be too large to redeliver as well.
        const reason = bodyTooLarge(length)
        return giveUp({ ...delivery, body: Buffer.alloc(0) }, reason, null)
      }
      for (const victim of queues.add(delivery))
        giveUp(victim, 'the queue is full; this delivery was dropped to make room', null)
      dispatch()
    },
    tryOnce: post,
    stats: () => queues.stats(),
    async drain() {
      state = 'draining'
      abandoned += queues.clear('waiting').length
      await new Promise<void>(resolve => {
        drained = resolve
        dispatch()
      })
      return abandoned
    },
    stop() {
      state = 'stopped'
      return abandoned + queues.clear('all').length
    },
  }
}

/** Disables a trigger until the events file is read again. */
export function disable(triggers: Pick<Triggers, 'disable'>, { name }: Trigger, emit: Emit): void {
  triggers.disable(name)
  const error = new Error('the endpoint answered 410 Gone; send SIGHUP to enable the trigger again')
  emit({ kind: 'webhooks', event: 'trigger disabled', detail: { error, trigger: name } })
}

/**
 * Delivers what is added, in the background (docs/guides/webhooks.md#retries-and-order): takes turns between endpoints, signs, sends, tries again, and gives up in the
 * end. Everything is in memory: what has not been delivered when the process ends is lost.
 */

import type { Clock } from '../clock.ts'
import type { Emit } from '../events.ts'
import type { DeadLetters } from './dead-letters.ts'
import { attemptEvent, type Delivery, type Outcome, wordOf } from './delivery.ts'
import { type LaneStats, Lanes } from './lanes.ts'
import { PAYLOAD_BYTES_MAX } from './payload.ts'
import { createPost } from './post.ts'
import type { Sender } from './sender.ts'
import { endpointOf, type Trigger } from './trigger.ts'
import type { Triggers } from './triggers.ts'
import { verdictOf } from './verdict.ts'

export interface DelivererParts {
  readonly triggers: Pick<Triggers, 'named' | 'isActive' | 'disable'>
  readonly sender: Pick<Sender, 'send'>
  readonly deadLetters: DeadLetters
  readonly clock: Clock
  /** From 0 to 1. */
  readonly random: () => number
  readonly userAgent: string
  readonly emit: Emit
}

export interface Deliverer {
  add(delivery: Delivery): void
  /** One try, now and beside the queue, that nothing comes of. */
  tryOnce(trigger: Trigger, id: string, body: Buffer): Promise<Outcome>
  stats(): LaneStats
  /** Gives no more new tries to what failed; resolves when all the rest has been tried. Answers how many deliveries were given up for it. */
  drain(): Promise<number>
  /** Nothing is sent any more; answers how many deliveries are lost, those on their way not counted. */
  stop(): number
}

export function createDeliverer(parts: DelivererParts): Deliverer {
  const { triggers, deadLetters, clock, random, emit } = parts
  const post = createPost(parts)
  const lanes = new Lanes()
  let state: 'open' | 'draining' | 'stopped' = 'open'
  let abandoned = 0
  let drained: () => void = () => {}

  function bury(delivery: Delivery, reason: string, outcome: Outcome | null): void {
    deadLetters.add({ delivery, reason, outcome, atMs: clock.now() })
    const { id, trigger, tries } = delivery
    emit({ kind: 'webhooks', event: 'dead letter', detail: { error: new Error(reason), trigger, id, tries } })
  }

  function pump(): void {
    while (state !== 'stopped') {
      const delivery = lanes.take()
      if (delivery === null) break
      const trigger = triggers.named(delivery.trigger)
      if (trigger !== undefined && triggers.isActive(trigger)) {
        void attempt(delivery, trigger)
      } else {
        lanes.leave(delivery)
        bury(delivery, trigger === undefined ? 'there is no such trigger any more' : 'the trigger is disabled', null)
      }
    }
    if (state === 'draining' && lanes.isIdle()) drained()
  }

  async function attempt(delivery: Delivery, trigger: Trigger): Promise<void> {
    const startedMs = clock.now()
    settle(delivery, trigger, await post(trigger, delivery.id, delivery.body), startedMs)
    pump()
  }

  function settle(before: Delivery, trigger: Trigger, outcome: Outcome, startedMs: number): void {
    const tried = { ...before, tries: before.tries + 1 }
    emit(attemptEvent(tried, outcome, clock.now() - startedMs))
    lanes.judge(before, wordOf(outcome) === 'delivered' ? 'good' : 'bad')
    const { tries } = tried
    const verdict = verdictOf(outcome, trigger, { tries, nowMs: clock.now(), random: random() })
    if (verdict.kind === 'again' && state === 'open') {
      later(before, { ...tried, endpoint: endpointOf(trigger) }, verdict.delayMs)
      return
    }
    lanes.leave(before)
    if (verdict.kind === 'again') abandoned += 1
    if (verdict.kind === 'gone') disable(triggers, trigger, emit)
    if (verdict.kind === 'gone' || verdict.kind === 'dead') bury(tried, verdict.reason, outcome)
  }

  function later(before: Delivery, next: Delivery, delayMs: number): void {
    const wake = (): void => {
      lanes.wake(next)
      pump()
    }
    lanes.retry(before, next, () => clock.after(delayMs, wake))
  }

  return {
    add(delivery) {
      const { length } = delivery.body
      if (length > PAYLOAD_BYTES_MAX) {
        // Kept without what makes it too large: it could not be sent again either.
        const reason = `the body has ${length} bytes, at most ${PAYLOAD_BYTES_MAX} are sent; name the columns that are needed in the trigger`
        return bury({ ...delivery, body: Buffer.alloc(0) }, reason, null)
      }
      for (const victim of lanes.add(delivery)) bury(victim, 'too many deliveries wait; this one had to go', null)
      pump()
    },
    tryOnce: post,
    stats: () => lanes.stats(),
    async drain() {
      state = 'draining'
      abandoned += lanes.empty('waiting').length
      await new Promise<void>(resolve => {
        drained = resolve
        pump()
      })
      return abandoned
    },
    stop() {
      state = 'stopped'
      return abandoned + lanes.empty('all').length
    },
  }
}

/** Nobody is told by it any more, until the file is read again. */
export function disable(triggers: Pick<Triggers, 'disable'>, { name }: Trigger, emit: Emit): void {
  triggers.disable(name)
  const error = new Error('the endpoint answered 410 Gone; SIGHUP enables it again')
  emit({ kind: 'webhooks', event: 'trigger disabled', detail: { error, trigger: name } })
}

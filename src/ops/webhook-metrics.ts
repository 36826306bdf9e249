/** Counts delivery attempts of webhooks and reports the queued deliveries. */
import type { Event } from '../events.ts'
import { EMPTY_OUTBOX, totalOf } from '../webhooks/outbox/depth.ts'
import type { WebhookStats } from '../webhooks/webhooks.ts'
import { Durations } from './durations.ts'
import type { CollectedSamples, MetricKey } from './metric-table.ts'

type AttemptEvent = Extract<Event, { readonly kind: 'webhook attempt' }>

/** The metrics of webhooks. */
export interface WebhookMetrics {
  record(event: AttemptEvent, nowMs: number): void
  /** Converts the statistics to samples; `stats` is null without triggers. */
  collect(stats: WebhookStats | null): CollectedSamples<Extract<MetricKey, `webhook${string}`>>
}

const OUTCOMES: Readonly<Record<AttemptEvent['outcome'], true>> = {
  ...{ delivered: true, refused: true, timeout: true, address: true, connection: true },
}

const NOTHING = { ready: 0, waiting: 0, inFlight: 0 }

/** Creates the metrics of webhooks. */
export function createWebhookMetrics(): WebhookMetrics {
  const counts = new Map<string, number>(Object.keys(OUTCOMES).map(outcome => [outcome, 0]))
  const durations = new Durations()
  const one = (value: number) => [{ labels: [], value }]
  const queue = (storage: string, { ready, waiting, inFlight }: typeof NOTHING) =>
    Object.entries({ ready, waiting, in_flight: inFlight }).map(([state, value]) => ({
      labels: [storage, state],
      value,
    }))
  return {
    record({ outcome, durationMs }, nowMs) {
      counts.set(outcome, (counts.get(outcome) ?? 0) + 1)
      durations.record(durationMs / 1_000, nowMs)
    },
    collect(stats) {
      return {
        webhookQueue: [
          ...queue('memory', stats ?? NOTHING),
          ...queue('outbox', totalOf(stats?.outbox ?? EMPTY_OUTBOX)),
        ],
        webhookQueueBytes: one(stats?.bytes ?? 0),
        webhookOldest: one((stats?.oldestAgeMs ?? 0) / 1_000),
        webhookAttempts: [...counts].map(([outcome, value]) => ({ labels: [outcome], value })),
        webhookDuration: [{ labels: [], value: durations.buckets() }],
        webhookDead: [
          { labels: ['memory'], value: (stats?.deadLetters ?? 0) - (stats?.outbox.deadLetters ?? 0) },
          { labels: ['outbox'], value: stats?.outbox.deadLetters ?? 0 },
        ],
        webhookDropped: one(stats?.dropped ?? 0),
        webhookUndelivered: one(stats?.undelivered ?? 0),
        webhookFailing: one(stats?.throttled ?? 0),
        webhookDisabled: one(stats?.disabled ?? 0),
      }
    },
  }
}

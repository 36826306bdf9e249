/** `GET /health`: 200 when gateway and database answer, else 503 (docs/guides/monitoring.md). */
import type { Answer } from '../exchange.ts'

export interface Health {
  answer(): Promise<Answer>
}

export interface HealthOptions {
  readonly version: string
  /** Resolves when the database answered, rejects when it did not. */
  readonly ask: () => Promise<unknown>
  /** Milliseconds, from any monotonic clock. */
  readonly now: () => number
  /** The gateway is closing: it answers what it has, and wants nothing new. */
  readonly isDraining: () => boolean
}

/** The database is asked at most this often, however many probes there are. */
const ASK_INTERVAL_MS = 1_000

/** A database that takes longer to say something is not healthy, and a probe does not wait for ever. */
const ANSWER_MS_MAX = 2_000

export function createHealth({ version, ask, now, isDraining }: HealthOptions): Health {
  let asked: { readonly at: number; readonly healthy: Promise<boolean> } | null = null

  function isHealthy(): Promise<boolean> {
    if (asked === null || now() - asked.at >= ASK_INTERVAL_MS) {
      asked = {
        at: now(),
        healthy: answersInTime(ask()),
      }
    }
    return asked.healthy
  }

  return {
    async answer() {
      const healthy = !isDraining() && (await isHealthy())
      const body = healthy ? { status: 'ok', version } : { status: 'unavailable' }
      return {
        status: healthy ? 200 : 503,
        headers: {
          'Content-Type': 'application/json; charset=utf-8',
          'Cache-Control': 'no-store',
          ...(healthy ? {} : { 'Retry-After': '1' }),
        },
        body: Buffer.from(JSON.stringify(body)),
      }
    },
  }
}

function answersInTime(asked: Promise<unknown>): Promise<boolean> {
  return new Promise(resolve => {
    const timer = setTimeout(() => resolve(false), ANSWER_MS_MAX)
    const settle = (healthy: boolean) => {
      clearTimeout(timer)
      resolve(healthy)
    }
    asked.then(
      () => settle(true),
      () => settle(false),
    )
  })
}

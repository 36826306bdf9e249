/** `GET /health`: 200 if the gateway and the database respond, otherwise 503 (docs/guides/monitoring.md). */
import type { Answer } from '../exchange.ts'

/** The health check. */
export interface Health {
  answer(): Promise<Answer>
}

/** The dependencies of the health check. */
export interface HealthOptions {
  readonly version: string
  /** Resolves if the database responds, otherwise rejects. */
  readonly ask: () => Promise<unknown>
  /** The time in milliseconds of a monotonic clock. */
  readonly now: () => number
  /** Reports whether the gateway is shutting down and accepts no new work. */
  readonly isDraining: () => boolean
}

/** Minimum interval between two queries of the database, however many probes there are. */
const ASK_INTERVAL_MS = 1_000

/** Time limit for the database; a slower one counts as unhealthy. */
const ANSWER_MS_MAX = 2_000

/** Creates the health check. */
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

/** `GET /health`: 200 if the gateway and the database respond, otherwise 503 (docs/guides/monitoring.md). */
import type { Answer } from '../exchange.ts'

/** The health check. */
export interface Health {
  answer(): Promise<Answer>
  /** Reports whether this process can answer requests. */
  isHealthy(): Promise<boolean>
}

/** The dependencies of the health check. */
export interface HealthOptions {
  readonly version: string
  /** Resolves if the database responds, otherwise rejects. */
  readonly query: () => Promise<unknown>
  /** The time in milliseconds of a monotonic clock. */
  readonly now: () => number
  /** Reports whether the gateway is shutting down and accepts no new work. */
  readonly isDraining: () => boolean
  /** Reports whether any worker can answer requests; null if there is only this process. */
  readonly isAnyHealthy: (() => Promise<boolean>) | null
}

/** Minimum interval between two queries of the database, however many probes there are. */
const CHECK_INTERVAL_MS = 1_000

/** Time limit for the database; a slower one counts as unhealthy. */
const ANSWER_MS_MAX = 2_000

/** Creates the health check. */
export function createHealth({ version, query, now, isDraining, isAnyHealthy }: HealthOptions): Health {
  let lastCheck: { readonly at: number; readonly healthy: Promise<boolean> } | null = null

  function databaseAnswers(): Promise<boolean> {
    if (lastCheck === null || now() - lastCheck.at >= CHECK_INTERVAL_MS) {
      lastCheck = {
        at: now(),
        healthy: answersInTime(query()),
      }
    }
    return lastCheck.healthy
  }

  async function isHealthy(): Promise<boolean> {
    return !isDraining() && (await databaseAnswers())
  }

  return {
    isHealthy,
    async answer() {
      const healthy = await (isAnyHealthy ?? isHealthy)()
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

function answersInTime(answer: Promise<unknown>): Promise<boolean> {
  return new Promise(resolve => {
    const timer = setTimeout(() => resolve(false), ANSWER_MS_MAX)
    const settle = (healthy: boolean) => {
      clearTimeout(timer)
      resolve(healthy)
    }
    answer.then(
      () => settle(true),
      () => settle(false),
    )
  })
}

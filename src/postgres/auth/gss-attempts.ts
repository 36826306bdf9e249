/**
 * Connection attempts that may use Kerberos: transient failures are retried with growing pauses, and the
 * circuit breaker blocks attempts after too many failures (docs/guides/database-connections.md#kerberos).
 */
import { setTimeout as delay } from 'node:timers/promises'
import { type Backoff, delayMs } from '../backoff.ts'
import { BlockedError, ConnectError } from '../errors.ts'
import { abandoned, type CircuitSettings, type CircuitState, CLOSED, enter, failed, succeeded } from './circuit.ts'
import type { GssProvider } from './gss.ts'

/** The settings of the `gss_…` parameters of a connection URL. */
export interface GssSettings {
  readonly provider: GssProviderName
  /** `service@host` */
  readonly target: string
  /** Retries of a transient failure, after the first attempt. */
  readonly retries: number
  readonly retryBaseMs: number
  readonly circuit: CircuitSettings
}

export const GSS_PROVIDERS = ['linux_krb5', 'callback', 'custom'] as const
export type GssProviderName = (typeof GSS_PROVIDERS)[number]

export interface Gss {
  readonly provider: GssProvider
  readonly attempts: GssAttempts
}

/** A change of the circuit breaker. */
export interface CircuitTransition {
  readonly from: CircuitState['kind']
  readonly to: CircuitState['kind']
  /** The failure that caused it, if any. */
  readonly error: Error | null
}

/**
 * The circuit breaker of one connection target: all connections of the process to it share the state, each
 * with its own settings.
 */
export class CircuitBreaker {
  state: CircuitState = CLOSED
  lastFailure: Error | null = null
}

export interface GssAttemptsOptions {
  readonly settings: GssSettings
  readonly circuit: CircuitBreaker
  readonly onTransition: (transition: CircuitTransition) => void
  readonly clock?: () => number
  readonly random?: () => number
  /** Rejects when the signal is aborted. */
  readonly pause?: (ms: number, signal: AbortSignal) => Promise<void>
}

/** Limit on the pause between two tries. */
const PAUSE_MS_MAX = 30_000

/** The result of one attempt. */
export interface ConnectTry {
  /** True if the server requested Kerberos, or could request nothing else: then its outcome counts. */
  usesGss: boolean
}

export class GssAttempts {
  readonly #options: Required<GssAttemptsOptions>
  constructor(options: GssAttemptsOptions) {
    this.#options = {
      clock: () => performance.now(),
      random: Math.random,
      pause: (ms, signal) => delay(ms, undefined, { signal }),
      ...options,
    }
  }

  get state(): CircuitState['kind'] {
    return this.#options.circuit.state.kind
  }

  /**
   * Runs `connect`, with up to `retries` retries. Rejects with `ConnectError`; an aborted `signal` ends
   * everything.
   */
  async run<T>(connect: (attempt: ConnectTry) => Promise<T>, signal: AbortSignal): Promise<T> {
    const { settings, random, pause } = this.#options
    const backoff: Backoff = { firstMs: settings.retryBaseMs, maxMs: PAUSE_MS_MAX }
    for (let failures = 0; ; ) {
      const outcome = await this.#try(connect, signal)
      if (outcome.kind === 'connected') return outcome.value
      failures++
      if (outcome.isFinal || failures > settings.retries) throw outcome.error
      // The failure is more informative than the abort.
      await pause(delayMs(backoff, failures, random), signal).catch(() => {
        throw outcome.error
      })
    }
  }

  async #try<T>(connect: (attempt: ConnectTry) => Promise<T>, signal: AbortSignal): Promise<Outcome<T>> {
    const { circuit, clock, settings } = this.#options
    const entry = enter(circuit.state, clock())
    this.#become(entry.state, null)
    if (entry.kind === 'blocked') return { kind: 'failed', error: this.#blocked(entry.forMs), isFinal: true }
    const { generation } = entry.state
    const attempt: ConnectTry = { usesGss: false }
    try {
      const value = await connect(attempt)
      this.#become(
        attempt.usesGss ? succeeded(circuit.state, generation) : abandoned(circuit.state, generation, clock()),
        null,
      )
      return { kind: 'connected', value }
    } catch (error) {
      if (signal.aborted || !attempt.usesGss) {
        this.#become(abandoned(circuit.state, generation, clock()), null)
        return { kind: 'failed', error, isFinal: true }
      }
      circuit.lastFailure = error as Error
      this.#become(failed(circuit.state, generation, clock(), settings.circuit), error as Error)
      return { kind: 'failed', error, isFinal: !(error instanceof ConnectError) || error.permanent }
    }
  }

  #become(state: CircuitState, error: Error | null): void {
    const { circuit, onTransition } = this.#options
    const from = circuit.state.kind
    circuit.state = state
    if (state.kind !== from) onTransition({ from, to: state.kind, error })
  }

  #blocked(forMs: number): BlockedError {
    const { target, circuit } = this.#options.settings
    const { lastFailure } = this.#options.circuit
    const when = forMs > 0 ? `for another ${Math.ceil(forMs)} ms` : 'until the attempt in progress has ended'
    return new BlockedError(
      `attempts to connect with Kerberos to ${target} are blocked ${when}, after ${circuit.threshold} failures ` +
        `within ${circuit.windowMs} ms (gss_circuit_threshold, gss_circuit_window_ms); ` +
        `the last: ${lastFailure?.message ?? 'unknown'}`,
      forMs,
      lastFailure ?? undefined,
    )
  }
}

type Outcome<T> =
  | { readonly kind: 'connected'; readonly value: T }
  | { readonly kind: 'failed'; readonly error: unknown; readonly isFinal: boolean }

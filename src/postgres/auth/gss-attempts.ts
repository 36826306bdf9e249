/**
 * Attempts to connect where Kerberos may be used: failures that may pass are tried again, ever more patiently, and the
 * circuit keeps everybody from trying what has failed too often (docs/guides/database-connections.md#kerberos).
 */
import { setTimeout as delay } from 'node:timers/promises'
import { type Backoff, delayMs } from '../backoff.ts'
import { BlockedError, ConnectError } from '../errors.ts'
import { abandoned, type CircuitSettings, type CircuitState, CLOSED, enter, failed, succeeded } from './circuit.ts'
import type { GssProvider } from './gss.ts'

/** What a `gss_…` part of a connection URL says. */
export interface GssSettings {
  readonly provider: GssProviderName
  /** `service@host` */
  readonly target: string
  /** Of a failure that may pass, behind the first attempt. */
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

/** Told each time the circuit changes. */
export interface CircuitTransition {
  readonly from: CircuitState['kind']
  readonly to: CircuitState['kind']
  /** What was the last straw, where there is one. */
  readonly error: Error | null
}

/** The circuit of one connection target: everything in the process that connects to it shares the state, with its own settings. */
export class Circuit {
  state: CircuitState = CLOSED
  lastFailure: Error | null = null
}

export interface GssAttemptsOptions {
  readonly settings: GssSettings
  readonly circuit: Circuit
  readonly onTransition: (transition: CircuitTransition) => void
  readonly clock?: () => number
  readonly random?: () => number
  /** Rejects when the signal is aborted. */
  readonly pause?: (ms: number, signal: AbortSignal) => Promise<void>
}

/** The longest pause between two tries of one attempt. */
const PAUSE_MS_MAX = 30_000

/** What one try found out on its way. */
export interface Try {
  /** The server asked for Kerberos, or could ask for nothing else: then its outcome counts. */
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

  /** `connect` is tried `retries` times more at most. Rejects with `ConnectError`; an aborted `signal` ends everything. */
  async run<T>(connect: (attempt: Try) => Promise<T>, signal: AbortSignal): Promise<T> {
    const { settings, random, pause } = this.#options
    const backoff: Backoff = { firstMs: settings.retryBaseMs, maxMs: PAUSE_MS_MAX }
    for (let failures = 0; ; ) {
      const outcome = await this.#try(connect, signal)
      if (outcome.kind === 'connected') return outcome.value
      failures++
      if (outcome.isFinal || failures > settings.retries) throw outcome.error
      // What failed is of more interest than that somebody lost patience.
      await pause(delayMs(backoff, failures, random), signal).catch(() => {
        throw outcome.error
      })
    }
  }

  async #try<T>(connect: (attempt: Try) => Promise<T>, signal: AbortSignal): Promise<Outcome<T>> {
    const { circuit, clock, settings } = this.#options
    const entry = enter(circuit.state, clock())
    this.#become(entry.state, null)
    if (entry.kind === 'blocked') return { kind: 'failed', error: this.#blocked(entry.forMs), isFinal: true }
    const { generation } = entry.state
    const attempt: Try = { usesGss: false }
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
    const when = forMs > 0 ? `for another ${Math.ceil(forMs)} ms` : 'until the one that is under way has ended'
    return new BlockedError(
      `attempts to connect with Kerberos to ${target} are blocked ${when}, after ${circuit.threshold} failures within ${circuit.windowMs} ms (gss_circuit_threshold, gss_circuit_window_ms); the last: ${lastFailure?.message ?? 'unknown'}`,
      forMs,
      lastFailure ?? undefined,
    )
  }
}

type Outcome<T> =
  | { readonly kind: 'connected'; readonly value: T }
  | { readonly kind: 'failed'; readonly error: unknown; readonly isFinal: boolean }

/**
 * The circuit breaker for connection attempts with Kerberos (docs/guides/database-connections.md#kerberos):
 * too many failures within a window open it, and no attempt is made until the cooldown is over; then one
 * attempt decides. This protects an unavailable KDC from requests, and an account from being locked.
 * A pure state machine: every function takes the time and returns the next state.
 */

export interface CircuitSettings {
  /** This many failures … */
  readonly threshold: number
  /** … within this time open the circuit … */
  readonly windowMs: number
  /** … for this long. */
  readonly cooldownMs: number
}

export type CircuitState =
  /** `failures`: their times, oldest first; always fewer than `threshold`. */
  | { readonly kind: 'closed'; readonly generation: number; readonly failures: readonly number[] }
  | { readonly kind: 'open'; readonly generation: number; readonly untilMs: number }
  /** One attempt is in progress, and its outcome decides. */
  | { readonly kind: 'half-open'; readonly generation: number }

export const CLOSED: CircuitState = { kind: 'closed', generation: 0, failures: [] }

/**
 * True if an attempt may begin. If so, it carries the `generation` of the new state and reports its outcome
 * under it: attempts that began before the circuit changed do not count.
 */
export type Entry =
  | { readonly kind: 'allowed'; readonly state: CircuitState }
  | { readonly kind: 'blocked'; readonly state: CircuitState; readonly forMs: number }

export function enter(state: CircuitState, nowMs: number): Entry {
  switch (state.kind) {
    case 'closed':
      return { kind: 'allowed', state }
    case 'open':
      if (nowMs < state.untilMs) return { kind: 'blocked', state, forMs: state.untilMs - nowMs }
      return { kind: 'allowed', state: { kind: 'half-open', generation: state.generation + 1 } }
    case 'half-open':
      return { kind: 'blocked', state, forMs: 0 }
  }
}

export function succeeded(state: CircuitState, generation: number): CircuitState {
  if (state.kind !== 'half-open' || state.generation !== generation) return state
  return { kind: 'closed', generation: generation + 1, failures: [] }
}

export function failed(
  state: CircuitState,
  generation: number,
  nowMs: number,
  { threshold, windowMs, cooldownMs }: CircuitSettings,
): CircuitState {
  if (state.generation !== generation || state.kind === 'open') return state
  const open: CircuitState = { kind: 'open', generation: generation + 1, untilMs: nowMs + cooldownMs }
  if (state.kind === 'half-open') return open
  const failures = [...state.failures.filter(at => at > nowMs - windowMs), nowMs]
  return failures.length >= threshold ? open : { ...state, failures }
}

/** The attempt has no outcome: it was aborted by the gateway, or Kerberos was not used after all. */
export function abandoned(state: CircuitState, generation: number, nowMs: number): CircuitState {
  if (state.kind !== 'half-open' || state.generation !== generation) return state
  return { kind: 'open', generation: generation + 1, untilMs: nowMs }
}

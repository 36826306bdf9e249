/**
 * The circuit that guards attempts to connect with Kerberos (docs/guides/database-connections.md#kerberos): too many failures within a
 * window open it, and nothing is tried until the cooldown is over; then one attempt decides. So a KDC that is away is not
 * asked by everybody all the time, and an account is not locked by a gateway that knows no better.
 *
 * A pure state machine: every function takes the time and answers the next state.
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
  /** `failures`: when they were, oldest first; always fewer than `threshold`. */
  | { readonly kind: 'closed'; readonly generation: number; readonly failures: readonly number[] }
  | { readonly kind: 'open'; readonly generation: number; readonly untilMs: number }
  /** One attempt is under way, and its outcome decides. */
  | { readonly kind: 'half-open'; readonly generation: number }

export const CLOSED: CircuitState = { kind: 'closed', generation: 0, failures: [] }

/**
 * May an attempt begin? If so it carries the `generation` of the new state, and tells its outcome under that: what was
 * begun before the circuit changed says nothing about it as it is now.
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

/** The attempt has no outcome: it was given up for reasons of our own, or Kerberos was not asked for after all. */
export function abandoned(state: CircuitState, generation: number, nowMs: number): CircuitState {
  if (state.kind !== 'half-open' || state.generation !== generation) return state
  return { kind: 'open', generation: generation + 1, untilMs: nowMs }
}

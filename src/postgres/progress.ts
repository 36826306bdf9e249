/** How far an attempt to connect has come. A server that falls silent or hangs up does not say where it was; we do. */
import type { Mechanism } from './auth/mechanism.ts'

export class Progress {
  #step: string | Mechanism = 'opening the connection'

  /** Completes a sentence: "no answer while …". */
  set step(step: string) {
    this.#step = step
  }

  get step(): string {
    return typeof this.#step === 'string' ? this.#step : `authenticating with ${this.#step.name}: ${this.#step.step}`
  }

  /** From now on the mechanism knows. */
  follow(mechanism: Mechanism): void {
    this.#step = mechanism
  }
}

/** The sentence's end, for errors that do not say themselves at which step they came. */
export function during({ step }: Progress): string {
  return `(while ${step})`
}

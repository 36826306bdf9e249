/**
 * The step that a connection attempt has reached, for error messages: a server that stops responding does not
 * report it.
 */
import type { Mechanism } from './auth/mechanism.ts'

/** The current step of a connection attempt. */
export class Progress {
  #step: string | Mechanism = 'opening the connection'

  /** Completes the sentence "no response while …". */
  set step(step: string) {
    this.#step = step
  }

  get step(): string {
    return typeof this.#step === 'string' ? this.#step : `authenticating with ${this.#step.name}: ${this.#step.step}`
  }

  /** From now on, the authentication mechanism provides the step. */
  follow(mechanism: Mechanism): void {
    this.#step = mechanism
  }
}

/** The end of a sentence for errors that do not name the step themselves. */
export function during({ step }: Progress): string {
  return `(while ${step})`
}

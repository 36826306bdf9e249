/**
 * `Server-Timing` (W3C Server Timing) with PostgREST's phases: `jwt`, the verification of the token; `parse`,
 * the request; `plan`, its statement; `transaction`, until its result; `response`, its body.
 */
import type { Answer, Incoming } from '../exchange.ts'
import type { RequestStep, StepResult } from '../rest/steps.ts'

type Phase = 'jwt' | 'parse' | 'plan' | 'transaction' | 'response'

/** The measured phases of requests in progress. */
export class Timings {
  readonly #now: () => number
  readonly #requests = new WeakMap<object, Map<Phase, number>>()
  /** When the statements of requests were ready, until they are answered. */
  readonly #running = new WeakMap<object, number>()

  /** `now`: the time in milliseconds of a monotonic clock. */
  constructor(now: () => number) {
    this.#now = now
  }

  /** Runs `work` as a phase of a request. */
  measure<T>(request: object, phase: Phase, work: () => T): T {
    const started = this.#now()
    try {
      return work()
    } finally {
      this.#add(request, phase, this.#now() - started)
    }
  }

  /** Measures from now, when its statements are ready, to the response of a step. */
  step(incoming: Incoming, step: RequestStep): RequestStep {
    if (!('respond' in step)) return step
    this.#running.set(incoming, this.#now())
    // The results differ by the kind of step; they are passed on unchanged.
    const respond = step.respond as (...results: readonly unknown[]) => StepResult
    const measured = (...results: readonly unknown[]): StepResult => {
      this.#endTransaction(incoming)
      return this.measure(incoming, 'response', () => respond(...results))
    }
    return { ...step, respond: measured } as RequestStep
  }

  /** The response with the header. The phases of an error are those until it occurred. */
  printed(incoming: Incoming, answer: Answer, of: 'result' | 'error'): Answer {
    this.#endTransaction(incoming)
    const phases = this.#requests.get(incoming)
    if (phases === undefined) return answer
    if (of === 'error') phases.delete('response')
    else if (!phases.has('response')) phases.set('response', 0)
    const printed = [...phases].map(([name, ms]) => `${name};dur=${ms.toFixed(1)}`)
    return { ...answer, headers: { ...answer.headers, 'Server-Timing': printed.join(', ') } }
  }

  #endTransaction(request: object): void {
    const started = this.#running.get(request)
    if (started === undefined) return
    this.#running.delete(request)
    this.#add(request, 'transaction', this.#now() - started)
  }

  #add(request: object, phase: Phase, ms: number): void {
    const phases = this.#requests.get(request) ?? new Map<Phase, number>()
    phases.set(phase, (phases.get(phase) ?? 0) + ms)
    this.#requests.set(request, phases)
  }
}

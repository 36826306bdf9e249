/**
 * `gss_provider=callback` and `custom`, which are two names for the same: tokens by an ES module of the
 * operator's (`gss_module`) that exports `step`. What it needs to remember from one step to the next it hands
 * back as `state`.
 */
import { pathToFileURL } from 'node:url'
import { GssError, type GssMethod, type GssProvider, type GssStep } from '../postgres/auth/gss.ts'
import { KerberosSetupError } from './setup-error.ts'

/** What `step` is called with. */
export interface StepRequest {
  /** `service@host` */
  readonly target: string
  /** What the server asked for. */
  readonly method: GssMethod
  /** What the server sent; null at the first step. */
  readonly token: Uint8Array | null
  /** What the step before answered as `state`; undefined at the first. */
  readonly state: unknown
  /** Aborted when nobody waits for the answer any more. */
  readonly signal: AbortSignal
}

/** What it answers, or a promise of it. An error it throws is final unless it has `transient: true`. */
export interface StepAnswer {
  /** For the server; null or left out when there is nothing left to say. */
  readonly token?: Uint8Array | null
  /** The server has proved to be the target. */
  readonly done: boolean
  readonly state?: unknown
}

type Step = (request: StepRequest) => StepAnswer | Promise<StepAnswer>

/** Rejects with `KerberosSetupError`. */
export async function openModule(path: string | null, provider: string): Promise<GssProvider> {
  if (path === null) {
    throw new KerberosSetupError(
      `gss_provider=${provider} needs gss_module, the ES module that makes the tokens.`,
      'Set gss_module under [gateway] to a file that exports a function step.',
    )
  }
  let loaded: { readonly step?: unknown }
  try {
    loaded = (await import(pathToFileURL(path).href)) as { readonly step?: unknown }
  } catch (error) {
    throw new KerberosSetupError(
      `gss_module=${path} cannot be loaded: ${(error as Error).message}`,
      'It is an ES module (.mjs, or .js where package.json says "type": "module") that runs by itself.',
      error,
    )
  }
  if (typeof loaded.step !== 'function') {
    throw new KerberosSetupError(
      `gss_module=${path} exports no function step; it exports ${Object.keys(loaded).join(', ') || 'nothing'}.`,
      'Write: export async function step({ target, method, token, state, signal }) { … return { token, done, state } }',
    )
  }
  return createFromStep(loaded.step as Step)
}

export function createFromStep(step: Step): GssProvider {
  return {
    start(request) {
      let state: unknown
      return async token => {
        const answer = await callStep(step, { ...request, token, state })
        state = answer.state
        return checkAnswer(answer)
      }
    },
  }
}

async function callStep(step: Step, request: StepRequest): Promise<StepAnswer> {
  try {
    return (await step(request)) ?? {}
  } catch (error) {
    const { message = String(error), transient } = (error ?? {}) as { message?: string; transient?: unknown }
    throw new GssError(`step of gss_module failed: ${message}`, transient === true, error)
  }
}

/** It was written by somebody who may not have a compiler that checks it. */
function checkAnswer({ token, done }: StepAnswer): GssStep {
  if (typeof done !== 'boolean') {
    throw new GssError('step of gss_module answered without done; expected { token, done, state }', false)
  }
  if (token === undefined || token === null) return { token: null, done }
  if (!(token instanceof Uint8Array)) {
    throw new GssError(
      `step of gss_module answered a token that is ${typeof token}; expected a Uint8Array or null`,
      false,
    )
  }
  return { token: Buffer.from(token), done }
}

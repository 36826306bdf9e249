/**
 * `gss_provider=callback` and its synonym `custom`: tokens from an ES module of the operator (`gss_module`)
 * that exports `step`. Data that it needs in the next step is returned as `state`.
 */
import { pathToFileURL } from 'node:url'
import { GssError, type GssMethod, type GssProvider, type GssStep } from '../postgres/auth/gss.ts'
import { KerberosSetupError } from './setup-error.ts'

/** The argument of `step`. */
export interface StepRequest {
  /** `service@host` */
  readonly target: string
  /** The method that the server requested. */
  readonly method: GssMethod
  /** The token that the server sent; null in the first step. */
  readonly token: Uint8Array | null
  /** The `state` that the previous step returned; undefined in the first. */
  readonly state: unknown
  /** Aborted when the result is no longer needed. */
  readonly signal: AbortSignal
}

/**
 * The result of `step`, or a promise of it. An error that it throws is final unless it has `transient:
 * true`.
 */
export interface StepAnswer {
  /** The token for the server; null or omitted if there is nothing to send. */
  readonly token?: Uint8Array | null
  /** True if the server has proved to be the target. */
  readonly done: boolean
  readonly state?: unknown
}

type Step = (request: StepRequest) => StepAnswer | Promise<StepAnswer>

/** Loads the module. Rejects with `KerberosSetupError`. */
export async function openModule(path: string | null, provider: string): Promise<GssProvider> {
  if (path === null) {
    throw new KerberosSetupError(
      `gss_provider=${provider} needs gss_module, the ES module that creates the tokens.`,
      'Set gss_module under [gateway] to a file that exports a function step.',
    )
  }
  let loaded: { readonly step?: unknown }
  try {
    loaded = (await import(pathToFileURL(path).href)) as { readonly step?: unknown }
  } catch (error) {
    throw new KerberosSetupError(
      `gss_module=${path} cannot be loaded: ${(error as Error).message}`,
      'It must be an ES module (.mjs, or .js with "type": "module" in package.json) without a build step.',
      error,
    )
  }
  if (typeof loaded.step !== 'function') {
    throw new KerberosSetupError(
      `gss_module=${path} exports no function step; it exports ${Object.keys(loaded).join(', ') || 'nothing'}.`,
      'Write: export async function step({ target, method, token, state, signal }) { ' +
        '… return { token, done, state } }',
    )
  }
  return createFromStep(loaded.step as Step)
}

/** A provider of tokens from the module's `step`. */
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

/** The module may have been written without a type checker. */
function checkAnswer({ token, done }: StepAnswer): GssStep {
  if (typeof done !== 'boolean') {
    throw new GssError('step of gss_module returned no done; expected { token, done, state }', false)
  }
  if (token === undefined || token === null) return { token: null, done }
  if (!(token instanceof Uint8Array)) {
    throw new GssError(
      `step of gss_module returned a token of type ${typeof token}; expected a Uint8Array or null`,
      false,
    )
  }
  return { token: Buffer.from(token), done }
}

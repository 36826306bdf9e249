/** The state of a request that a screen shows. */
import { useEffect, useState } from 'preact/hooks'
import { ApiError } from './api.ts'
import { SignInError } from './oidc.ts'
import { TEXTS } from './texts.ts'

export type Loaded<T> =
  | { readonly kind: 'loading' }
  | { readonly kind: 'failed'; readonly error: unknown }
  | { readonly kind: 'done'; readonly value: T }

/**
 * Runs `ask` when the key changes. The previous request is aborted, so a late response never replaces a
 * newer one.
 */
export function useRequest<T>(ask: (signal: AbortSignal) => Promise<T>, key: string): readonly [Loaded<T>, () => void] {
  const [round, setRound] = useState(0)
  const [settled, setSettled] = useState<Settled<T> | null>(null)
  const asked = `${round} ${key}`
  // biome-ignore lint/correctness/useExhaustiveDependencies: the key stands for the request.
  useEffect(() => {
    const aborter = new AbortController()
    const settle = (state: Loaded<T>): void => {
      if (!aborter.signal.aborted) setSettled({ asked, state })
    }
    ask(aborter.signal).then(
      value => settle({ kind: 'done', value }),
      (error: unknown) => settle({ kind: 'failed', error }),
    )
    return () => aborter.abort()
  }, [asked])
  // The rows of another request are never shown as those of this one.
  const state: Loaded<T> = settled?.asked === asked ? settled.state : { kind: 'loading' }
  return [state, () => setRound(round + 1)]
}

interface Settled<T> {
  readonly asked: string
  readonly state: Loaded<T>
}

/** The message of an error, with the hint of the gateway if there is one. */
export function messageOf(error: unknown): string {
  if (error instanceof SignInError) return error.message
  if (!(error instanceof ApiError)) return TEXTS.unreachable
  return error.hint === null ? error.message : `${error.message} ${error.hint}`
}

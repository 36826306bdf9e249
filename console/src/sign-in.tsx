/** Sign-in: an identity provider, a pasted token, a caller of the demo, or no token if none is required. */
import { useEffect, useState } from 'preact/hooks'
import { BASE, type Session } from './api.ts'
import { beginSignIn, SignInError, type SignInProvider } from './oidc.ts'
import { type FrontState, keepPending, keptPending, readFrontState } from './session.ts'
import { TEXTS } from './texts.ts'
import { messageOf, useRequest } from './use-request.ts'

interface SignInProps {
  /** Why the last token was not accepted. */
  readonly refusal: unknown
  readonly signIn: (session: Session) => void
}

export function SignIn({ refusal, signIn }: SignInProps) {
  const [front] = useRequest(readFrontState, '')
  const [token, setToken] = useState('')
  const [failure, setFailure] = useState<unknown>(null)
  const { callers, requiresToken, provider }: FrontState =
    front.kind === 'done' ? front.value : { callers: [], requiresToken: true }
  // A provider that does not know the address of the console shows its own page, without a way back.
  const [left, setLeft] = useState(keptPending)
  useEffect(() => {
    const comeBack = (): void => setLeft(keptPending())
    addEventListener('pageshow', comeBack)
    return () => removeEventListener('pageshow', comeBack)
  }, [])
  const problem =
    failure ?? refusal ?? (left === null ? null : new SignInError(TEXTS.provider.interrupted(left.redirectUri)))
  const submit = (event: Event): void => {
    event.preventDefault()
    const text = token.trim()
    if (text !== '') signIn({ token: text })
  }
  return (
    <section class="card sign-in" aria-labelledby="sign-in">
      <h2 id="sign-in">{TEXTS.signIn.title}</h2>
      <p>{TEXTS.signIn.lead}</p>
      {problem === null ? null : (
        <p class="bad" role="alert">
          {messageOf(problem)}
        </p>
      )}
      {provider === undefined ? null : (
        <p>
          <button type="button" class="main" onClick={() => void leaveFor(provider).catch(setFailure)}>
            {TEXTS.signIn.with(new URL(provider.issuer).host)}
          </button>
        </p>
      )}
      {callers.length === 0 ? null : (
        <fieldset class="choices">
          <legend>{TEXTS.signIn.callers}</legend>
          {callers.map(caller => (
            <button key={caller.title} type="button" onClick={() => signIn({ token: caller.token })}>
              {TEXTS.signIn.enter(caller.title)}
            </button>
          ))}
        </fieldset>
      )}
      <form onSubmit={submit}>
        <label for="token">{TEXTS.signIn.token}</label>
        <input
          id="token"
          type="password"
          autocomplete="off"
          spellcheck={false}
          value={token}
          onInput={event => setToken(event.currentTarget.value)}
        />
        <button type="submit">{TEXTS.signIn.submit}</button>
      </form>
      <p class="muted">{TEXTS.signIn.kept}</p>
      {requiresToken ? null : (
        <p>
          <button type="button" onClick={() => signIn({ token: null })}>
            {TEXTS.signIn.withoutToken}
          </button>
        </p>
      )}
    </section>
  )
}

/** Opens the page of the provider, which sends the browser back to the console. */
async function leaveFor(provider: SignInProvider): Promise<void> {
  const redirectUri = new URL('console', BASE).href
  const { pending, address } = await beginSignIn(provider, { redirectUri, screen: location.hash })
  keepPending(pending)
  location.assign(address)
}

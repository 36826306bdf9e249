/** Sign-in: a pasted token, a caller of the demo, or no token where the gateway requires none. */
import { useState } from 'preact/hooks'
import type { Session } from './api.ts'
import { readFrontState } from './session.ts'
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
  const { callers, requiresToken } = front.kind === 'done' ? front.value : { callers: [], requiresToken: true }
  const submit = (event: Event): void => {
    event.preventDefault()
    const text = token.trim()
    if (text !== '') signIn({ token: text })
  }
  return (
    <section class="card sign-in" aria-labelledby="sign-in">
      <h2 id="sign-in">{TEXTS.signIn.title}</h2>
      <p>{TEXTS.signIn.lead}</p>
      {refusal === null ? null : (
        <p class="bad" role="alert">
          {messageOf(refusal)}
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

/**
 * The admin token, which the operator's screens need in place of a caller's token. It is kept for the tab,
 * and is sent with the requests of these screens only.
 */
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { ApiError, type Session } from '../api.ts'
import { TEXTS } from '../texts.ts'
import { messageOf } from '../use-request.ts'

const KEY = 'svc-admin-token'

/** Removes the token from the tab. */
export function forgetAdmin(): void {
  sessionStorage.removeItem(KEY)
}

interface AdminProps {
  readonly title: string
  readonly lead: string
  readonly children: (session: Session, refuse: (error: unknown) => void) => ComponentChildren
}

const T = TEXTS.admin

/** Asks for the token, then shows the screen. `refuse` asks again if an error says that it is wrong. */
export function Admin({ title, lead, children }: AdminProps) {
  const [token, setToken] = useState(() => sessionStorage.getItem(KEY))
  const [refusal, setRefusal] = useState<unknown>(null)
  const enter = (entered: string): void => {
    sessionStorage.setItem(KEY, entered)
    setRefusal(null)
    setToken(entered)
  }
  const forget = (): void => {
    forgetAdmin()
    setToken(null)
  }
  const refuse = (error: unknown): void => {
    if (!(error instanceof ApiError) || error.status !== 401) return
    setRefusal(error)
    forget()
  }
  return (
    <div class="operator">
      <section class="card" aria-labelledby="operator">
        <h2 id="operator">{title}</h2>
        <p>{lead}</p>
        {token === null ? (
          <TokenForm refusal={refusal} enter={enter} />
        ) : (
          <p>
            <button type="button" onClick={forget}>
              {T.forget}
            </button>
          </p>
        )}
      </section>
      {token === null ? null : children({ token }, refuse)}
    </div>
  )
}

function TokenForm({ refusal, enter }: { readonly refusal: unknown; readonly enter: (token: string) => void }) {
  const [text, setText] = useState('')
  const submit = (event: Event): void => {
    event.preventDefault()
    if (text.trim() !== '') enter(text.trim())
  }
  return (
    <form onSubmit={submit}>
      <label class="grows" for="admin-token">
        {T.token}
        <input
          id="admin-token"
          type="password"
          autocomplete="off"
          spellcheck={false}
          value={text}
          onInput={event => setText(event.currentTarget.value)}
        />
      </label>
      <button type="submit">{T.submit}</button>
      <p class="muted">{T.note}</p>
      {refusal === null ? null : (
        <p role="alert" class="bad">
          {messageOf(refusal)}
        </p>
      )}
    </form>
  )
}

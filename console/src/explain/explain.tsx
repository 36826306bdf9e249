/** The screen *Explain*: a read on its way through the gateway, and why a row is visible or not. */
import { useState } from 'preact/hooks'
import { BASE, type Session } from '../api.ts'
import { Problem } from '../problem.tsx'
import { RequestSnippets } from '../request-snippets.tsx'
import { printRoute } from '../route.ts'
import { TEXTS } from '../texts.ts'
import { useRequest } from '../use-request.ts'
import { Stages } from './stages.tsx'
import { readTrace, TRACE_PATH } from './trace.ts'
import { traceBodyOf } from './traced-request.ts'

interface ExplainProps {
  readonly session: Session
  /** The request in the address; null without one. */
  readonly initial: string | null
}

export function Explain({ session, initial }: ExplainProps) {
  const [text, setText] = useState(initial ?? '')
  const submit = (event: Event): void => {
    event.preventDefault()
    if (text.trim() !== '') location.hash = printRoute('explain', null, new URLSearchParams({ request: text.trim() }))
  }
  return (
    <div class="explain">
      <section class="card" aria-labelledby="explain">
        <h2 id="explain">{TEXTS.explain.title}</h2>
        <p>{TEXTS.explain.lead}</p>
        <form class="stacked" onSubmit={submit}>
          <label for="traced">{TEXTS.explain.request}</label>
          <textarea
            id="traced"
            rows={3}
            spellcheck={false}
            value={text}
            onInput={event => setText(event.currentTarget.value)}
          />
          <p class="muted">{TEXTS.explain.forms}</p>
          <button type="submit">{TEXTS.explain.submit}</button>
        </form>
      </section>
      {initial === null ? null : <Traced key={initial} session={session} text={initial} />}
    </div>
  )
}

function Traced({ session, text }: { readonly session: Session; readonly text: string }) {
  const body = traceBodyOf(text, BASE)
  const [trace, again] = useRequest(signal => readTrace(session, body, signal), text)
  return (
    <>
      {trace.kind === 'loading' ? <p role="status">{TEXTS.loading}</p> : null}
      {trace.kind === 'failed' ? <Problem error={trace.error} again={again} /> : null}
      {trace.kind === 'done' ? <Stages trace={trace.value} again={again} /> : null}
      <RequestSnippets path={TRACE_PATH} method="POST" body={JSON.stringify(body)} />
    </>
  )
}

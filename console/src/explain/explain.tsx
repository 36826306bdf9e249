/** The screen *Explain*: a request or a batch on its way through the gateway, and why a row is visible. */
import { useState } from 'preact/hooks'
import { BASE, type Session } from '../api.ts'
import { printJson } from '../json.ts'
import { Problem } from '../problem.tsx'
import { RequestSnippets } from '../request-snippets.tsx'
import { printRoute } from '../route.ts'
import { TEXTS } from '../texts.ts'
import { useRequest } from '../use-request.ts'
import { batchOf } from './batch.ts'
import { BatchView } from './batch-view.tsx'
import { inspectBodyOf, inspectHeadersOf, pastedRequest } from './inspected-request.ts'
import { INSPECT_PATH, readInspection } from './inspection.ts'
import { Stages } from './stages.tsx'

interface ExplainProps {
  readonly session: Session
  /** The request in the address; null without one. */
  readonly initial: string | null
}

export function Explain({ session, initial }: ExplainProps) {
  const [text, setText] = useState(initial ?? '')
  const batch = initial === null ? null : batchOf(pastedRequest(initial, BASE))
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
          <label for="inspected">{TEXTS.explain.request}</label>
          <textarea
            id="inspected"
            rows={3}
            spellcheck={false}
            value={text}
            onInput={event => setText(event.currentTarget.value)}
          />
          <p class="muted">{TEXTS.explain.forms}</p>
          <button type="submit">{TEXTS.explain.submit}</button>
        </form>
      </section>
      {initial === null ? null : batch === null ? (
        <Inspected key={initial} session={session} text={initial} />
      ) : (
        <BatchView key={initial} session={session} batch={batch} />
      )}
    </div>
  )
}

function Inspected({ session, text }: { readonly session: Session; readonly text: string }) {
  const body = inspectBodyOf(text, BASE)
  const headers = inspectHeadersOf(text, BASE)
  const [runs, setRuns] = useState(false)
  const sent = runs ? { ...body, run: true as const } : body
  const [inspection, again] = useRequest(signal => readInspection(session, sent, headers, signal), `${runs} ${text}`)
  return (
    <>
      {inspection.kind === 'loading' ? <p role="status">{TEXTS.loading}</p> : null}
      {inspection.kind === 'failed' ? <Problem error={inspection.error} again={again} /> : null}
      {inspection.kind === 'done' ? (
        <Stages inspection={inspection.value} again={again} run={() => setRuns(true)} />
      ) : null}
      <RequestSnippets path={INSPECT_PATH} method="POST" body={printJson(sent)} headers={headers} />
    </>
  )
}

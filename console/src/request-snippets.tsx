/** The request of a screen, to send from elsewhere. None of the texts contains the token. */
import { useState } from 'preact/hooks'
import { BASE } from './api.ts'
import { printRoute } from './route.ts'
import { snippetsOf } from './snippets.ts'
import { TEXTS } from './texts.ts'

interface RequestSnippetsProps {
  /** Relative to the gateway's base URL. */
  readonly path: string
  readonly method?: 'GET' | 'POST'
  readonly body?: string | null
  readonly headers?: Readonly<Record<string, string>>
  /** The request as the screen *Explain* takes it; null if it cannot be explained. */
  readonly inspected?: string | null
  /** The path of a list that has the same rows; null if there is none. */
  readonly rest?: string | null
}

export function RequestSnippets({
  path,
  method = 'GET',
  body = null,
  headers = {},
  inspected = null,
  rest = null,
}: RequestSnippetsProps) {
  const [copied, setCopied] = useState<string | null>(null)
  const copy = (name: string, text: string): void => {
    navigator.clipboard?.writeText(text).then(
      () => setCopied(name),
      () => setCopied(null),
    )
  }
  return (
    <details class="card">
      <summary>{TEXTS.request.title}</summary>
      {inspected === null ? null : (
        <p>
          <a href={printRoute('explain', null, new URLSearchParams({ request: inspected }))}>{TEXTS.explainThis}</a>
        </p>
      )}
      {rest === null ? null : (
        <p>
          {TEXTS.request.rest} <code>{`GET ${new URL(rest, BASE).href.slice(BASE.origin.length)}`}</code>
        </p>
      )}
      {snippetsOf({ url: new URL(path, BASE).href, method, body, headers }).map(({ name, text }) => (
        <div key={name} class="snippet">
          <h3>{name}</h3>
          <button type="button" onClick={() => copy(name, text)} aria-label={`${TEXTS.request.copy} ${name}`}>
            {TEXTS.request.copy}
          </button>
          <span role="status">{copied === name ? TEXTS.request.copied : ''}</span>
          <pre>
            <code>{text}</code>
          </pre>
        </div>
      ))}
    </details>
  )
}

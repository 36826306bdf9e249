/** The screen *Query*: a text of the query language, its parameters, and the rows that it returns. */
import { useState } from 'preact/hooks'
import { format, LanguageError } from '../../../src/language/index.ts'
import { member, type Session, send } from '../api.ts'
import { cellText } from '../cell.ts'
import { DataTable } from '../data-table.tsx'
import { type Json, parseJson, printJson, type Row } from '../json.ts'
import { isKey, isReplay, KeyField, keyHeader } from '../key-field.tsx'
import { RequestSnippets } from '../request-snippets.tsx'
import { printRoute } from '../route.ts'
import type { Schema } from '../schema.ts'
import { TEXTS } from '../texts.ts'
import { messageOf } from '../use-request.ts'
import { Editor } from './editor.tsx'
import { keepQuery, sentQueries } from './history.ts'
import { restPathOf } from './rest-path.ts'
import { sqlOf } from './statement.ts'

/** Limit on the rows that are shown; the response can have `max_result_rows`. */
const ROWS_SHOWN_MAX = 500

const PATH = 'api/_query'

interface QueryProps {
  readonly session: Session
  readonly schema: Schema
  /** The text in the address. */
  readonly initial: string | null
}

type Outcome =
  | { readonly kind: 'none' | 'running' }
  | { readonly kind: 'failed'; readonly message: string }
  | { readonly kind: 'done'; readonly rows: readonly Row[]; readonly ms: number; readonly isReplayed: boolean }

export function Query({ session, schema, initial }: QueryProps) {
  const [text, setText] = useState(initial ?? sentQueries()[0] ?? firstQuery(schema))
  const [parameters, setParameters] = useState('')
  const [key, setKey] = useState('')
  const [outcome, setOutcome] = useState<Outcome>({ kind: 'none' })
  const [sent, setSent] = useState(sentQueries)
  const body = bodyOf(text, parameters)
  const run = async (): Promise<void> => {
    if (outcome.kind === 'running') return
    if (body === null) {
      setOutcome({ kind: 'failed', message: TEXTS.query.invalidParameters })
      return
    }
    if (!isKey(key)) {
      setOutcome({ kind: 'failed', message: TEXTS.key.invalid })
      return
    }
    setOutcome({ kind: 'running' })
    keepQuery(text)
    setSent(sentQueries())
    history.replaceState(null, '', printRoute('query', null, new URLSearchParams({ query: text })))
    const started = performance.now()
    try {
      const reply = await send(session, PATH, { method: 'POST', headers: keyHeader(key), body })
      const data = member(reply.body, 'data')
      const rows = Array.isArray(data) ? (data as readonly Row[]) : []
      const ms = Math.round(performance.now() - started)
      setOutcome({ kind: 'done', rows, ms, isReplayed: isReplay(reply.headers) })
    } catch (error) {
      setOutcome({ kind: 'failed', message: messageOf(error) })
    }
  }
  const tidy = (): void => {
    try {
      setText(format(text))
    } catch (error) {
      if (!(error instanceof LanguageError)) throw error
      setOutcome({ kind: 'failed', message: error.message })
    }
  }
  const sql = sqlOf(text)
  return (
    <div class="query">
      <section class="card" aria-labelledby="query">
        <h2 id="query">{TEXTS.screen.query}</h2>
        <Editor text={text} schema={schema} change={setText} run={run} />
        <label>
          {TEXTS.query.parameters}
          <textarea
            rows={2}
            spellcheck={false}
            value={parameters}
            onInput={event => setParameters(event.currentTarget.value)}
          />
        </label>
        <KeyField value={key} change={setKey} />
        <div class="pages">
          <button type="button" class="main" disabled={outcome.kind === 'running'} onClick={run}>
            {TEXTS.query.run}
          </button>
          <button type="button" onClick={tidy}>
            {TEXTS.query.format}
          </button>
          <span class="muted">{TEXTS.query.keys}</span>
        </div>
      </section>
      {outcome.kind === 'running' ? <p role="status">{TEXTS.loading}</p> : null}
      {outcome.kind === 'failed' ? (
        <pre class="card bad" role="alert">
          {outcome.message}
        </pre>
      ) : null}
      {outcome.kind === 'done' && outcome.isReplayed ? <p role="status">{TEXTS.key.replayed}</p> : null}
      {outcome.kind === 'done' ? <Results rows={outcome.rows} ms={outcome.ms} /> : null}
      {sql === null ? null : (
        <details class="card">
          <summary>{TEXTS.query.sql}</summary>
          <p class="muted">{TEXTS.query.sqlNote}</p>
          <pre>{sql}</pre>
        </details>
      )}
      {body === null ? null : (
        <RequestSnippets
          path={PATH}
          method="POST"
          body={body}
          headers={keyHeader(key)}
          rest={restPathOf(text, parameters.trim() === '' ? null : parseJson(parameters), schema)}
          inspected={inspectedOf(text, parameters)}
        />
      )}
      {sent.length === 0 ? null : (
        <details class="card">
          <summary>{TEXTS.query.history}</summary>
          <ul class="history">
            {sent.map(one => (
              <li key={one}>
                <button type="button" onClick={() => setText(one)}>
                  {one}
                </button>
              </li>
            ))}
          </ul>
        </details>
      )}
    </div>
  )
}

/** The text that the editor shows first. */
function firstQuery(schema: Schema): string {
  const [name] = [...schema.keys()].filter(one => /^[a-z_]+$/.test(one))
  return name === undefined ? '' : `get ${name}\nlimit 10`
}

/** The JSON of the request; null if the parameters are not an object or an array. */
function bodyOf(text: string, parameters: string): string | null {
  const query = JSON.stringify(text)
  if (parameters.trim() === '') return `{"query": ${query}}`
  try {
    const value: unknown = JSON.parse(parameters)
    // The text is sent as it is, so numbers keep their digits.
    return value !== null && typeof value === 'object' ? `{"query": ${query}, "parameters": ${parameters}}` : null
  } catch {
    return null
  }
}

/** A query without parameters is explained as its text, with parameters as the request. */
function inspectedOf(text: string, parameters: string): string {
  const body = bodyOf(text, parameters)
  return parameters.trim() === '' || body === null ? text : `POST /api/_query\n\n${body}`
}

function Results({ rows, ms }: { readonly rows: readonly Row[]; readonly ms: number }) {
  const shown = rows.slice(0, ROWS_SHOWN_MAX)
  const columns = [...new Set(shown.flatMap(row => Object.keys(row)))]
  return (
    <>
      <p role="status">{TEXTS.query.result(rows.length, ms, shown.length)}</p>
      {columns.length === 0 ? null : (
        <DataTable label={TEXTS.query.rows} columns={columns}>
          {shown.map((row, index) => (
            <tr key={printJson(index)}>
              {columns.map(column => (
                <Value key={column} value={row[column] ?? null} />
              ))}
            </tr>
          ))}
        </DataTable>
      )}
    </>
  )
}

function Value({ value }: { readonly value: Json }) {
  return value === null ? <td class="null">{TEXTS.row.null}</td> : <td>{cellText(value)}</td>
}

/** A pasted batch: each operation explained on its own, and its response once the batch is sent. */
import { useState } from 'preact/hooks'
import { ApiError, BASE, type Session } from '../api.ts'
import { DataTable } from '../data-table.tsx'
import { printJson } from '../json.ts'
import { isKey, KeyField, keyHeader } from '../key-field.tsx'
import { Problem } from '../problem.tsx'
import { RequestSnippets } from '../request-snippets.tsx'
import { printRoute } from '../route.ts'
import { TEXTS } from '../texts.ts'
import { type Loaded, messageOf, useRequest } from '../use-request.ts'
import {
  type Batch,
  type BatchReply,
  type ExplainedOperation,
  explainOperations,
  failedOperation,
  sendBatch,
} from './batch.ts'

const T = TEXTS.batch

interface BatchViewProps {
  readonly session: Session
  readonly batch: Batch
}

type Sent = Loaded<BatchReply> | { readonly kind: 'none' }

export function BatchView({ session, batch }: BatchViewProps) {
  const { operations, text } = batch
  const [key, setKey] = useState(batch.key)
  const [sent, setSent] = useState<Sent>({ kind: 'none' })
  const [explained, again] = useRequest(signal => explainOperations(session, batch, BASE, signal), text)
  const execute = (): void => {
    setSent({ kind: 'loading' })
    sendBatch(session, { text, key }).then(
      value => setSent({ kind: 'done', value }),
      (error: unknown) => setSent({ kind: 'failed', error }),
    )
  }
  return (
    <>
      <section class="card" aria-labelledby="batch">
        <h2 id="batch">{T.title(operations.length)}</h2>
        <p>{batch.isAtomic ? T.atomic : T.separate}</p>
        {explained.kind === 'loading' ? <p role="status">{TEXTS.loading}</p> : null}
        {explained.kind === 'failed' ? <Problem error={explained.error} again={again} /> : null}
        <DataTable label={T.operations} columns={T.columns}>
          {operations.map(operation => (
            <tr key={operation.position}>
              <td>{operation.position}</td>
              <td>{operation.title}</td>
              <td>
                <Explained
                  {...operation}
                  outcome={explained.kind === 'done' ? (explained.value[operation.position] ?? null) : null}
                />
              </td>
              <td>
                <Response sent={sent} index={operation.position} isAtomic={batch.isAtomic} />
              </td>
            </tr>
          ))}
        </DataTable>
        <KeyField value={key} change={setKey} />
        {isKey(key) ? null : <p class="bad">{TEXTS.key.invalid}</p>}
        <div class="pages">
          <button type="button" onClick={execute} disabled={sent.kind === 'loading' || !isKey(key)}>
            {T.send}
          </button>
          <span class="muted">{T.sends}</span>
        </div>
        {sent.kind === 'done' ? <p role="status">{sent.value.isReplayed ? TEXTS.key.replayed : T.done}</p> : null}
        {sent.kind === 'failed' ? (
          <p role="alert" class="bad">
            {messageOf(sent.error)}
          </p>
        ) : null}
      </section>
      <RequestSnippets path="api/_batch" method="POST" body={text} headers={keyHeader(key)} />
    </>
  )
}

interface ExplainedProps {
  readonly request: string
  readonly hasReference: boolean
  readonly outcome: ExplainedOperation
}

function Explained({ request, hasReference, outcome }: ExplainedProps) {
  if (hasReference) return <span class="muted">{T.refers}</span>
  const link = <a href={printRoute('explain', null, new URLSearchParams({ request }))}>{TEXTS.explain.submit}</a>
  if (outcome === null) return link
  const { failure, rows, changes } = outcome
  return (
    <>
      <span class={failure === null ? undefined : 'bad'}>
        {failure !== null ? `${failure.status} ${failure.code}` : changes === 'planned' ? T.planned : T.rows(rows ?? 0)}
      </span>{' '}
      {link}
    </>
  )
}

interface ResponseProps {
  readonly sent: Sent
  readonly index: number
  readonly isAtomic: boolean
}

function Response({ sent, index, isAtomic }: ResponseProps) {
  if (sent.kind === 'failed' && isAtomic) {
    const failed = failedOperation(sent.error)
    if (failed === null) return null
    if (failed !== index) return <span class="muted">{T.rolledBack}</span>
    return <span class="bad">{sent.error instanceof ApiError ? sent.error.status : null}</span>
  }
  if (sent.kind !== 'done') return null
  const result = sent.value.results[index]
  if (result === undefined) return null
  const status = <span class={result.status < 400 ? undefined : 'bad'}>{result.status}</span>
  if (result.body === null) return status
  return (
    <details>
      <summary>{status}</summary>
      <pre>{printJson(result.body, 2)}</pre>
    </details>
  )
}

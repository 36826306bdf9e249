/** Export of all rows of the current filter as CSV, and import of a file. Both can be cancelled. */
import { useEffect, useRef, useState } from 'preact/hooks'
import type { Session } from '../api.ts'
import { DataTable } from '../data-table.tsx'
import { TEXTS } from '../texts.ts'
import { messageOf } from '../use-request.ts'
import { download, exportRows } from './export.ts'
import { type FailedRow, importRows } from './upload.ts'

interface TransferProps {
  readonly session: Session
  readonly name: string
  readonly query: URLSearchParams
  /** Called when rows were imported. */
  readonly onImport: () => void
}

type Phase =
  | { readonly kind: 'none' }
  | { readonly kind: 'running'; readonly text: string; readonly share: number | null; readonly cancel: () => void }
  | { readonly kind: 'done'; readonly text: string; readonly failed: readonly FailedRow[] }
  | { readonly kind: 'failed'; readonly text: string }

const NONE: Phase = { kind: 'none' }

export function Transfer({ session, name, query, onImport }: TransferProps) {
  const [phase, setPhase] = useState<Phase>(NONE)
  const running = useRef<AbortController | null>(null)
  // Another table or caller: the request must not continue unseen.
  useEffect(() => () => running.current?.abort(), [])

  function start(
    task: (signal: AbortSignal, show: (text: string, share: number | null) => void) => Promise<Phase>,
  ): void {
    const aborter = new AbortController()
    running.current = aborter
    const isCurrent = () => running.current === aborter && !aborter.signal.aborted
    const cancel = (): void => {
      aborter.abort()
      setPhase({ kind: 'done', text: TEXTS.transfer.cancelled, failed: [] })
    }
    const show = (text: string, share: number | null): void => {
      if (isCurrent()) setPhase({ kind: 'running', text, share, cancel })
    }
    task(aborter.signal, show)
      .catch((error: unknown): Phase => ({ kind: 'failed', text: messageOf(error) }))
      .then(next => {
        if (isCurrent()) setPhase(next)
      })
  }

  const save = (): void =>
    start(async (signal, show) => {
      const onRows = (rows: number) => show(TEXTS.transfer.exporting(rows), null)
      onRows(0)
      const { file, rows } = await exportRows(session, { name, query, signal, onRows })
      download(file, name)
      return { kind: 'done', text: TEXTS.transfer.exported(rows), failed: [] }
    })
  const load = (file: File, skipFailing: boolean): void =>
    start(async (signal, show) => {
      const onShare = (share: number) => show(TEXTS.transfer.importing(file.name), share)
      onShare(0)
      const { count, failed } = await importRows(session, { name, file, skipFailing, signal, onShare })
      if (count > 0) onImport()
      return { kind: 'done', text: TEXTS.transfer.imported(count, failed.length), failed }
    })

  const isRunning = phase.kind === 'running'
  return (
    <details>
      <summary>{TEXTS.transfer.title}</summary>
      <div class="transfer">
        <button type="button" disabled={isRunning} onClick={save}>
          {TEXTS.transfer.export}
        </button>
        <ImportForm isRunning={isRunning} load={load} />
        {isRunning ? (
          <div class="row-foot">
            <label class="choice">
              {phase.text}
              <progress value={phase.share ?? undefined} max={1} />
            </label>
            <button type="button" onClick={phase.cancel}>
              {TEXTS.transfer.cancel}
            </button>
          </div>
        ) : null}
        <p role="status">{phase.kind === 'done' ? phase.text : ''}</p>
        {phase.kind === 'failed' ? (
          <p role="alert" class="bad">
            {phase.text}
          </p>
        ) : null}
        {phase.kind === 'done' && phase.failed.length > 0 ? <FailedRows rows={phase.failed} /> : null}
      </div>
    </details>
  )
}

interface ImportFormProps {
  readonly isRunning: boolean
  readonly load: (file: File, skipFailing: boolean) => void
}

function ImportForm({ isRunning, load }: ImportFormProps) {
  const field = useRef<HTMLInputElement>(null)
  const [skipFailing, setSkipFailing] = useState(false)
  const submit = (event: Event): void => {
    event.preventDefault()
    const file = field.current?.files?.[0]
    if (file !== undefined) load(file, skipFailing)
  }
  return (
    <form onSubmit={submit}>
      <label class="grows">
        {TEXTS.transfer.file}
        <input ref={field} type="file" accept=".csv,text/csv" required disabled={isRunning} />
      </label>
      <label class="choice">
        <input
          type="checkbox"
          checked={skipFailing}
          disabled={isRunning}
          onChange={event => setSkipFailing(event.currentTarget.checked)}
        />
        {TEXTS.transfer.skipFailing}
      </label>
      <button type="submit" disabled={isRunning}>
        {TEXTS.transfer.import}
      </button>
    </form>
  )
}

function FailedRows({ rows }: { readonly rows: readonly FailedRow[] }) {
  return (
    <DataTable label={TEXTS.transfer.failedRows} columns={TEXTS.transfer.failedColumns} class="failed">
      {rows.map(({ line, column, message }) => (
        <tr key={line}>
          <td>{line}</td>
          <td>{column ?? ''}</td>
          <td>{message}</td>
        </tr>
      ))}
    </DataTable>
  )
}

/** One row: every column with its whole value, and a form that changes some of them. */
import { useEffect, useRef, useState } from 'preact/hooks'
import type { Session } from '../api.ts'
import type { Row } from '../json.ts'
import { Problem } from '../problem.tsx'
import type { Column, Table } from '../schema.ts'
import { TEXTS } from '../texts.ts'
import { messageOf, useRequest } from '../use-request.ts'
import { type Change, isWritable, jsonOf, textOf } from './edit.ts'
import { emptyOf, Field } from './field.tsx'
import { isConflict, pathOfRow, readVersion, sendChanges, type Version } from './row-version.ts'

interface RowEditorProps {
  readonly session: Session
  readonly name: string
  readonly table: Table
  /** Percent-encoded. */
  readonly id: string
  readonly close: (isChanged: boolean) => void
}

export function RowEditor({ session, name, table, id, close }: RowEditorProps) {
  const dialog = useRef<HTMLDialogElement>(null)
  const [isChanged, setChanged] = useState(false)
  const path = pathOfRow(name, id)
  const [loaded, load] = useRequest<Version>(signal => readVersion(session, path, signal), path)
  useEffect(() => dialog.current?.showModal(), [])
  return (
    <dialog ref={dialog} class="row" aria-labelledby="row" onClose={() => close(isChanged)}>
      <div class="row-head">
        <h2 id="row">{TEXTS.row.title(name, decodeURIComponent(id))}</h2>
        <button type="button" onClick={() => dialog.current?.close()}>
          {TEXTS.row.close}
        </button>
      </div>
      {loaded.kind === 'loading' ? <p role="status">{TEXTS.loading}</p> : null}
      {loaded.kind === 'failed' ? <Problem error={loaded.error} again={load} /> : null}
      {loaded.kind === 'done' ? (
        <Form
          session={session}
          path={path}
          table={table}
          loaded={loaded.value}
          load={load}
          saved={() => setChanged(true)}
        />
      ) : null}
    </dialog>
  )
}

interface FormProps {
  readonly session: Session
  readonly path: string
  readonly table: Table
  readonly loaded: Version
  readonly load: () => void
  readonly saved: () => void
}

/** The text of a field; null for NULL. */
type Texts = Readonly<Record<string, string | null>>

type Outcome =
  | { readonly kind: 'none' }
  | { readonly kind: 'said'; readonly text: string }
  | { readonly kind: 'failed'; readonly text: string; readonly isStale: boolean }

function Form({ session, path, table, loaded, load, saved }: FormProps) {
  const [version, setVersion] = useState(loaded)
  const [texts, setTexts] = useState<Texts>(() => textsOf(table, loaded.row))
  const [outcome, setOutcome] = useState<Outcome>({ kind: 'none' })
  const [isSaving, setSaving] = useState(false)
  const present = table.columns.filter(column => Object.hasOwn(version.row, column.name))

  async function save(): Promise<Outcome> {
    const before = textsOf(table, version.row)
    const changes: Change[] = []
    for (const column of present) {
      const [text, old] = [texts[column.name] ?? null, before[column.name] ?? null]
      if (!isWritable(column) || text === old) continue
      const after = jsonOf(column, text)
      if (after === null) return { kind: 'failed', text: TEXTS.row.invalid(column.name, column.type), isStale: false }
      changes.push({ column, before: jsonOf(column, old) ?? 'null', after })
    }
    if (changes.length === 0) return { kind: 'said', text: TEXTS.row.unchanged }
    const next = await sendChanges(session, path, version, changes)
    setVersion(next)
    setTexts(textsOf(table, next.row))
    saved()
    return { kind: 'said', text: TEXTS.row.saved }
  }

  const submit = (event: Event): void => {
    event.preventDefault()
    setSaving(true)
    save()
      .catch((error: unknown): Outcome => {
        const isStale = isConflict(error)
        return { kind: 'failed', text: isStale ? TEXTS.row.conflict : messageOf(error), isStale }
      })
      .then(next => {
        setOutcome(next)
        setSaving(false)
      })
  }
  return (
    <form onSubmit={submit}>
      {present.map(column => (
        <FieldOfColumn
          key={column.name}
          column={column}
          text={texts[column.name] ?? null}
          change={text => setTexts({ ...texts, [column.name]: text })}
        />
      ))}
      {version.tag === null ? <p class="muted">{TEXTS.row.unversioned}</p> : null}
      <div class="row-foot">
        <button type="submit" disabled={isSaving}>
          {TEXTS.row.save}
        </button>
        {outcome.kind === 'said' ? <p role="status">{outcome.text}</p> : null}
        {outcome.kind === 'failed' ? (
          <div role="alert" class="bad">
            <p>{outcome.text}</p>
            {outcome.isStale ? (
              <button type="button" onClick={load}>
                {TEXTS.row.reload}
              </button>
            ) : null}
          </div>
        ) : null}
      </div>
    </form>
  )
}

function textsOf(table: Table, row: Row): Texts {
  return Object.fromEntries(table.columns.map(column => [column.name, textOf(column, row[column.name] ?? null)]))
}

interface FieldOfColumnProps {
  readonly column: Column
  readonly text: string | null
  readonly change: (text: string | null) => void
}

function FieldOfColumn({ column, text, change }: FieldOfColumnProps) {
  const id = `column-${column.name}`
  const isLocked = !isWritable(column)
  const isNull = text === null
  return (
    <div class="field">
      <label for={id}>{column.name}</label>
      <span id={`${id}-type`} class="muted">
        {column.type}
      </span>
      {column.nullable && !isLocked ? (
        <label class="choice">
          <input
            type="checkbox"
            aria-label={TEXTS.row.nullOf(column.name)}
            checked={isNull}
            onChange={() => change(isNull ? emptyOf(column) : null)}
          />
          {TEXTS.row.null}
        </label>
      ) : null}
      <Field
        id={id}
        column={column}
        text={text}
        change={change}
        disabled={isLocked || isNull}
        aria-describedby={`${id}-type`}
      />
    </div>
  )
}

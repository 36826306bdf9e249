/**
 * One row: every column with its whole value, and a form that changes some of them. Only changed columns are
 * sent, and only if the row still has the version that the form shows (`If-Match`), or, without a version, if
 * the changed columns still have their values (JSON Patch).
 */
import { useEffect, useRef, useState } from 'preact/hooks'
import { ApiError, member, type Session, send } from '../api.ts'
import type { Json, Row } from '../json.ts'
import { Problem } from '../problem.tsx'
import type { Column, Table } from '../schema.ts'
import { TEXTS } from '../texts.ts'
import { messageOf, useRequest } from '../use-request.ts'
import { bodyOf, type Change, fieldOf, isWritable, jsonOf, patchOf, textOf } from './edit.ts'

interface RowEditorProps {
  readonly session: Session
  readonly name: string
  readonly table: Table
  /** Percent-encoded. */
  readonly id: string
  readonly close: (isChanged: boolean) => void
}

interface Version {
  readonly row: Row
  /** The strong entity tag of the row; null if it has none. */
  readonly tag: string | null
}

export function RowEditor({ session, name, table, id, close }: RowEditorProps) {
  const dialog = useRef<HTMLDialogElement>(null)
  const [isChanged, setChanged] = useState(false)
  const path = `api/${encodeURIComponent(name)}/${id}`
  const [loaded, load] = useRequest<Version>(async signal => {
    const { headers, body } = await send(session, path, { signal })
    return { row: member(body, 'data') as Json as Row, tag: strong(headers.get('etag')) }
  }, path)
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

function strong(tag: string | null): string | null {
  return tag?.startsWith('W/') === true ? null : tag
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
      const after = jsonOfField(column, text)
      if (after === null) return { kind: 'failed', text: TEXTS.row.invalid(column.name, column.type), isStale: false }
      changes.push({ column, before: jsonOfField(column, old) ?? 'null', after })
    }
    if (changes.length === 0) return { kind: 'said', text: TEXTS.row.unchanged }
    // Without a version, the values that were changed are compared.
    const patch = version.tag === null ? patchOf(changes) : null
    const headers = {
      'If-Match': version.tag ?? '*',
      ...(patch === null ? {} : { 'Content-Type': 'application/json-patch+json' }),
    }
    const body = patch ?? bodyOf(changes.map(({ column, after }) => [column.name, after]))
    const reply = await send(session, path, { method: 'PATCH', headers, body })
    const row = member(reply.body, 'data') as Json as Row
    setVersion({ row, tag: strong(reply.headers.get('etag')) })
    setTexts(textsOf(table, row))
    saved()
    return { kind: 'said', text: TEXTS.row.saved }
  }

  const submit = (event: Event): void => {
    event.preventDefault()
    setSaving(true)
    save()
      .catch((error: unknown): Outcome => {
        const isStale = error instanceof ApiError && (error.status === 412 || error.code === 'TEST_FAILED')
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

function jsonOfField(column: Column, text: string | null): string | null {
  return text === null ? 'null' : jsonOf(column, text)
}

function textsOf(table: Table, row: Row): Texts {
  return Object.fromEntries(
    table.columns.map(column => {
      const value = row[column.name] ?? null
      return [column.name, value === null ? null : textOf(column, value)]
    }),
  )
}

interface FieldProps {
  readonly column: Column
  readonly text: string | null
  readonly change: (text: string | null) => void
}

function FieldOfColumn({ column, text, change }: FieldProps) {
  const id = `column-${column.name}`
  const isLocked = !isWritable(column)
  const isNull = text === null
  const common = { id, disabled: isLocked || isNull, spellcheck: false, 'aria-describedby': `${id}-type` }
  const value = text ?? ''
  const follow = (event: { currentTarget: { value: string } }): void => change(event.currentTarget.value)
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
      {choicesOf(column) === null ? (
        fieldOf(column) === 'number' || fieldOf(column) === 'line' ? (
          <input {...common} value={value} onInput={follow} />
        ) : (
          <textarea {...common} rows={Math.min(8, value.split('\n').length)} value={value} onInput={follow} />
        )
      ) : (
        <select {...common} value={value} onChange={follow}>
          {choicesOf(column)?.map(choice => (
            <option key={choice} value={choice}>
              {choice}
            </option>
          ))}
        </select>
      )}
    </div>
  )
}

function choicesOf(column: Column): readonly string[] | null {
  if (fieldOf(column) === 'boolean') return ['true', 'false']
  return fieldOf(column) === 'choice' ? (column.enum ?? []) : null
}

function emptyOf(column: Column): string {
  if (fieldOf(column) === 'json') return 'null'
  return choicesOf(column)?.[0] ?? ''
}

/**
 * A cell of the grid while it is edited. The change is made only if the row is still the one that the grid
 * shows; otherwise the editor shows what another client has changed, and the user decides.
 */
import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { Session } from '../api.ts'
import { cellText } from '../cell.ts'
import type { Row } from '../json.ts'
import type { Column, Table } from '../schema.ts'
import { TEXTS } from '../texts.ts'
import { messageOf } from '../use-request.ts'
import { type Difference, differencesOf, jsonOf, textOf } from './edit.ts'
import { choicesOf, emptyOf, Field } from './field.tsx'
import { isConflict, readVersion, sendChanges, type Version } from './row-version.ts'

interface CellEditorProps {
  readonly session: Session
  /** The path of the row. */
  readonly path: string
  readonly table: Table
  readonly column: Column
  /** The row that the grid shows. */
  readonly shown: Row
  /**
   * Ends the editing. `row` is the row of the database if it was read or written, and `step` is the cell that
   * gets the focus, counted from this one.
   */
  readonly close: (row: Row | null, step: number) => void
}

type Phase =
  | { readonly kind: 'editing' }
  | { readonly kind: 'saving' }
  | { readonly kind: 'failed'; readonly text: string }
  | { readonly kind: 'conflict'; readonly version: Version; readonly differences: readonly Difference[] }

/** The row that the user has seen, whose version is read while they type. */
interface Seen {
  readonly row: Row
  readonly version: Promise<Version>
}

export function CellEditor({ session, path, table, column, shown, close }: CellEditorProps) {
  const form = useRef<HTMLFormElement>(null)
  const seen = useRef<Seen | null>(null)
  const [text, setText] = useState(() => textOf(column, shown[column.name] ?? null))
  const [phase, setPhase] = useState<Phase>({ kind: 'editing' })
  const id = `cell-${column.name}`
  const isChoice = choicesOf(column) !== null

  function look(row: Row): Seen {
    const version = readVersion(session, path)
    // It is awaited when the change is saved.
    version.catch(() => undefined)
    return { row, version }
  }
  // biome-ignore lint/correctness/useExhaustiveDependencies: the row as it was when the editor opened
  useLayoutEffect(() => {
    seen.current = look(shown)
    const field = form.current?.querySelector<HTMLInputElement>('input, textarea, select')
    field?.focus()
    if (!isChoice) field?.select()
  }, [])
  useLayoutEffect(() => {
    form.current?.scrollIntoView({ block: 'nearest', inline: 'nearest' })
    // The choice that a conflict requires gets the focus.
    if (phase.kind === 'conflict') form.current?.querySelector<HTMLButtonElement>('.conflict button')?.focus()
  }, [phase])

  /** Resolves to null when the editor has closed. */
  async function save(step: number): Promise<Phase | null> {
    const { row, version } = seen.current ?? look(shown)
    const before = textOf(column, row[column.name] ?? null)
    if (text === before) {
      close(row === shown ? null : row, step)
      return null
    }
    const after = jsonOf(column, text)
    if (after === null) return { kind: 'failed', text: TEXTS.row.invalid(column.name, column.type) }
    try {
      const held = await version
      const differences = differencesOf(table, row, held.row)
      // Without a version, only the changed column is compared.
      const isOwn = differences.some(one => one.column === column)
      if (held.tag === null ? isOwn : differences.length > 0) return { kind: 'conflict', version: held, differences }
      if (held.tag === null && column.type.endsWith('[]')) return { kind: 'failed', text: TEXTS.cell.unversioned }
      const change = { column, before: jsonOf(column, before) ?? 'null', after }
      const next = await sendChanges(session, path, held, [change])
      close(next.row, step)
      return null
    } catch (error) {
      if (!isConflict(error)) {
        // The next attempt reads the version again, in case that request has failed.
        seen.current = look(row)
        throw error
      }
      const current = await readVersion(session, path)
      return { kind: 'conflict', version: current, differences: differencesOf(table, row, current.row) }
    }
  }

  const submit = (step: number): void => {
    if (phase.kind === 'saving') return
    setPhase({ kind: 'saving' })
    save(step)
      .catch((error: unknown): Phase => ({ kind: 'failed', text: messageOf(error) }))
      .then(next => {
        if (next !== null) setPhase(next)
      })
  }
  /** Saves over the version that the user now knows. */
  const overwrite = (version: Version): void => {
    seen.current = { row: version.row, version: Promise.resolve(version) }
    form.current?.querySelector<HTMLInputElement>('input, textarea, select')?.focus()
    submit(0)
  }
  const toggleNull = (): void => setText(text === null ? emptyOf(column) : null)
  const press = (event: KeyboardEvent): void => {
    const isField = (event.target as Element).matches('input, textarea, select')
    const takes =
      event.key === 'Escape' ||
      (isField && (event.key === 'Tab' || (event.key === 'Enter' && !event.shiftKey))) ||
      (event.key === 'F2' && column.nullable)
    // Enter also ends the composition of a character.
    if (!takes || event.isComposing) return
    event.preventDefault()
    if (event.key === 'Escape') close(phase.kind === 'conflict' ? phase.version.row : null, 0)
    else if (event.key === 'F2') toggleNull()
    else submit(event.key === 'Enter' ? 0 : event.shiftKey ? -1 : 1)
  }
  return (
    <form
      ref={form}
      class="cell-editor"
      aria-busy={phase.kind === 'saving'}
      onKeyDown={press}
      onSubmit={event => {
        event.preventDefault()
        submit(0)
      }}
    >
      <Field
        id={id}
        column={column}
        text={text}
        change={setText}
        showsNull
        aria-label={`${column.name}, ${column.type}`}
        aria-describedby={`${id}-error`}
        aria-invalid={phase.kind === 'failed'}
      />
      <div class="row-foot">
        {column.nullable && !isChoice ? (
          <button type="button" aria-pressed={text === null} aria-keyshortcuts="F2" onClick={toggleNull}>
            {TEXTS.row.null}
          </button>
        ) : null}
        <button type="submit">{TEXTS.row.save}</button>
        <button type="button" onClick={() => close(null, 0)}>
          {TEXTS.cell.cancel}
        </button>
      </div>
      <div id={`${id}-error`} role="alert">
        {phase.kind === 'failed' ? <p class="bad">{phase.text}</p> : null}
        {phase.kind === 'conflict' ? (
          <Conflict
            column={column}
            differences={phase.differences}
            overwrite={() => overwrite(phase.version)}
            giveUp={() => close(phase.version.row, 0)}
          />
        ) : null}
      </div>
    </form>
  )
}

interface ConflictProps {
  readonly column: Column
  readonly differences: readonly Difference[]
  readonly overwrite: () => void
  readonly giveUp: () => void
}

/** Limit on the changed columns that a conflict lists; the edited one is first. */
const DIFFERENCES_MAX = 8

function Conflict({ column, differences, overwrite, giveUp }: ConflictProps) {
  const isOwn = differences.some(one => one.column.name === column.name)
  const sorted = differences.toSorted(
    (a, b) => Number(b.column.name === column.name) - Number(a.column.name === column.name),
  )
  return (
    <div class="conflict">
      <p class="bad">{TEXTS.cell.conflict}</p>
      <dl>
        {sorted.slice(0, DIFFERENCES_MAX).map(one => (
          <div key={one.column.name}>
            <dt>{one.column.name}</dt>
            <dd>
              <del>{one.before === null ? TEXTS.row.null : cellText(one.before)}</del>{' '}
              <ins>{one.after === null ? TEXTS.row.null : cellText(one.after)}</ins>
            </dd>
          </div>
        ))}
      </dl>
      {sorted.length > DIFFERENCES_MAX ? <p>{TEXTS.cell.more(sorted.length - DIFFERENCES_MAX)}</p> : null}
      {isOwn ? null : <p>{TEXTS.cell.unchanged(column.name)}</p>}
      <div class="row-foot">
        <button type="button" onClick={overwrite}>
          {TEXTS.cell.overwrite}
        </button>
        <button type="button" onClick={giveUp}>
          {isOwn ? TEXTS.cell.keep : TEXTS.cell.cancel}
        </button>
      </div>
    </div>
  )
}

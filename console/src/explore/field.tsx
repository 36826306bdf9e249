/** The control for a value of a column, by its type. A value is edited as text; null is NULL. */
import { useState } from 'preact/hooks'
import type { Column } from '../schema.ts'
import { TEXTS } from '../texts.ts'
import { fieldOf } from './edit.ts'

interface FieldProps {
  readonly id: string
  readonly column: Column
  readonly text: string | null
  readonly change: (text: string | null) => void
  readonly disabled?: boolean
  /** True if NULL is a choice of a list, and a hint in an empty field. */
  readonly showsNull?: boolean
  readonly 'aria-label'?: string
  readonly 'aria-describedby'?: string
  readonly 'aria-invalid'?: boolean
}

/** No label has this character, because PostgreSQL has no text with it. */
const NULL_CHOICE = '\u0000'

export function Field({ column, text, change, showsNull = false, ...attributes }: FieldProps) {
  const value = text ?? ''
  // Decided once, because a field that is replaced loses the focus. An <input> drops line breaks.
  const [isLine] = useState(() => ['number', 'line'].includes(fieldOf(column)) && !value.includes('\n'))
  const choices = choicesOf(column)
  const hint = showsNull && text === null ? { placeholder: TEXTS.row.null } : {}
  const common = { ...attributes, ...hint, spellcheck: false }
  const follow = (event: { currentTarget: { value: string } }): void => change(event.currentTarget.value)
  if (choices === null) {
    return isLine ? (
      <input {...common} value={value} onInput={follow} />
    ) : (
      <textarea {...common} rows={Math.min(8, value.split('\n').length)} value={value} onInput={follow} />
    )
  }
  return (
    <select
      {...attributes}
      value={text ?? (showsNull ? NULL_CHOICE : '')}
      onChange={({ currentTarget: { value: chosen } }) => change(chosen === NULL_CHOICE ? null : chosen)}
    >
      {showsNull && (column.nullable || text === null) ? <option value={NULL_CHOICE}>{TEXTS.row.null}</option> : null}
      {choices.map(choice => (
        <option key={choice} value={choice}>
          {choice}
        </option>
      ))}
    </select>
  )
}

/** The values among which the user chooses; null if there are more than a list can have. */
export function choicesOf(column: Column): readonly string[] | null {
  if (fieldOf(column) === 'boolean') return ['true', 'false']
  return fieldOf(column) === 'choice' ? (column.enum ?? []) : null
}

/** The text of a field that is no longer NULL. */
export function emptyOf(column: Column): string {
  if (fieldOf(column) === 'json') return 'null'
  return choicesOf(column)?.[0] ?? ''
}

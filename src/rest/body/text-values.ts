/** Rewrites bodies for tables and functions (rewriting.ts), in turns of the event loop if they are large. */
import type { Table } from '../../catalog/model.ts'
import type { StatementValue } from '../../compile/statement.ts'
import { nextTurn } from '../next-turn.ts'
import { BYTES_IN_A_TURN, Rewriting, type TextFormLimits } from './rewriting.ts'
import { type TextForms, textFormOf } from './text-forms.ts'

/** A value, or unfinished work on a value that is too large for one turn of the event loop. */
export type PendingValue = StatementValue | Rewriting

/**
 * Rewrites one row or an array of rows, which have been validated as JSON. Returns the same bytes if none of
 * the columns has a text form.
 */
export function withTextColumns(
  bytes: Buffer,
  table: Table,
  columns: readonly string[],
  limits: TextFormLimits | undefined,
): Buffer | Rewriting {
  const forms = formsOf(table)
  return forms.size > 0 && columns.some(name => forms.has(name)) ? withTextMembers(bytes, forms, limits) : bytes
}

const formsOfTables = new WeakMap<Table, TextForms>()

function formsOf(table: Table): TextForms {
  let forms = formsOfTables.get(table)
  if (forms === undefined) {
    forms = new Map(
      table.columns.flatMap(({ name, type }) => {
        const form = textFormOf(type)
        return form === null ? [] : [[name, form] as const]
      }),
    )
    formsOfTables.set(table, forms)
  }
  return forms
}

/** Rewrites these members of an object or of the objects in an array. */
export function withTextMembers(bytes: Buffer, forms: TextForms, limits?: TextFormLimits): Buffer | Rewriting {
  if (forms.size === 0) return bytes
  const rewriting = Rewriting.members(bytes, forms, limits)
  return rewriting.run(BYTES_IN_A_TURN) ? rewriting.bytes() : rewriting
}

/** Reports whether the value is unfinished. */
export function isPending(value: PendingValue): value is Rewriting {
  return value instanceof Rewriting
}

/** Finishes the work in several turns of the event loop. */
export async function finish(rewriting: Rewriting): Promise<void> {
  while (!rewriting.run(BYTES_IN_A_TURN)) await nextTurn()
}

/** Prints the outbox insert within a write, and the columns that the write must return for it. */

import type { Add, Del, Set as SetStatement } from '../tree/ast.ts'
import { type Scope, targetName } from '../tree/scope.ts'
import { type Images, NO_IMAGE, printImages } from './print-images.ts'
import { unusedName } from './print-rows.ts'
import { lifted, type Printer } from './printer.ts'
import { quoteIdentifier } from './quote.ts'
import type { RowsWritten, Storing } from './storing.ts'

/** The printed insert, and the columns that the common table of the write needs for it. */
export interface Stored {
  readonly name: string
  readonly columns: readonly string[]
  readonly statement: string
}

interface ToStore {
  readonly write: Add | SetStatement | Del
  /** Name of the write's common table. */
  readonly name: string
  readonly images: Images
  readonly storing: Storing
  /** The column that already holds the whole row; null if there is none. */
  readonly whole: string | null
  readonly scope: Scope
  readonly printer: Printer
}

/**
 * Prints an outbox insert. Each column adds to the cost of every write, so none is printed twice, and values
 * that are equal for all rows are not columns.
 */
export function printStored({ write, name, images, storing, whole, scope, printer }: ToStore): Stored {
  const columns: string[] = []
  let ticket: string | null = null
  const has = (sql: string, as: string): string => {
    columns.push(`${sql} AS ${as}`)
    return as
  }
  const target = targetName(write)
  const printed = printImages(write, images, scope, printer, 'json')
  const image = (as: 'after' | 'before'): string => {
    if (images[as] === 'none') return NO_IMAGE
    return images[as] === 'target' && whole !== null ? whole : has(printed[as], as)
  }
  const asked = new Map(
    storing.columns.map((column, index) => [
      column,
      has(`${quoteIdentifier(target)}.${quoteIdentifier(column)}`, `of${index + 1}`),
    ]),
  )
  const { happened } = images
  const rows: RowsWritten = {
    from: name,
    happened: typeof happened === 'string' ? { always: happened } : { column: has(printed.happened, 'happened') },
    ...{ after: image('after'), before: image('before') },
    ticket() {
      ticket ??= lifted(storing.ticket, 'text', printer)
      return ticket
    },
    column(of) {
      const found = asked.get(of)
      if (found === undefined) throw new Error(`the outbox insert did not request the column "${of}"`)
      return found
    },
  }
  return { name: unusedName({ write, name }), columns, statement: storing.statement(rows) }
}

/**
 * Whether the write returns exactly these columns of its target, in this order. If a column has the target's
 * name, its paths would be ambiguous.
 */
export function answersWhole(write: Add | SetStatement | Del, columns: readonly string[]): boolean {
  const fields = write.returning ?? []
  const target = targetName(write)
  if (fields.length !== columns.length || columns.includes(target)) return false
  return fields.every((item, index) => {
    if (item.kind !== 'field' || item.alias !== null || item.expression.kind !== 'column') return false
    const { path } = item.expression
    const [first, second] = path
    return path.length === 1
      ? first === columns[index]
      : path.length === 2 && first === target && second === columns[index]
  })
}

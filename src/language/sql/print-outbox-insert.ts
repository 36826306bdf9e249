/** Prints the outbox insert within a write, and the columns that the write must return for it. */

import type { Add, Del, Set as SetStatement } from '../tree/ast.ts'
import { type NameScope, targetName } from '../tree/scope.ts'
import type { OutboxInsert, OutboxRows } from './outbox-insert.ts'
import { NO_IMAGE, printRowImages, type RowImages } from './print-row-images.ts'
import { unusedName } from './print-rows.ts'
import { lifted, type Printer } from './printer.ts'
import { quoteIdentifier } from './quote.ts'

/** The printed insert, and the columns that the common table of the write needs for it. */
export interface PrintedOutboxInsert {
  readonly name: string
  readonly columns: readonly string[]
  readonly statement: string
}

interface OutboxInsertParts {
  readonly write: Add | SetStatement | Del
  /** Name of the write's common table. */
  readonly name: string
  readonly images: RowImages
  readonly insert: OutboxInsert
  /** The column that already holds the whole row; null if absent. */
  readonly whole: string | null
  readonly scope: NameScope
  readonly printer: Printer
}

/**
 * Prints an outbox insert. Each column adds to the cost of every write, so none is printed twice, and values
 * that are equal for all rows are not columns.
 */
export function printOutboxInsert({
  write,
  name,
  images,
  insert,
  whole,
  scope,
  printer,
}: OutboxInsertParts): PrintedOutboxInsert {
  const columns: string[] = []
  let ticket: string | null = null
  const has = (sql: string, as: string): string => {
    columns.push(`${sql} AS ${as}`)
    return as
  }
  const target = targetName(write)
  const printed = printRowImages(write, images, scope, printer, 'json')
  const image = (as: 'after' | 'before'): string => {
    if (images[as] === 'none') return NO_IMAGE
    return images[as] === 'target' && whole !== null ? whole : has(printed[as], as)
  }
  const asked = new Map(
    insert.columns.map((column, index) => [
      column,
      has(`${quoteIdentifier(target)}.${quoteIdentifier(column)}`, `of${index + 1}`),
    ]),
  )
  const { operation } = images
  const rows: OutboxRows = {
    from: name,
    operation: typeof operation === 'string' ? { always: operation } : { column: has(printed.operation, 'happened') },
    ...{ after: image('after'), before: image('before') },
    ticket() {
      ticket ??= lifted(insert.ticket, 'text', printer)
      return ticket
    },
    column(of) {
      const found = asked.get(of)
      if (found === undefined) throw new Error(`the outbox insert did not request the column "${of}"`)
      return found
    },
  }
  return { name: unusedName({ write, name }), columns, statement: insert.statement(rows) }
}

/**
 * Reports whether the write returns exactly these columns of its target, in this order. If a column has the
 * target's name, its paths would be ambiguous.
 */
export function returnsWholeRow(write: Add | SetStatement | Del, columns: readonly string[]): boolean {
  const fields = write.returning ?? []
  const target = targetName(write)
  const hasNests = (write.returned?.nests.length ?? 0) > 0
  if (fields.length !== columns.length || hasNests || columns.includes(target)) return false
  return fields.every((item, index) => {
    if (item.kind !== 'field' || item.alias !== null || item.expression.kind !== 'column') return false
    const { path } = item.expression
    const [first, second] = path
    return path.length === 1
      ? first === columns[index]
      : path.length === 2 && first === target && second === columns[index]
  })
}

/** The statement within a write that writes down what it did, and what the write has to have for it. */

import type { Add, Del, Set as SetStatement } from '../tree/ast.ts'
import { type Scope, targetName } from '../tree/scope.ts'
import { type Images, NO_IMAGE, printImages } from './print-images.ts'
import { unusedName } from './print-rows.ts'
import { lifted, type Printer } from './printer.ts'
import { quoteIdentifier } from './quote.ts'
import type { RowsWritten, Storing } from './storing.ts'

/** The statement that writes down what was done, and what the common table has for it. */
export interface Stored {
  readonly name: string
  readonly columns: readonly string[]
  readonly statement: string
}

interface ToStore {
  readonly write: Add | SetStatement | Del
  /** Of the common table. */
  readonly name: string
  readonly images: Images
  readonly storing: Storing
  /** The column that is the whole row; null: none is. */
  readonly whole: string | null
  readonly scope: Scope
  readonly printer: Printer
}

/** Each column costs its part of every write: none is made twice, nor for what is the same of all rows. */
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
      if (found === undefined) throw new Error(`nobody asked for the column "${of}" of what is stored`)
      return found
    },
  }
  return { name: unusedName({ write, name }), columns, statement: storing.statement(rows) }
}

/** Its answer has these columns of the target, each once, in this order. A column that is called like the target would make its paths mean two things. */
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

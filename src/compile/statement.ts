/** What runs: plain data that `compile` makes of a checked tree, by what is to be run. */
import type { CheckedWrite } from '../access/check.ts'
import type { ParameterKey, ParameterUse } from '../access/parameters.ts'
import type { Table } from '../catalog/model.ts'
import type { WriteRowsOptions } from '../language/sql/print-write-rows.ts'
import type { TableName } from '../language/tree/ast.ts'
import type { Extent } from './extent.ts'
import type { Happened } from './images.ts'
import type { Mention } from './mentions.ts'
import type { Touches } from './touches.ts'

declare const printed: unique symbol

/** Text that may run, with what each of its `$1 …` is. It depends on the shape of the request, never on its values. */
interface Printed {
  readonly [printed]: true
  readonly text: string
  readonly parameters: readonly StatementParameter[]
}

/** A read that may be judged by what PostgreSQL estimates of it. */
interface Judged extends Printed {
  readonly touches: Touches
  /** Its estimate depends on its values too much to be kept. */
  readonly eachTime: boolean
  /** For advice on it. */
  readonly extent: Extent
  /** The columns that it filters and sorts by: what advice on it may name. */
  readonly mentions: readonly Mention[]
}

/** Column 1 of its rows is JSON text; of one for a binary answer, the columns are those of the read. */
export interface ReadStatement extends Judged {
  readonly kind: 'read'
}

/** As a read; behind column 1, the text of each sort key, for the cursor of the next page. */
export interface PagedStatement extends Judged {
  readonly kind: 'paged'
}

/** As a read, whose rows are taken batch by batch. */
export interface StreamStatement extends Judged {
  readonly kind: 'stream'
}

/** A call of a function of the database, which may do anything. */
export interface CallStatement extends Printed {
  readonly kind: 'call'
}

/** `EXPLAIN`; its only cell is the plan. */
export interface ExplainStatement extends Printed {
  readonly kind: 'explain'
  readonly touches: Touches
  /** What it runs to tell what that took; null: it only plans. */
  readonly runs: ReadStatement | PagedStatement | StreamStatement | null
}

export interface WriteStatement extends Printed {
  readonly kind: 'write'
  readonly touches: Touches
  /** Resource names of the tables that it writes to besides, of whose rows nothing can be told. */
  readonly besides: readonly string[]
  /** What its common tables write to, which nothing can be answered of. */
  readonly hidden: readonly HiddenWrite[]
  /** The write itself; null: a read, whose common tables change data. */
  readonly own: OwnWrite | null
}

/** A write, with what it is printed from: the same write can be printed so that it says what it did (`print-write.ts`). */
export interface OwnWrite {
  readonly checked: CheckedWrite
  readonly options: WriteRowsOptions
  readonly table: Table
  readonly happened: readonly Happened[]
  /** Null: nobody can be told of its rows. */
  readonly telling: Telling | null
}

/** How others are told of the rows of a write (run/write-notifications). */
export interface Telling {
  /** `one`: the write has one row at most. */
  readonly rows: 'one' | 'many'
  /** Whether rows as they were before can be had besides, which a creation has none of. */
  readonly hasBefore: boolean
  /** Columns that a change assigns; null where rows as a whole come and go. */
  readonly assigned: readonly string[] | null
}

export interface HiddenWrite {
  readonly table: TableName
  readonly happened: readonly Happened[]
}

export type Statement =
  | ReadStatement
  | PagedStatement
  | StreamStatement
  | CallStatement
  | WriteStatement
  | ExplainStatement

/** What runs in a transaction that only reads, and is answered whole. */
export type Readable = ReadStatement | PagedStatement | ExplainStatement

export type StatementParameter =
  /** A value of the caller: which of the tree's parameters, `$n` or `:name`. */
  | { readonly key: ParameterKey; readonly use: ParameterUse }
  /** A literal of the query, lifted out of the text so that this depends on the shape only. */
  | { readonly literal: string }

/** Text as PostgreSQL reads it, or bytes of a body that are JSON text. */
export type StatementValue = string | Buffer | null

/** A statement with the values of its parameters, in the statement's order and PostgreSQL's text form. */
export interface BoundStatement<S extends Statement = Statement> {
  readonly statement: S
  readonly values: readonly StatementValue[]
}

/** A statement without the brand that says who made it. */
export type Unbranded<S extends Statement> = S extends Statement ? Omit<S, typeof printed> : never

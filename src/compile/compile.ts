/**
 * A tree becomes what runs: checked against schema and rights, printed as SQL, with what the later stages ask of it. Pure and synchronous, and the only
 * way from a tree to text that runs: every door says what is to be run, and none of them checks or prints by itself.
 */
import {
  type CheckContext,
  type CheckedQuery,
  checkPast,
  checkRead,
  checkWrite,
  type Write,
  withParametersIn,
} from '../access/check.ts'
import type { ParameterKey } from '../access/parameters.ts'
import type { Table } from '../catalog/model.ts'
import { printSql } from '../language/sql/print.ts'
import { printRows } from '../language/sql/print-rows.ts'
import type { Sql } from '../language/sql/printer.ts'
import type { Get, Parameter } from '../language/tree/ast.ts'
import { unreachable } from '../unreachable.ts'
import { explained } from './derive.ts'
import { isEstimatedEachTime } from './each-time.ts'
import { extentOf } from './extent.ts'
import { mentionsOf } from './mentions.ts'
import { type Bounds, printed, statement } from './print.ts'
import { hiddenIn, printWrite, printWriteText, resourcesOf, type WriteAnswer } from './print-write.ts'
import type {
  CallStatement,
  ExplainStatement,
  PagedStatement,
  ReadStatement,
  StreamStatement,
  WriteStatement,
} from './statement.ts'
import { touchesOf } from './touches.ts'

/** The view of a caller, and how the statement's author is to be met. */
export type Context = CheckContext

/** `rows`: each as one JSON text; `value`: that of the only field alone; `columns`: as they are, for results in PostgreSQL's binary format. */
export type Form = 'rows' | 'value' | 'columns'

/** Parameters that are read from columns of a record source, as texts: one statement for many values of each. */
export interface Varying {
  readonly source: string
  readonly columns: ReadonlyMap<ParameterKey, string>
}

/** What is to be run. */
export type Mode =
  | { readonly kind: 'read'; readonly form: Form }
  /** Rows, each with its sort keys behind it. */
  | { readonly kind: 'paged' }
  | { readonly kind: 'paged many'; readonly varying: readonly Varying[] }
  /** The value of a condition over rows that are given, and not those of `table` any more. */
  | { readonly kind: 'past many'; readonly table: Table; readonly varying: readonly Varying[] }
  | { readonly kind: 'stream' }
  | { readonly kind: 'call'; readonly form: Form }
  | { readonly kind: 'write'; readonly answer: WriteAnswer }
  | TextMode
  /** The plan of a text that is not run. */
  | { readonly kind: 'explain'; readonly of: TextMode }

/** A text of the query language: its literals are values too. `rowsMax`: how many rows are answered at most; 0: all. */
export type TextMode =
  | { readonly kind: 'read text'; readonly rowsMax: number }
  | { readonly kind: 'stream text'; readonly rowsMax: number }
  /** A read whose common tables change data. */
  | { readonly kind: 'writing text'; readonly rowsMax: number }
  /** `changedMax`: how many rows may be written; null: any number. */
  | { readonly kind: 'write text'; readonly changedMax: Parameter | null }

interface Kinds {
  readonly read: { readonly tree: Get; readonly statement: ReadStatement }
  readonly paged: { readonly tree: Get; readonly statement: PagedStatement }
  readonly 'paged many': { readonly tree: Get; readonly statement: PagedStatement }
  readonly 'past many': { readonly tree: Get; readonly statement: ReadStatement }
  readonly stream: { readonly tree: Get; readonly statement: StreamStatement }
  readonly call: { readonly tree: Get; readonly statement: CallStatement }
  readonly write: { readonly tree: Write; readonly statement: WriteStatement }
  readonly 'read text': { readonly tree: Get; readonly statement: ReadStatement }
  readonly 'stream text': { readonly tree: Get; readonly statement: StreamStatement }
  readonly 'writing text': { readonly tree: Get; readonly statement: WriteStatement }
  readonly 'write text': { readonly tree: Write; readonly statement: WriteStatement }
  readonly explain: { readonly tree: Get | Write; readonly statement: ExplainStatement }
}

type TreeOf<M extends Mode> = Kinds[M['kind']]['tree']
type StatementOf<M extends Mode> = Kinds[M['kind']]['statement']

/** Throws `PARSE_ERROR` or `FORBIDDEN` for what the caller may not name, and for what cannot be said. */
export function compile<M extends Mode>(tree: TreeOf<M>, view: Context, mode: M): StatementOf<M> {
  return compiled(tree, view, mode) as StatementOf<M>
}

function compiled(tree: Get | Write, view: Context, mode: Mode): Kinds[Mode['kind']]['statement'] {
  switch (mode.kind) {
    case 'read':
      return reading('read', checkRead(asRead(tree), view), inForm(mode.form))
    case 'paged':
      return reading('paged', checkRead(asRead(tree), view), withKeys)
    case 'paged many':
      return reading('paged', varied(checkRead(asRead(tree), view), mode.varying), withKeys)
    case 'past many':
      return reading('read', varied(checkPast(asRead(tree), mode.table, view), mode.varying), inForm('value'))
    case 'stream':
      return reading('stream', checkRead(asRead(tree), view), inForm('rows'))
    case 'call': {
      const checked = checkRead(asRead(tree), view)
      return statement<CallStatement>({
        kind: 'call',
        ...printed(checked, bounds => inForm(mode.form)(checked.query, bounds)),
      })
    }
    case 'write':
      return printWrite(checkWrite(asWrite(tree), view), mode.answer)
    case 'read text':
      return reading('read', checkRead(asRead(tree), view), asText(mode.rowsMax))
    case 'stream text':
      return reading('stream', checkRead(asRead(tree), view), asText(mode.rowsMax))
    case 'writing text': {
      const checked = checkRead(asRead(tree), view)
      const { query, writes } = checked
      return statement<WriteStatement>({
        kind: 'write',
        ...printed(checked, bounds => asText(mode.rowsMax)(query, bounds)),
        touches: touchesOf(query),
        ...{ besides: resourcesOf(writes), hidden: hiddenIn(query), own: null },
      })
    }
    case 'write text':
      return printWriteText(checkWrite(asWrite(tree), view), mode.changedMax)
    case 'explain':
      return explained(compile(tree as Get & Write, view, mode.of))
    default:
      return unreachable(mode)
  }
}

function reading<K extends 'read' | 'paged' | 'stream'>(
  kind: K,
  checked: CheckedQuery,
  print: Print,
): ReadStatement | PagedStatement | StreamStatement {
  const { query } = checked
  return statement<ReadStatement | PagedStatement | StreamStatement>({
    kind,
    ...printed(checked, bounds => print(query, bounds)),
    touches: touchesOf(query),
    eachTime: isEstimatedEachTime(query),
    extent: extentOf(query),
    mentions: mentionsOf(query),
  })
}

type Print = (query: Get, bounds: Bounds) => Sql

function inForm(form: Form): Print {
  switch (form) {
    case 'rows':
      return (query, bounds) => printRows(query, { ...bounds, keys: [] })
    case 'value':
      return (query, bounds) => printRows(query, { ...bounds, keys: [], form: 'value' })
    case 'columns':
      return (query, bounds) => printSql(query, { ...bounds, parameters: 'keep' })
  }
}

function withKeys(query: Get, bounds: Bounds): Sql {
  return printRows(query, { ...bounds, keys: query.orderBy.map(order => order.expression) })
}

function asText(rowsMax: number): Print {
  const limit = rowsMax === 0 ? null : rowsMax
  return (query, bounds) => printRows(query, { ...bounds, keys: [], parameters: 'all', limit })
}

function varied(checked: CheckedQuery, varying: readonly Varying[]): CheckedQuery {
  return varying.reduce((query, { source, columns }) => withParametersIn(query, source, columns), checked)
}

/** The types of `compile` see to it; this is for the compiler, which cannot follow them into the switch. */
function asRead(tree: Get | Write): Get {
  if (tree.kind === 'get') return tree
  throw new Error(`a read was to be compiled, and not ${tree.kind}`)
}

function asWrite(tree: Get | Write): Write {
  if (tree.kind !== 'get') return tree
  throw new Error('a write was to be compiled, and not get')
}

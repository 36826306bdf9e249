/**
 * Compiles a tree to a statement: the tree is checked against schema and rights and printed as SQL, and the
 * facts that later stages need are derived from it. Compilation is pure and synchronous, and the only way
 * from a tree to SQL text that runs. Handlers specify what to run; they never check or print themselves.
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
import { printRows, WHOLE_ROW } from '../language/sql/print-rows.ts'
import type { Sql } from '../language/sql/printer.ts'
import type { Get, Parameter } from '../language/tree/ast.ts'
import { impliedColumn } from '../language/tree/build.ts'
import { unreachable } from '../unreachable.ts'
import { explained } from './derive.ts'
import { extentOf } from './extent.ts'
import { type Folding, printFolded, printFoldedRow } from './folding.ts'
import { keyListsOf } from './key-lists.ts'
import { mentionsOf } from './mentions.ts'
import { type PrintLimits, printed, statement } from './print.ts'
import { printCall } from './print-call.ts'
import { hiddenIn, printWrite, printWriteText, resourcesOf, type WriteAnswer } from './print-write.ts'
import type {
  CallStatement,
  ExplainStatement,
  PagedStatement,
  ReadStatement,
  StreamStatement,
  WriteStatement,
} from './statement.ts'
import { tableDependenciesOf } from './table-dependencies.ts'
import { type Known, unlessKnown, withKnown } from './unless-known.ts'
import { hasValueDependentEstimate } from './value-dependent-estimate.ts'

/** The view of a caller, and how to address the author of the statement in errors. */
export type Context = CheckContext

/**
 * How rows are returned. `rows`: each row as one JSON text; `stripped`: the same without nulls; `records`:
 * each row as PostgreSQL prints a composite value; `value`: the value of the only field; `columns`: separate
 * columns, for results in PostgreSQL's binary format.
 */
export type Form = 'rows' | 'stripped' | 'records' | 'value' | 'columns' | Folding

/**
 * Parameters that are read from the columns of a record source, as texts, so that one statement handles many
 * values of each.
 */
export interface Varying {
  readonly source: string
  readonly columns: ReadonlyMap<ParameterKey, string>
}

/** What to run. `known`: what the client has of the result, which is then not returned. */
export type Mode =
  | { readonly kind: 'read'; readonly form: Form; readonly known?: Known | undefined }
  /** Rows, each followed by its sort keys. */
  | { readonly kind: 'paged'; readonly form?: 'rows' | 'records'; readonly known?: Known | undefined }
  /** Rows of one table, each with its version behind it. */
  | { readonly kind: 'versioned'; readonly column: string; readonly known?: Known | undefined }
  | { readonly kind: 'paged many'; readonly varying: readonly Varying[] }
  /** A condition evaluated over given rows instead of the current rows of `table`. */
  | { readonly kind: 'past many'; readonly table: Table; readonly varying: readonly Varying[] }
  | { readonly kind: 'stream'; readonly form?: 'rows' | 'records' }
  /** `rowsMax` limits the rows of the result, or is null for no limit. */
  | { readonly kind: 'call'; readonly form: Form; readonly rowsMax?: Parameter | null }
  | { readonly kind: 'write'; readonly answer: WriteAnswer }
  | TextMode
  /** The execution plan of a text, which is not executed. */
  | { readonly kind: 'explain'; readonly of: TextMode }

/**
 * A text of the query language, whose literals are values too. `rowsMax` limits the rows returned; 0 means no
 * limit.
 */
export type TextMode =
  | { readonly kind: 'read text'; readonly rowsMax: number }
  | { readonly kind: 'stream text'; readonly rowsMax: number }
  /** A read whose common table expressions change data. */
  | { readonly kind: 'writing text'; readonly rowsMax: number }
  /** `changedMax` limits the rows written, or is null for no limit. */
  | { readonly kind: 'write text'; readonly changedMax: Parameter | null }

interface Kinds {
  readonly read: { readonly tree: Get; readonly statement: ReadStatement }
  readonly paged: { readonly tree: Get; readonly statement: PagedStatement }
  readonly versioned: { readonly tree: Get; readonly statement: PagedStatement }
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

/**
 * Compiles a tree.
 * @throws {GatewayError} `PARSE_ERROR` for a tree that cannot be compiled, `FORBIDDEN` for a name that the
 * caller has no right to use.
 */
export function compile<M extends Mode>(tree: TreeOf<M>, view: Context, mode: M): StatementOf<M> {
  return compiled(tree, view, mode) as StatementOf<M>
}

function compiled(tree: Get | Write, view: Context, mode: Mode): Kinds[Mode['kind']]['statement'] {
  switch (mode.kind) {
    case 'read':
      return typeof mode.form === 'string'
        ? reading('read', ...unless(mode.known, checkRead(asRead(tree), view), 1, inForm(mode.form)), view)
        : folding(checkRead(asRead(tree), view), view, mode.form)
    case 'paged':
      return paging(checkRead(asRead(tree), view), withKeys(mode.form ?? 'rows'), mode.known, view)
    case 'versioned':
      return reading('paged', ...unless(mode.known, checkRead(asRead(tree), view), 2, withVersion(mode.column)), view)
    case 'paged many':
      return reading('paged', varied(checkRead(asRead(tree), view), mode.varying), withKeys('rows'), view)
    case 'past many':
      return reading('read', varied(checkPast(asRead(tree), mode.table, view), mode.varying), inForm('value'), view)
    case 'stream':
      return reading('stream', checkRead(asRead(tree), view), inForm(mode.form ?? 'rows'), view)
    case 'call':
      return printCall(checkRead(asRead(tree), view), inForm(mode.form), mode.rowsMax ?? null)
    case 'write':
      return printWrite(checkWrite(asWrite(tree), view), mode.answer)
    case 'read text':
      return reading('read', checkRead(asRead(tree), view), asText(mode.rowsMax), view)
    case 'stream text':
      return reading('stream', checkRead(asRead(tree), view), asText(mode.rowsMax), view)
    case 'writing text': {
      const checked = checkRead(asRead(tree), view)
      const { query, writes } = checked
      return statement<WriteStatement>({
        kind: 'write',
        ...printed(checked, bounds => asText(mode.rowsMax)(query, bounds)),
        dependencies: tableDependenciesOf(query),
        ...{ otherTables: resourcesOf(writes), hidden: hiddenIn(query), own: null },
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
  { catalog }: Context,
): ReadStatement | PagedStatement | StreamStatement {
  const { query } = checked
  const { text, parameters } = printed(checked, bounds => print(query, bounds))
  const lists = keyListsOf(query, catalog)
  return statement<ReadStatement | PagedStatement | StreamStatement>({
    ...{ kind, text, parameters },
    dependencies: tableDependenciesOf(query),
    valueDependent: hasValueDependentEstimate(query),
    keyLists: parameters.flatMap((one, index) => ('key' in one && lists.has(one.key) ? [index] : [])),
    extent: extentOf(query),
    mentions: mentionsOf(query),
  })
}

type Print = (query: Get, bounds: PrintLimits) => Sql

function paging(
  checked: CheckedQuery,
  print: Print,
  known: Known | undefined,
  view: Context,
): ReturnType<typeof reading> {
  return reading('paged', ...unless(known, checked, 1 + checked.query.orderBy.length, print), view)
}

/** A read with this number of columns that returns no rows if they are known. */
function unless(
  known: Known | undefined,
  checked: CheckedQuery,
  columns: number,
  print: Print,
): readonly [CheckedQuery, Print] {
  if (known === undefined) return [checked, print]
  const comparing = { ...checked, parameters: withKnown(checked.parameters, known) }
  return [comparing, (query, bounds) => unlessKnown(print(query, bounds), columns, known)]
}

/** The aggregate is a function of the database, so its result depends on more than the rows. */
function folding(checked: CheckedQuery, view: Context, form: Folding): ReadStatement {
  const read = reading('read', checked, inForm(form), view)
  const dependencies = {
    ...read.dependencies,
    deterministic: false,
    calls: [...read.dependencies.calls, form.function],
  }
  return statement<ReadStatement>({ ...read, kind: 'read', dependencies })
}

function inForm(form: Form): Print {
  if (typeof form !== 'string') return (query, bounds) => folded(inForm('columns')(query, bounds), form)
  switch (form) {
    case 'rows':
      return (query, bounds) => printRows(query, { ...bounds, keys: [] })
    case 'records':
      return (query, bounds) => printRows(query, { ...bounds, keys: [], form: 'record' })
    case 'value':
    case 'stripped':
      return (query, bounds) => printRows(query, { ...bounds, keys: [], form })
    case 'columns':
      return (query, bounds) => printSql(query, { ...bounds, parameters: 'keep' })
  }
}

function folded({ text, parameters }: Sql, folding: Folding): Sql {
  const value = printFolded(folding, printFoldedRow(folding, WHOLE_ROW))
  return { text: `SELECT ${value}, count(*) FROM (${text}) AS ${WHOLE_ROW}`, parameters }
}

function withKeys(of: 'rows' | 'records'): Print {
  const form = of === 'records' ? 'record' : 'object'
  return (query, bounds) => printRows(query, { ...bounds, keys: query.orderBy.map(order => order.expression), form })
}

function withVersion(name: string): Print {
  return (query, bounds) => {
    const { alias } = query.source
    if (alias === null) throw new Error('a row with a version is read from a table with an alias')
    return printRows(query, { ...bounds, keys: [impliedColumn(alias, name)] })
  }
}

function asText(rowsMax: number): Print {
  const limit = rowsMax === 0 ? null : rowsMax
  return (query, bounds) => printRows(query, { ...bounds, keys: [], parameters: 'all', limit })
}

function varied(checked: CheckedQuery, varying: readonly Varying[]): CheckedQuery {
  return varying.reduce((query, { source, columns }) => withParametersIn(query, source, columns), checked)
}

/**
 * Narrows the type. The types of `compile` guarantee it, but the type checker cannot follow them into the
 * switch.
 */
function asRead(tree: Get | Write): Get {
  if (tree.kind === 'get') return tree
  throw new Error(`expected a read, got ${tree.kind}`)
}

function asWrite(tree: Get | Write): Write {
  if (tree.kind !== 'get') return tree
  throw new Error('expected a write, got get')
}

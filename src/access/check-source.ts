/** The sources of a statement: tables, queries, the request body, functions, and the joins between them. */
import type { DatabaseFunction } from '../catalog/model.ts'
import { GatewayError } from '../errors.ts'
import type {
  Argument,
  ArraySource,
  Expression,
  FunctionSource,
  Join,
  RecordSource,
  Source,
  TableSource,
} from '../language/tree/ast.ts'
import { unreachable } from '../unreachable.ts'
import type { Checking } from './checking.ts'
import { resultColumns, resultTable } from './columns.ts'
import { joinByKey } from './keys.ts'
import { isParameter } from './parameters.ts'
import { assertAllowed } from './refusals.ts'
import { relationsBehind, relationsIn } from './relations-behind.ts'
import { functionOf, qualified, tableOf } from './resources.ts'
import { readRows, rowsFor } from './row-filter.ts'
import { type AccessScope, type Rowset, rowset, type ScopeSource, scopeWithin, sourceOf, tableRowset } from './scope.ts'
import { UNKNOWN } from './typed.ts'
import { typeNameOf } from './types.ts'

/**
 * The source with its names resolved. Adds the source to `sources`; its alias must differ from those
 * already there.
 */
export function sourceIn(checking: Checking, source: Source, outer: AccessScope, sources: ScopeSource[]): Source {
  const { checkedSource, found } = foundIn(checking, source, outer, sources)
  if (sources.some(({ alias }) => alias === found.alias)) {
    throw new GatewayError(
      'PARSE_ERROR',
      `two sources are named "${found.alias}"; give one of them an alias: ${found.alias} as other`,
      { span: source.span },
    )
  }
  sources.push(found)
  return checkedSource
}

/** The same for the source of a join, including the join condition. */
export function joinIn(checking: Checking, join: Join, sources: ScopeSource[], outer: AccessScope): Join {
  const around = join.lateral ? scopeWithin(outer, [...sources]) : outer
  const left = [...sources]
  const source = sourceIn(checking, join.source, around, sources)
  const joined = sources.at(-1)
  if (joined === undefined) throw new Error('a join has a source')
  const isFree = join.type === 'cross' || join.lateral
  const on = join.on ?? (isFree ? null : joinByKey(join, joined, left))
  return { ...join, source, on: checking.expressions.optional(on, scopeWithin(outer, sources)) }
}

/**
 * The conditions that a source adds to the statement's WHERE clause: the condition of `t[condition]`, which
 * sees all sources of the statement, `t` first; for a function that returns a table's rows, the policy on
 * those rows. `checked` is the checked form of the source.
 */
export function conditionedIn(
  checking: Checking,
  written: Source,
  checked: Source,
  found: ScopeSource | undefined,
  scope: AccessScope,
): Conditioned {
  const answered = found?.rowset.table ?? null
  if (written.kind === 'function source' && answered !== null) {
    // Rows that a policy hides in their table are also hidden in a function's result.
    return { source: checked, where: rowsFor(checking, answered, written.alias, 'read') }
  }
  if (written.kind !== 'table source' || written.condition === null || found === undefined) {
    return { source: checked, where: null }
  }
  const condition = checking.expressions.expression(written.condition, scopeWithin(scope, [found]))
  return checked.kind === 'table source'
    ? { source: { ...checked, condition }, where: null }
    : { source: checked, where: condition }
}

/** A source with the condition that it adds to the statement. */
export interface Conditioned {
  readonly source: Source
  /** The condition, if the checked source has no place for it; null otherwise. */
  readonly where: Expression | null
}

/** The same for joins, in order; `sources` are the sources of the joins. */
export function conditionedJoins(
  checking: Checking,
  written: readonly Join[],
  checked: readonly Join[],
  sources: readonly ScopeSource[],
  scope: AccessScope,
): { readonly joins: readonly Join[]; readonly where: readonly (Expression | null)[] } {
  const conditioned = checked.map((join, index) =>
    conditionedIn(checking, written[index]?.source ?? join.source, join.source, sources[index], scope),
  )
  return {
    joins: checked.map((join, index) => ({ ...join, source: conditioned[index]?.source ?? join.source })),
    where: conditioned.map(({ where }) => where),
  }
}

function foundIn(
  checking: Checking,
  source: Source,
  outer: AccessScope,
  left: readonly ScopeSource[],
): { readonly checkedSource: Source; readonly found: ScopeSource } {
  switch (source.kind) {
    case 'table source': {
      const { alias, table } = source
      const common = table.schema === null ? outer.commonTables.get(table.name) : undefined
      if (common === undefined) return tableIn(checking, source)
      checking.tally.addRelations(1, source.span)
      return {
        checkedSource: source,
        found: { alias: alias ?? table.name, name: alias === null ? table : null, rowset: common },
      }
    }
    case 'query source': {
      checking.tally.addRelations(1, source.span)
      const { statement, outputs } = checking.read(source.query, outer)
      const found = sourceOf(source.alias, rowset(`"${source.alias}"`, outputs))
      return { checkedSource: { ...source, query: statement }, found }
    }
    case 'record source':
      checking.tally.addRelations(1, source.span)
      return { checkedSource: { ...source, value: bodyIn(checking, source) }, found: recordColumns(source) }
    case 'array source':
      checking.tally.addRelations(1, source.span)
      for (const value of source.values) typeArray(checking, value)
      return { checkedSource: source, found: recordColumns(source) }
    case 'function source': {
      const { called, found } = functionIn(checking, source, scopeWithin(outer, left))
      return { checkedSource: { ...source, ...called }, found }
    }
    default:
      return unreachable(source)
  }
}

// ---- a table
// -----------------------------------------------------------------------------------------------

function tableIn(
  checking: Checking,
  source: TableSource,
): { readonly checkedSource: Source; readonly found: ScopeSource } {
  const { rights } = checking
  const known = tableOf(source.table, checking.catalog, rights)
  assertAllowed('read', known, rights, source.table.span)
  checking.tally.addRelations(relationsBehind(known, checking.catalog, 'read'), source.span)
  const name = qualified(source.table, known)
  const alias = source.alias ?? known.name
  const found: ScopeSource = {
    alias,
    name: source.alias === null ? name : null,
    rowset: tableRowset(known, rights.of(known).read),
  }
  const rows = readRows(checking, known, alias, source.span)
  return { checkedSource: rows ?? { ...source, table: name }, found }
}

// ---- a body
// ------------------------------------------------------------------------------------------------

function bodyIn(checking: Checking, { value }: RecordSource): Expression {
  typeBody(checking, value)
  return value
}

/** Types the parameter that holds the JSON of a body. */
export function typeBody({ expressions }: Checking, value: Expression): void {
  if (!isParameter(value)) throw new Error('a body must be a parameter that holds JSON')
  expressions.use(value, { typeName: 'json', type: null, subject: null, list: false })
}

/** Types a parameter that holds the texts of a column. */
function typeArray({ expressions }: Checking, value: Expression): void {
  if (!isParameter(value)) throw new Error('a column of a file must be a parameter that holds an array')
  expressions.use(value, { typeName: 'text[]', type: null, subject: null, list: false })
}

function recordColumns(source: RecordSource | ArraySource): ScopeSource {
  const columns = source.columns.map(({ name, type }) => ({ name, type: null, typeText: typeNameOf(type) }))
  return sourceOf(source.alias, rowset('the body', columns))
}

// ---- a function
// --------------------------------------------------------------------------------------------

/** One value for each row, of an unknown type. */
function recordRowset({ function: { name }, columns }: FunctionSource): Rowset {
  return rowset(
    `function "${name}"`,
    columns.map(column => ({ name: column, type: null, typeText: 'record' })),
  )
}

/** Checks a call whose arguments see the sources of `scope`. */
export function functionIn(
  checking: Checking,
  source: FunctionSource,
  scope: AccessScope,
): { readonly called: Pick<FunctionSource, 'function' | 'arguments'>; readonly found: ScopeSource } {
  const meant = functionOf(source.function, source.identity, checking.catalog)
  checking.tally.addRelations(relationsIn(meant, checking.catalog), source.span)
  const args = source.arguments.map((argument, index) => ({
    ...argument,
    value: argumentIn(checking, argument, index, meant, scope),
  }))
  return {
    called: { function: { ...source.function, schema: meant.schema }, arguments: args },
    found: sourceOf(source.alias, source.selected === true ? recordRowset(source) : resultRowset(meant, checking)),
  }
}

/**
 * Rows of a table's type are treated as rows of that table, whichever function returns them: the caller
 * gets the columns of the table that they can read.
 */
function resultRowset(meant: DatabaseFunction, { catalog, rights }: Checking): Rowset {
  const label = `the result of "${meant.resource}"`
  const table = resultTable(meant, catalog)
  if (table === null) return rowset(label, resultColumns(meant))
  assertAllowed('read', table, rights)
  return { ...tableRowset(table, rights.of(table).read), label }
}

/** A parameter takes the type of the argument that it is passed for. */
function argumentIn(
  { expressions }: Checking,
  argument: Argument,
  index: number,
  called: DatabaseFunction,
  scope: AccessScope,
): Expression {
  const input =
    argument.name === null
      ? called.inputs[Math.min(index, called.inputs.length - 1)]
      : called.inputs.find(({ name }) => name === argument.name)
  if (input === undefined) throw new Error(`function "${called.resource}" has no argument ${index + 1}`)
  const isElement = input.mode === 'variadic' && !argument.variadic
  const type = isElement ? input.type.of : input.type
  const typeName = isElement ? type?.name : input.typeText
  const typed = type === null || type.kind === 'pseudo' ? UNKNOWN : { ...UNKNOWN, type, typeName: typeName ?? null }
  const subject = `argument ${input.name === null ? index + 1 : `"${input.name}"`}`
  return expressions.meet(argument.value, typed, scope, subject)
}

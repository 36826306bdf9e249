/** What a statement reads from: tables, queries, the body, functions, and how they are joined. */
import type { DatabaseFunction } from '../catalog/model.ts'
import { GatewayError } from '../errors.ts'
import type { Argument, Expression, FunctionSource, Join, RecordSource, Source } from '../language/ast.ts'
import { unreachable } from '../unreachable.ts'
import type { Checking } from './checking.ts'
import { resultColumns } from './columns.ts'
import { joinByKey } from './keys.ts'
import { isParameter } from './parameters.ts'
import { functionOf, qualified, tableOf } from './resources.ts'
import { rowset, type Scope, type ScopeSource, sourceOf, tableRowset, within } from './scope.ts'
import { UNKNOWN } from './typed.ts'
import { typeNameOf } from './types.ts'

/** The source with its names resolved; what it brings is added to `sources`, and must not be called like one that is there. */
export function sourceIn(checking: Checking, source: Source, outer: Scope, sources: ScopeSource[]): Source {
  checking.countSource(source)
  const { checkedSource, found } = foundIn(checking, source, outer, sources)
  if (sources.some(({ alias }) => alias === found.alias)) {
    throw new GatewayError(
      'PARSE_ERROR',
      `two sources are called "${found.alias}"; give one of them an alias: ${found.alias} as other`,
      { span: source.span },
    )
  }
  sources.push(found)
  return checkedSource
}

/** The same for the source of a join, with the condition that it is on. */
export function joinIn(checking: Checking, join: Join, sources: ScopeSource[], outer: Scope): Join {
  const around = join.lateral ? within(outer, [...sources]) : outer
  const left = [...sources]
  const source = sourceIn(checking, join.source, around, sources)
  const joined = sources.at(-1)
  if (joined === undefined) throw new Error('a join has a source')
  const isFree = join.type === 'cross' || join.lateral
  const on = join.on ?? (isFree ? null : joinByKey(join, joined, left))
  return { ...join, source, on: checking.expressions.optional(on, within(outer, sources)) }
}

/** The condition of `t[condition]` is part of the statement's where: it sees all of its sources, `t` first. */
export function conditionedIn(
  { expressions }: Checking,
  source: Source,
  found: ScopeSource | undefined,
  scope: Scope,
): Source {
  if (source.kind !== 'table source' || source.condition === null || found === undefined) return source
  return { ...source, condition: expressions.expression(source.condition, within(scope, [found])) }
}

function foundIn(
  checking: Checking,
  source: Source,
  outer: Scope,
  left: readonly ScopeSource[],
): { readonly checkedSource: Source; readonly found: ScopeSource } {
  switch (source.kind) {
    case 'table source': {
      const { alias, table } = source
      const common = table.schema === null ? outer.commonTables.get(table.name) : undefined
      const known = common === undefined ? tableOf(table, checking.catalog) : null
      const name = known === null ? table : qualified(table, known)
      const found: ScopeSource = {
        alias: alias ?? table.name,
        name: alias === null ? name : null,
        rowset: common ?? tableRowset(known ?? tableOf(table, checking.catalog)),
      }
      return { checkedSource: { ...source, table: name }, found }
    }
    case 'query source': {
      const { statement, outputs } = checking.read(source.query, outer)
      const found = sourceOf(source.alias, rowset(`"${source.alias}"`, outputs))
      return { checkedSource: { ...source, query: statement }, found }
    }
    case 'record source':
      return { checkedSource: { ...source, value: bodyIn(checking, source) }, found: recordColumns(source) }
    case 'function source': {
      const { called, found } = functionIn(checking, source, within(outer, left))
      return { checkedSource: { ...source, ...called }, found }
    }
    default:
      return unreachable(source)
  }
}

// ---- a body ------------------------------------------------------------------------------------------------

function bodyIn({ expressions }: Checking, { value }: RecordSource): Expression {
  if (!isParameter(value)) throw new Error('a record source takes its JSON from a parameter')
  expressions.use(value, { typeName: 'json', type: null, subject: null, list: false })
  return value
}

function recordColumns(source: RecordSource): ScopeSource {
  const columns = source.columns.map(({ name, type }) => ({ name, type: null, typeText: typeNameOf(type) }))
  return sourceOf(source.alias, rowset('the body', columns))
}

// ---- a function --------------------------------------------------------------------------------------------

function functionIn(
  checking: Checking,
  source: FunctionSource,
  scope: Scope,
): { readonly called: Pick<FunctionSource, 'function' | 'arguments'>; readonly found: ScopeSource } {
  const meant = functionOf(source.function, source.identity, checking.catalog)
  const args = source.arguments.map((argument, index) => ({
    ...argument,
    value: argumentIn(checking, argument, index, meant, scope),
  }))
  return {
    called: { function: { ...source.function, schema: meant.schema }, arguments: args },
    found: sourceOf(source.alias, rowset(`the result of "${meant.resource}"`, resultColumns(meant))),
  }
}

/** A parameter takes the type of the argument that it is given for. */
function argumentIn(
  { expressions }: Checking,
  argument: Argument,
  index: number,
  called: DatabaseFunction,
  scope: Scope,
): Expression {
  const input =
    argument.name === null
      ? called.inputs[Math.min(index, called.inputs.length - 1)]
      : called.inputs.find(({ name }) => name === argument.name)
  if (input === undefined) throw new Error(`function "${called.resource}" has no argument ${index + 1}`)
  const isElement = input.mode === 'variadic' && !argument.variadic
  const type = isElement ? input.type.of : input.type
  const typed = type === null || type.kind === 'pseudo' ? UNKNOWN : { ...UNKNOWN, type, typeName: type.name }
  const subject = `argument ${input.name === null ? index + 1 : `"${input.name}"`}`
  return expressions.meet(argument.value, typed, scope, subject)
}

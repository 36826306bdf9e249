/** Checks reads: a query and the relations nested in its rows. */
import { GatewayError } from '../errors.ts'
import type { CommonTable, Compound, Expression, ExpressionField, Get, Nest } from '../language/tree/ast.ts'
import { allOf } from '../language/tree/build.ts'
import { childrenOf } from '../language/tree/children.ts'
import { outputName } from '../language/tree/output-name.ts'
import { commonTable, commonTablesIn } from './check-common.ts'
import { aliasesOf, fieldsIn, outputsOf, refuseSameNames } from './check-fields.ts'
import { conditionedIn, conditionedJoins, functionIn, joinIn, sourceIn } from './check-source.ts'
import type { Answering, Checking } from './checking.ts'
import { isOutput } from './expressions.ts'
import { boundedTurn } from './guard.ts'
import { nestByKey } from './keys.ts'
import { assertAllowed } from './refusals.ts'
import { relationsBehind } from './relations-behind.ts'
import { qualified, tableOf } from './resources.ts'
import { conditionAfter, rowsFor } from './row-filter.ts'
import {
  type AccessScope,
  NOTHING,
  type RowsetColumn,
  type ScopeSource,
  scopeWithin,
  sourceOf,
  tableRowset,
} from './scope.ts'
import { NO_GROWTH, sumOf } from './tally.ts'

/** Implements `Checking.read`. */
export function readIn(
  checking: Checking,
  query: Get,
  outside: AccessScope,
  itself: CommonTable | null,
): Answering<Get> {
  if (query.lock !== null) {
    throw new GatewayError(
      'FORBIDDEN',
      '"for" cannot be used in a request: its row locks are released when the request ends; remove it',
      { span: query.lock.span },
    )
  }
  checking.tally.assertJoins(query.joins)
  const { expressions } = checking
  const { clause, outer } = commonTablesIn(checking, query.with, outside)
  const sources: ScopeSource[] = []
  const source = sourceIn(checking, query.source, outer, sources)
  const joins = query.joins.map(join => joinIn(checking, join, sources, outer))
  const scope = scopeWithin(outer, sources)
  const { fields, nests, outputs } = projectionIn(checking, query, scope)
  const first = conditionedIn(checking, query.source, source, sources[0], scope)
  const others = conditionedJoins(checking, query.joins, joins, sources.slice(1), scope)
  const named: AccessScope = { ...scope, outputs: aliasesOf(fields) }
  const beside = itself === null || query.compounds.length === 0 ? outer : withTable(outer, itself, outputs)
  const arms = query.compounds
    .map(compound => checking.read(compound.query, beside))
    .map(arm => (itself === null ? arm : boundedArm(arm, checking)))
  const statement: Get = {
    ...query,
    with: clause,
    source: first.source,
    joins: others.joins,
    fields,
    nests,
    distinct: query.distinct && {
      ...query.distinct,
      on: query.distinct.on.map(on => (isOutput(on, named) ? on : expressions.expression(on, scope))),
    },
    where: allOf([
      first.where,
      ...others.where,
      expressions.optional(query.where, { ...scope, unusableOutputs: named.outputs }),
    ]),
    groupBy: query.groupBy.map(item => groupIn(checking, item, named)),
    having: expressions.optional(query.having, named),
    windows: query.windows.map(window => ({ ...window, body: expressions.window(window.body, scope) })),
    compounds: query.compounds.map(
      (compound, index): Compound => ({ ...compound, query: arms[index]?.statement ?? compound.query }),
    ),
    orderBy: expressions.orders(query.orderBy, query.compounds.length > 0 ? onlyOutputs(fields, outer) : named),
    limit: expressions.count(query.limit, 'limit'),
    offset: expressions.count(query.offset, 'offset'),
  }
  const counted = [{ name: 'count', type: null, typeText: 'int8' }]
  return { statement, outputs: query.purpose === 'count' ? counted : arms.reduce(withArm, outputs) }
}

/** Each iteration of a recursive query works on the rows of the previous one, so it can double their size. */
function boundedArm(arm: Answering<Get>, { tally }: Checking): Answering<Get> {
  const fields = arm.statement.fields.map(item =>
    item.kind === 'field' && mayGrow(item.expression)
      ? { ...item, alias: outputName(item), expression: boundedTurn(item.expression, tally) }
      : item,
  )
  return { ...arm, statement: { ...arm.statement, fields } }
}

/** True if the value can be longer than its operands; numbers have a bound on their digits already. */
function mayGrow(expression: Expression): boolean {
  if (expression.kind === 'function' || expression.kind === 'array' || expression.kind === 'row') return true
  if (expression.kind === 'arithmetic' && expression.operator === '||') return true
  return childrenOf(expression).some(mayGrow)
}

/** A column of a compound query counts as the expressions of all its parts. */
function withArm(outputs: readonly RowsetColumn[], arm: Answering<Get>): readonly RowsetColumn[] {
  return outputs.map((column, index) => {
    const growth = arm.outputs[index]?.growth ?? null
    return growth === null ? column : { ...column, growth: sumOf(column.growth ?? NO_GROWTH, growth) }
  })
}

/** A bare name is a column of the sources first, then the name of a field (PostgreSQL manual, 7.2.3). */
function groupIn({ expressions }: Checking, item: Expression, scope: AccessScope): Expression {
  const [name = ''] = item.kind === 'column' && item.path.length === 1 ? item.path : []
  const isColumn = scope.sources.some(({ rowset }) => rowset.column(name) !== undefined)
  if (!isColumn && isOutput(item, scope)) return item
  return expressions.expression(item, { ...scope, outputs: NOTHING.outputs, unusableOutputs: scope.outputs })
}

function withTable(outer: AccessScope, table: CommonTable, known: readonly RowsetColumn[]): AccessScope {
  // PostgreSQL never merges a recursive common table, so inside it the columns are stored values.
  const values = known.map(column => ({ ...column, growth: null }))
  return { ...outer, commonTables: new Map(outer.commonTables).set(table.name.text, commonTable(table, values)) }
}

/** `order by` of a compound query sees the columns of its result and nothing else. */
function onlyOutputs(fields: readonly ExpressionField[], outer: AccessScope): AccessScope {
  return {
    ...NOTHING,
    commonTables: outer.commonTables,
    outputs: new Set(fields.flatMap(item => outputName(item) ?? [])),
  }
}

// ---- fields and nests ----

interface Projection {
  readonly fields: readonly ExpressionField[]
  readonly nests: readonly Nest[]
  readonly outputs: readonly RowsetColumn[]
}

function projectionIn(checking: Checking, part: Get | Nest, scope: AccessScope): Projection {
  const isCount = part.kind === 'get' && part.purpose === 'count'
  const listed = isCount || part.bare === true ? [] : fieldsIn(checking, part.fields, scope)
  const fields = listed.map(({ field }) => field)
  const nests = part.nests.map(inner => nestIn(checking, inner, scope))
  refuseNameClash(fields, nests)
  const nested = nests.map(nest => ({ name: nestName(nest), type: null, typeText: 'json' }))
  return { fields, nests, outputs: [...outputsOf(listed), ...nested] }
}

/** Checks a nest in a row of `outer`. */
export function nestIn(checking: Checking, nest: Nest, outer: AccessScope): Nest {
  const { catalog, expressions, rights } = checking
  const table = tableOf(nest.table, catalog, rights)
  checking.tally.addRelations(relationsBehind(table, catalog, 'read'), nest.span)
  assertAllowed('read', table, rights, nest.table.span)
  const source = sourceOf(nest.alias ?? table.name, tableRowset(table, rights.of(table).read))
  const scope = scopeWithin(outer, [source])
  const { fields, nests } = projectionIn(checking, nest, scope)
  refuseSameNames(fields)
  const from = nest.from && { ...nest.from, ...functionIn(checking, nest.from, outer).called }
  const on = nest.on ?? (from === undefined ? nestByKey(nest, source, outer.sources, catalog) : null)
  const named = { ...scope, outputs: aliasesOf(fields) }
  const rows = rowsFor(checking, table, source.alias, 'read')
  const where = expressions.optional(nest.where, scope)
  return {
    ...nest,
    fields,
    nests,
    table: qualified(nest.table, table),
    ...(from && { from }),
    on: on === null ? rows : conditionAfter(checking, rows, expressions.expression(on, scope)),
    where: where && conditionAfter(checking, checking.rowsFirst ? rows : null, where),
    ...(nest.groupBy === undefined ? {} : { groupBy: nest.groupBy.map(item => groupIn(checking, item, named)) }),
    orderBy: expressions.orders(nest.orderBy, named),
    limit: expressions.count(nest.limit, 'limit'),
    offset: expressions.count(nest.offset, 'offset'),
  }
}

/** Rejects duplicate keys of a JSON object: most readers would lose one of the two. */
export function refuseNameClash(fields: readonly ExpressionField[], nests: readonly Nest[]): void {
  const names = new Set(fields.flatMap(item => outputName(item) ?? []))
  for (const nest of nests) {
    const name = nestName(nest)
    if (names.has(name) && nest.repeats !== true) {
      throw new GatewayError(
        'PARSE_ERROR',
        `"${name}" is both a column and an expanded relation; give the relation another name: ` +
          `${nest.span.end > 0 ? `nest … as other` : `alias:${name}`}`,
        { span: nest.span },
      )
    }
    names.add(name)
  }
}

function nestName(nest: Nest): string {
  return nest.name ?? nest.alias ?? nest.table.name
}

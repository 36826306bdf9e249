/**
 * The one check between a tree and its SQL: every name against the catalogue, every parameter typed by the column it meets.
 *
 * Only this file makes a `CheckedQuery`, and nothing else can be printed for execution (`run/statement.ts`), so a door that forgets
 * to check does not compile. The checked tree is the same tree with nothing left open: tables carry their schema, columns their alias, `*` is
 * written out, joins have their condition, and parameters are cast.
 */
import type { Catalog, DatabaseFunction, Table } from '../catalog/model.ts'
import { GatewayError } from '../errors.ts'
import type {
  Add,
  Argument,
  Assignment,
  CommonTable,
  Compound,
  Conflict,
  Del,
  Expression,
  ExpressionField,
  Field,
  FunctionSource,
  Get,
  Join,
  Name,
  Nest,
  Parameter,
  RecordSource,
  Set as SetStatement,
  Source,
  Statement,
  TableName,
  With,
} from '../language/ast.ts'
import { outputName } from '../language/output-name.ts'
import { nearest } from '../nearest.ts'
import { shorten } from '../shorten.ts'
import { unreachable } from '../unreachable.ts'
import { ExpressionChecker, isOutput, isParameter, type ParameterKey, type ParameterUse } from './expressions.ts'
import { callableName, type IsCallable } from './functions.ts'
import { joinByKey, nestByKey } from './keys.ts'
import {
  countColumns,
  everyColumn,
  NOTHING,
  type Rowset,
  type RowsetColumn,
  resolveTarget,
  rowset,
  type Scope,
  type ScopeSource,
  sourceOf,
  type TypedField,
  tableRowset,
  unknownColumn,
  within,
} from './scope.ts'
import { UNKNOWN } from './typed.ts'
import { typeNameOf } from './types.ts'
import { assertConflictTarget, assertWritable } from './write.ts'

export type { ParameterKey, ParameterUse } from './expressions.ts'

export type Write = Add | SetStatement | Del

declare const checked: unique symbol

/** A tree that passed the check. The brand cannot be written down outside this file. */
export interface CheckedQuery<T extends Get | Write = Get> {
  readonly [checked]: true
  readonly query: T
  /** What each parameter met, for encoding its value and for errors about it. */
  readonly parameters: ReadonlyMap<ParameterKey, ParameterUse>
}

export interface CheckContext {
  readonly catalog: Catalog
  /** PostgreSQL's name of a text search configuration, for `@@`. */
  readonly searchLanguage: string
  /** Which functions of the database an expression may call; none where it is left out. */
  readonly isCallable?: IsCallable
  /** The type of a parameter that meets nothing which has one, from its value; null leaves it to PostgreSQL. */
  readonly parameterType?: (parameter: Parameter) => string | null
}

/** A write that passed, with the table that it writes to. */
export interface CheckedWrite<T extends Write = Write> extends CheckedQuery<T> {
  readonly table: Table
  readonly serverVersion: number
}

/**
 * Throws `PARSE_ERROR` for a name that does not exist, with the nearest one that the caller may read (decisions 3, 7).
 */
export function checkRead(query: Get, context: CheckContext): CheckedQuery {
  const checker = new Checker(context)
  return brand(checker.get(query, NOTHING), checker)
}

/** As `checkRead`; also for columns that cannot be written, and conflict targets that are no key. */
export function checkWrite<T extends Write>(write: T, context: CheckContext): CheckedWrite<T> {
  const checker = new Checker(context)
  const { serverVersion } = context.catalog
  const query = checker.write(write, NOTHING) as T
  return { ...brand(query, checker), table: checker.table(write.table), serverVersion }
}

function brand<T extends Get | Write>(query: T, { parameters }: Checker): CheckedQuery<T> {
  return { query, parameters } as unknown as CheckedQuery<T>
}

/** As many as a text may have tokens; without a limit a short text of stars over joins of wide tables becomes millions of columns. */
const WRITTEN_OUT_MAX = 16_384

/**
 * In all of a statement. PostgreSQL's planner takes time by their square and more, and looks at no timeout meanwhile: a chain of a thousand common
 * tables, 20 KB of text, held a connection for 53 s.
 */
const SOURCES_MAX = 256

interface Projection {
  readonly fields: readonly ExpressionField[]
  readonly nests: readonly Nest[]
  /** The columns of the rows: what a query around this one can mention. */
  readonly outputs: readonly RowsetColumn[]
}

class Checker {
  readonly #catalog: Catalog
  readonly #expressions: ExpressionChecker
  /** Columns that a star stood for so far. */
  #written = 0
  /** Tables and queries that were mentioned so far. */
  #sources = 0

  constructor({ catalog, searchLanguage, isCallable = () => false, parameterType = () => null }: CheckContext) {
    this.#catalog = catalog
    this.#expressions = new ExpressionChecker({
      searchLanguage,
      parameterType,
      query: (query, outer) => this.get(query, outer),
      function: call => callableName(call, catalog, isCallable),
    })
  }

  get parameters(): ReadonlyMap<ParameterKey, ParameterUse> {
    return this.#expressions.parameters
  }

  // ---- reads -------------------------------------------------------------------------------------------------

  get(query: Get, outside: Scope): Get {
    return this.#get(query, outside).query
  }

  /** `itself`: the recursive common table whose statement this is; its name means what the first part answers, in the others. */
  #get(
    query: Get,
    outside: Scope,
    itself: CommonTable | null = null,
  ): { readonly query: Get; readonly outputs: readonly RowsetColumn[] } {
    if (query.lock !== null) {
      throw new GatewayError('FORBIDDEN', '"for" locks rows for a transaction, which ends with the request', {
        span: query.lock.span,
      })
    }
    const { clause, outer } = this.#with(query.with, outside)
    const sources: ScopeSource[] = []
    const source = this.#source(query.source, outer, sources)
    const joins = query.joins.map(join => this.#join(join, sources, outer))
    const scope = within(outer, sources)
    const { fields, nests, outputs } = this.#projection(query, scope)
    const conditioned = (of: Source, index: number) => this.#conditioned(of, sources[index], scope)
    const named: Scope = { ...scope, outputs: aliasesOf(fields) }
    const beside = itself === null || query.compounds.length === 0 ? outer : withTable(outer, itself, outputs)
    const expressions = this.#expressions
    const checkedQuery: Get = {
      ...query,
      with: clause,
      source: conditioned(source, 0),
      joins: joins.map((join, index) => ({ ...join, source: conditioned(join.source, index + 1) })),
      fields,
      nests,
      distinct: query.distinct && {
        ...query.distinct,
        on: query.distinct.on.map(on => (isOutput(on, named) ? on : expressions.expression(on, scope))),
      },
      where: expressions.optional(query.where, scope),
      groupBy: query.groupBy.map(item => this.#group(item, named)),
      having: expressions.optional(query.having, named),
      windows: query.windows.map(window => ({ ...window, body: expressions.window(window.body, scope) })),
      compounds: query.compounds.map(
        (compound): Compound => ({ ...compound, query: this.get(compound.query, beside) }),
      ),
      orderBy: expressions.orders(query.orderBy, query.compounds.length > 0 ? onlyOutputs(fields, outer) : named),
      limit: expressions.count(query.limit, 'limit'),
      offset: expressions.count(query.offset, 'offset'),
    }
    const counted = [{ name: 'count', type: null, typeText: 'int8' }]
    return { query: checkedQuery, outputs: query.purpose === 'count' ? counted : outputs }
  }

  /** A bare name is a column of the sources first, then what a field is called (manual, 7.2.3). */
  #group(item: Expression, scope: Scope): Expression {
    const [name = ''] = item.kind === 'column' && item.path.length === 1 ? item.path : []
    const isColumn = scope.sources.some(({ rowset }) => rowset.column(name) !== undefined)
    if (!isColumn && isOutput(item, scope)) return item
    return this.#expressions.expression(item, { ...scope, outputs: NOTHING.outputs })
  }

  #nest(nest: Nest, outer: Scope): Nest {
    this.#countSource(nest)
    const table = this.table(nest.table)
    const source: ScopeSource = { ...sourceOf(nest.alias ?? table.name, tableRowset(table)), name: null }
    const scope = within(outer, [source])
    const expressions = this.#expressions
    const { fields, nests } = this.#projection(nest, scope)
    const on = nest.on ?? nestByKey(nest, source, outer.sources, this.#catalog)
    return {
      ...nest,
      fields,
      nests,
      table: qualified(nest.table, table),
      on: expressions.expression(on, scope),
      where: expressions.optional(nest.where, scope),
      orderBy: expressions.orders(nest.orderBy, { ...scope, outputs: aliasesOf(fields) }),
      limit: expressions.count(nest.limit, 'limit'),
      offset: expressions.count(nest.offset, 'offset'),
    }
  }

  #projection(part: Get | Nest, scope: Scope): Projection {
    const listed = part.kind === 'get' && part.purpose === 'count' ? [] : this.#fields(part.fields, scope)
    const fields = listed.map(({ field }) => field)
    const nests = part.nests.map(inner => this.#nest(inner, scope))
    refuseNameClash(fields, nests)
    const nested = nests.map(nest => ({ name: nestName(nest), type: null, typeText: 'json' }))
    return { fields, nests, outputs: [...outputsOf(listed), ...nested] }
  }

  /** No fields stand for every column, written out; so does `*` among others. */
  #fields(fields: readonly Field[], scope: Scope): readonly TypedField[] {
    if (fields.length === 0) return this.#everyColumn(scope, null)
    const written = new Set(fields.flatMap(item => (item.kind === 'field' ? (outputName(item) ?? []) : [])))
    return fields.flatMap((item): readonly TypedField[] => {
      if (item.kind === 'field') return [this.#field(item, scope)]
      if (item.of !== null && !scope.sources.some(source => source.alias === item.of)) {
        throw unknownColumn(`${item.of}.*`, scope, item.span)
      }
      // A column that is also listed by itself appears there, once.
      return this.#everyColumn(scope, item.of).filter(({ field }) => !written.has(outputName(field) ?? ''))
    })
  }

  #countSource({ span }: Source | Nest): void {
    this.#sources++
    if (this.#sources <= SOURCES_MAX) return
    throw new GatewayError('PARSE_ERROR', `the query reads from more than ${SOURCES_MAX} tables and queries`, { span })
  }

  #everyColumn(scope: Scope, alias: string | null): readonly TypedField[] {
    this.#written += countColumns(scope, alias)
    if (this.#written > WRITTEN_OUT_MAX) {
      throw new GatewayError(
        'PARSE_ERROR',
        `the stars of this query stand for more than ${WRITTEN_OUT_MAX} columns; name those that you need`,
      )
    }
    return everyColumn(scope, alias)
  }

  /** What is read out of JSON by a dotted path is called by its last step. */
  #field(item: ExpressionField, scope: Scope): TypedField {
    const { expression, type, typeName } = this.#expressions.typed(item.expression, scope)
    const isPath = expression.kind === 'column' && expression.path.length > 2
    const alias = isPath ? (item.alias ?? expression.path.at(-1) ?? null) : item.alias
    return { field: { ...item, alias, expression }, type, typeText: typeName }
  }

  // ---- common tables -----------------------------------------------------------------------------------------

  #with(clause: With | null, outside: Scope): { readonly clause: With | null; readonly outer: Scope } {
    if (clause === null) return { clause, outer: outside }
    // One map that grows: what is checked sees the tables before it, and no scope outlives its statement.
    const commonTables = new Map(outside.commonTables)
    const outer = { ...outside, commonTables }
    const tables = clause.tables.map(table => {
      const { statement, outputs } = this.#statement(table.statement, outer, clause.recursive ? table : null)
      commonTables.set(table.name.text, commonTable(table, outputs))
      return { ...table, statement }
    })
    return { clause: { ...clause, tables }, outer }
  }

  #statement(
    statement: Statement,
    outer: Scope,
    itself: CommonTable | null,
  ): { readonly statement: Get | Write; readonly outputs: readonly RowsetColumn[] } {
    switch (statement.kind) {
      case 'get': {
        const { query, outputs } = this.#get(statement, outer, itself)
        return { statement: query, outputs }
      }
      case 'add':
      case 'set':
      case 'del': {
        const { write, outputs } = this.#write(statement, outer)
        return { statement: write, outputs }
      }
      default:
        throw new GatewayError('FORBIDDEN', `"with" takes get, add, set and del here, no ${statement.kind}`, {
          span: statement.span,
        })
    }
  }

  // ---- sources -----------------------------------------------------------------------------------------------

  /** The source with its names resolved; what it brings is added to `sources`, and must not be called like one that is there. */
  #source(source: Source, outer: Scope, sources: ScopeSource[]): Source {
    this.#countSource(source)
    const { checkedSource, found } = this.#found(source, outer, sources)
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

  #found(
    source: Source,
    outer: Scope,
    left: readonly ScopeSource[],
  ): { readonly checkedSource: Source; readonly found: ScopeSource } {
    switch (source.kind) {
      case 'table source': {
        const { alias, table } = source
        const common = table.schema === null ? outer.commonTables.get(table.name) : undefined
        const known = common === undefined ? this.table(table) : null
        const name = known === null ? table : qualified(table, known)
        const found: ScopeSource = {
          alias: alias ?? table.name,
          name: alias === null ? name : null,
          rowset: common ?? tableRowset(known ?? this.table(table)),
        }
        return { checkedSource: { ...source, table: name }, found }
      }
      case 'query source': {
        const { query, outputs } = this.#get(source.query, outer)
        const found = sourceOf(source.alias, rowset(`"${source.alias}"`, outputs))
        return { checkedSource: { ...source, query }, found }
      }
      case 'record source':
        return { checkedSource: { ...source, value: this.#json(source) }, found: recordColumns(source) }
      case 'function source': {
        const { called, found } = this.#function(source, within(outer, left))
        return { checkedSource: { ...source, ...called }, found }
      }
      default:
        return unreachable(source)
    }
  }

  /** The condition of `t[condition]` is part of the statement's where: it sees all of its sources, `t` first. */
  #conditioned(source: Source, found: ScopeSource | undefined, scope: Scope): Source {
    if (source.kind !== 'table source' || source.condition === null || found === undefined) return source
    return { ...source, condition: this.#expressions.expression(source.condition, within(scope, [found])) }
  }

  #join(join: Join, sources: ScopeSource[], outer: Scope): Join {
    const around = join.lateral ? within(outer, [...sources]) : outer
    const left = [...sources]
    const source = this.#source(join.source, around, sources)
    const joined = sources.at(-1)
    if (joined === undefined) throw new Error('a join has a source')
    const isFree = join.type === 'cross' || join.lateral
    const on = join.on ?? (isFree ? null : joinByKey(join, joined, left))
    return { ...join, source, on: this.#expressions.optional(on, within(outer, sources)) }
  }

  #json(source: RecordSource): Expression {
    const { value } = source
    if (!isParameter(value)) throw new Error('a record source takes its JSON from a parameter')
    this.#expressions.use(value, { typeName: 'json', type: null, subject: null, list: false })
    return value
  }

  #function(
    source: FunctionSource,
    scope: Scope,
  ): { readonly called: Pick<FunctionSource, 'function' | 'arguments'>; readonly found: ScopeSource } {
    const name = resourceOf(source.function, this.#catalog)
    const meant = this.#catalog.functions.get(name)?.find(({ identityArgs }) => identityArgs === source.identity)
    if (meant === undefined) throw unknownFunction(this.#catalog, name)
    const args = source.arguments.map((argument, index) => ({
      ...argument,
      value: this.#argument(argument, index, meant, scope),
    }))
    return {
      called: { function: { ...source.function, schema: meant.schema }, arguments: args },
      found: sourceOf(source.alias, rowset(`the result of "${name}"`, resultColumns(meant))),
    }
  }

  /** A parameter takes the type of the argument that it is given for. */
  #argument(argument: Argument, index: number, called: DatabaseFunction, scope: Scope): Expression {
    const input =
      argument.name === null
        ? called.inputs[Math.min(index, called.inputs.length - 1)]
        : called.inputs.find(({ name }) => name === argument.name)
    if (input === undefined) throw new Error(`function "${called.resource}" has no argument ${index + 1}`)
    const isElement = input.mode === 'variadic' && !argument.variadic
    const type = isElement ? input.type.of : input.type
    const typed = type === null || type.kind === 'pseudo' ? UNKNOWN : { ...UNKNOWN, type, typeName: type.name }
    const subject = `argument ${input.name === null ? index + 1 : `"${input.name}"`}`
    return this.#expressions.meet(argument.value, typed, scope, subject)
  }

  // ---- writes ------------------------------------------------------------------------------------------------

  write(write: Write, outside: Scope): Write {
    return this.#write(write, outside).write
  }

  #write(write: Write, outside: Scope): { readonly write: Write; readonly outputs: readonly RowsetColumn[] } {
    const { clause, outer } = this.#with(write.with, outside)
    const table = this.table(write.table)
    const { checkedWrite, answered } = this.#changed(write, table, outer)
    const listed = this.#returning(write, answered)
    const returning = listed.map(({ field }) => field)
    return { write: { ...checkedWrite, with: clause, returning }, outputs: outputsOf(listed) }
  }

  /** Unlike in a read, no fields are none; not written, an `add` means `returning *` (language reference). */
  #returning({ kind, returning }: Write, scope: Scope): readonly TypedField[] {
    if (returning === null) return kind === 'add' ? this.#everyColumn(scope, null) : []
    return returning.length === 0 ? [] : this.#fields(returning, scope)
  }

  /** Everything but `returning`, and what that may see. */
  #changed(write: Write, table: Table, outer: Scope): { readonly checkedWrite: Write; readonly answered: Scope } {
    switch (write.kind) {
      case 'add':
        return this.#add(write, table, outer)
      case 'set': {
        const { target, scope, answered, common } = this.#target(write, table, outer)
        const assignments = this.#assignments(write.assignments, table, target, scope)
        return { checkedWrite: { ...write, ...common, assignments }, answered }
      }
      case 'del': {
        const { answered, common } = this.#target(write, table, outer)
        return { checkedWrite: { ...write, ...common }, answered }
      }
      default:
        return unreachable(write)
    }
  }

  #add(add: Add, table: Table, outer: Scope): { readonly checkedWrite: Add; readonly answered: Scope } {
    const name = qualified(add.table, table)
    const target: ScopeSource = { ...sourceOf(table.name, tableRowset(table)), name }
    // Without a list the values are for all columns in order, which PostgreSQL knows as well.
    const columns = add.columns.length === 0 && add.rows.kind !== 'defaults' ? writtenInOrder(table) : add.columns
    this.#writtenColumns(columns, table, target)
    const rows = this.#rows({ ...add, columns }, target, outer)
    const conflict = add.conflict && this.#conflict(add.conflict, table, target, outer)
    return { checkedWrite: { ...add, columns, table: name, rows, conflict }, answered: within(outer, [target]) }
  }

  #rows({ rows, columns }: Add, target: ScopeSource, outer: Scope): Add['rows'] {
    switch (rows.kind) {
      case 'values': {
        const targets = columns.map(({ text, span }) => resolveTarget(text, target, span))
        return {
          ...rows,
          rows: rows.rows.map(row =>
            row.map((value, index) => this.#expressions.meet(value, targets[index] ?? UNKNOWN, outer)),
          ),
        }
      }
      case 'from':
        return { ...rows, query: this.get(rows.query, outer) }
      case 'defaults':
        return rows
      default:
        return unreachable(rows)
    }
  }

  #conflict(conflict: Conflict, table: Table, target: ScopeSource, outer: Scope): Conflict {
    for (const { text, span } of conflict.target) resolveTarget(text, target, span)
    assertConflictTarget(conflict, table)
    const { update } = conflict
    if (update === null) return conflict
    const scope = within(outer, [target, { ...target, alias: 'excluded', name: null }])
    // A bare name is the row that is there; the other one has to be called.
    const own = { ...scope, sources: [target], outer: scope }
    return {
      ...conflict,
      update: {
        assignments: this.#assignments(update.assignments, table, target, own),
        where: this.#expressions.optional(update.where, own),
      },
    }
  }

  /** What changes and deletions have in common. `answered` has no body: that only brought values. */
  #target(
    write: SetStatement | Del,
    table: Table,
    outer: Scope,
  ): {
    readonly target: ScopeSource
    readonly scope: Scope
    readonly answered: Scope
    readonly common: Pick<Del, 'table' | 'joins' | 'where'>
  } {
    const name = qualified(write.table, table)
    const target: ScopeSource = {
      ...sourceOf(write.alias ?? table.name, tableRowset(table)),
      name: write.alias === null ? name : null,
    }
    const sources = [target]
    const unconditioned = write.joins.map(join => this.#join(join, sources, outer))
    const scope = within(outer, sources)
    const joins = unconditioned.map((join, index) => ({
      ...join,
      source: this.#conditioned(join.source, sources[index + 1], scope),
    }))
    const bodies = new Set(joins.map(({ source }) => (source.kind === 'record source' ? source.alias : null)))
    const rest = sources.filter(({ alias }) => !bodies.has(alias))
    const where = write.where === 'all' ? 'all' : this.#expressions.expression(write.where, scope)
    return { target, scope, answered: within(outer, rest), common: { table: name, joins, where } }
  }

  #assignments(
    assignments: readonly Assignment[],
    table: Table,
    target: ScopeSource,
    scope: Scope,
  ): readonly Assignment[] {
    this.#writtenColumns(
      assignments.map(({ column }) => column),
      table,
      target,
    )
    return assignments.map(assignment => {
      const { text, span } = assignment.column
      return {
        ...assignment,
        value: this.#expressions.meet(assignment.value, resolveTarget(text, target, span), scope),
      }
    })
  }

  #writtenColumns(names: readonly Name[], table: Table, target: ScopeSource): void {
    const seen = new Set<string>()
    for (const { text, span } of names) {
      resolveTarget(text, target, span)
      assertWritable(text, table, span)
      if (seen.has(text)) {
        throw new GatewayError('PARSE_ERROR', `column "${text}" is written twice; write it once`, { span })
      }
      seen.add(text)
    }
  }

  // ---- names -------------------------------------------------------------------------------------------------

  table(name: TableName): Table {
    const resource = resourceOf(name, this.#catalog)
    const table = this.#catalog.tables.get(resource)
    if (table === undefined) throw unknownTable(this.#catalog, resource, name.span)
    return table
  }
}

/** The name of the resource that `name` means: bare in the first schema. */
function resourceOf(name: TableName, catalog: Catalog): string {
  const isBare = name.schema === null || name.schema === catalog.schemas[0]
  return isBare ? name.name : `${name.schema}.${name.name}`
}

function qualified(name: TableName, table: Table): TableName {
  return { ...name, schema: table.schema, name: table.name }
}

function withTable(outer: Scope, table: CommonTable, known: readonly RowsetColumn[]): Scope {
  return { ...outer, commonTables: new Map(outer.commonTables).set(table.name.text, commonTable(table, known)) }
}

function commonTable({ name, columns }: CommonTable, known: readonly RowsetColumn[]): Rowset {
  const renamed = known.map((column, index) => ({ ...column, name: columns[index]?.text ?? column.name }))
  return rowset(`"${name.text}"`, renamed)
}

function aliasesOf(fields: readonly ExpressionField[]): ReadonlySet<string> {
  return new Set(fields.flatMap(({ alias }) => alias ?? []))
}

/** The order of a compound sees the columns of its answer and nothing else. */
function onlyOutputs(fields: readonly ExpressionField[], outer: Scope): Scope {
  return {
    ...NOTHING,
    commonTables: outer.commonTables,
    outputs: new Set(fields.flatMap(item => outputName(item) ?? [])),
  }
}

function outputsOf(fields: readonly TypedField[]): readonly RowsetColumn[] {
  return fields.map(({ field, type, typeText }) => ({ name: outputName(field) ?? '', type, typeText }))
}

function nestName(nest: Nest): string {
  return nest.name ?? nest.alias ?? nest.table.name
}

function writtenInOrder(table: Table): readonly Name[] {
  return table.columns
    .filter(column => column.generated === null)
    .map(({ name }) => ({ kind: 'name', text: name, span: { start: 0, end: 0 } }))
}

function recordColumns(source: RecordSource): ScopeSource {
  const columns = source.columns.map(({ name, type }) => ({ name, type: null, typeText: typeNameOf(type) }))
  return sourceOf(source.alias, rowset('the body', columns))
}

function resultColumns({ result }: DatabaseFunction): readonly RowsetColumn[] {
  switch (result.kind) {
    case 'void':
    case 'record':
      return []
    case 'scalar':
      return [result.column]
    case 'composite':
      return result.columns
    default:
      return unreachable(result)
  }
}

/** Two keys of one name in a JSON object: one of them would be lost to most readers. */
function refuseNameClash(fields: readonly Field[], nests: readonly Nest[]): void {
  const names = new Set(fields.flatMap(item => outputName(item) ?? []))
  for (const nest of nests) {
    const name = nestName(nest)
    if (names.has(name)) {
      throw new GatewayError(
        'PARSE_ERROR',
        `"${name}" is a column and an expanded relation; give the relation another name: alias:${name}`,
        { span: nest.span },
      )
    }
    names.add(name)
  }
}

export function unknownTable(catalog: Catalog, name: string, span?: TableName['span']): GatewayError {
  const near = nearest(name, catalog.tables.keys())
  const hint = near === null ? 'GET /api/_schema lists the tables' : `did you mean "${near}"?`
  const extras = span === undefined ? {} : { span }
  return new GatewayError('NOT_FOUND', `there is no table "${shorten(name)}"; ${hint}`, extras)
}

export function unknownFunction(catalog: Catalog, name: string): GatewayError {
  const near = nearest(name, catalog.functions.keys())
  const hint = near === null ? 'GET /api/_rpc/contracts lists the functions' : `did you mean "${near}"?`
  return new GatewayError('NOT_FOUND', `there is no function "${shorten(name)}"; ${hint}`)
}

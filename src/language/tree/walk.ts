/**
 * Traverses a whole tree and passes the scope at each point, either to inspect it (`visit`) or to replace
 * parts of it (`rewrite`). The traversal is complete: a new kind of node or clause that is not handled here
 * does not compile or fails a test.
 */

import type {
  Add,
  Assignment,
  ColumnReference,
  Conflict,
  Count,
  Del,
  Expression,
  Field,
  FunctionCall,
  FunctionSource,
  Get,
  InValues,
  Join,
  Merge,
  MergeAction,
  Name,
  Nest,
  Parameter,
  Returned,
  Set as SetStatement,
  Source,
  Star,
  Statement,
  TableName,
  TypeName,
  With,
} from './ast.ts'
import { mapChildren, mapList, mapOrder, mapWindow, withProperties } from './children.ts'
import { unknownNode } from './error.ts'
import { assertNesting } from './nesting.ts'
import {
  commonTableScopes,
  excludedRelation,
  findCommonTable,
  getScope,
  joinSources,
  lateralScope,
  type NameScope,
  nestScope,
  OUTERMOST,
  withCommonTables,
  writeScope,
} from './scope.ts'

/** The clause of a statement that contains an expression. */
export type Clause =
  | 'distinct'
  | 'fields'
  | 'on'
  | 'where'
  | 'group by'
  | 'having'
  | 'window'
  | 'order by'
  | 'values'
  | 'assignment'
  | 'when'
  | 'returning'
  | 'arguments'
  | 'default'
  | 'check'

/** How a statement uses a table. */
export type TableUse = 'read' | 'add' | 'set' | 'del' | 'merge' | 'make' | 'index' | 'reference'

/** How a statement uses a column that it names outside of an expression. */
export type ColumnUse = 'add' | 'set' | 'conflict' | 'index' | 'reference'

/** Callbacks for the parts of a tree. Children are reported before their parents. */
export interface Visitor {
  /** Called for every table reference, except references to common tables. */
  table?(table: TableName, use: TableUse, scope: NameScope): void
  /**
   * Called for every column in an expression. `resolveColumn` resolves its path; `scope.fields` has the
   * aliases it may refer to.
   */
  column?(column: ColumnReference, clause: Clause, scope: NameScope): void
  /** Called for `*` and `alias.*`, and with null for the `*` that an empty list of fields implies. */
  star?(star: Star | null, clause: 'fields' | 'returning', scope: NameScope): void
  /**
   * Called for columns outside of expressions: of `add`, assignments, conflict targets, indexes and
   * references.
   */
  name?(name: string, use: ColumnUse, table: TableName): void
  /** Called for every parameter, including those of `limit` and `offset`. */
  parameter?(parameter: Parameter, scope: NameScope): void
  /** Called for every list of values of an `in`. */
  list?(list: InValues): void
  /** Called for every function call, in an expression or as a source. */
  call?(call: FunctionCall | FunctionSource): void
  /** Called for the target type of every cast. */
  type?(type: TypeName): void
}

/**
 * Functions that replace parts of a tree. Returning the argument keeps the part unchanged. Children are
 * replaced before their parents; the scope is that of the original tree.
 */
export interface Rewriter {
  expression?(expression: Expression, clause: Clause, scope: NameScope): Expression
  get?(get: Get, scope: NameScope): Get
  nest?(nest: Nest, scope: NameScope): Nest
  join?(join: Join, scope: NameScope): Join
}

/**
 * Reports every part of a statement to `visitor`.
 *
 * @throws LanguageError if the tree is deeper than `NESTING_MAX`.
 */
export function visit(statement: Statement, visitor: Visitor): void {
  assertNesting(statement)
  new Walk(visitor).statement(statement, OUTERMOST)
}

/**
 * Replaces parts of a statement. Returns the same object if nothing changed.
 *
 * @throws LanguageError if the tree is deeper than `NESTING_MAX`.
 */
export function rewrite<S extends Statement>(statement: S, rewriter: Rewriter): S {
  assertNesting(statement)
  // A traversal returns the same kind of statement that it was given.
  return new Walk(rewriter).statement(statement, OUTERMOST) as S
}

/** Replaces parts of a nest, in the scope of the read that contains it. */
export function rewriteNest(nest: Nest, scope: NameScope, rewriter: Rewriter): Nest {
  return new Walk(rewriter).nest(nest, scope)
}

/** Reports every part of a nest to `visitor`, in the scope of the read that contains it. */
export function visitNest(nest: Nest, scope: NameScope, visitor: Visitor): void {
  new Walk(visitor).nest(nest, scope)
}

class Walk {
  readonly #hooks: Visitor & Rewriter

  constructor(hooks: Visitor & Rewriter) {
    this.#hooks = hooks
  }

  statement(statement: Statement, outer: NameScope): Statement {
    switch (statement.kind) {
      case 'get':
        return this.get(statement, outer)
      case 'add':
        return this.#add(statement, outer)
      case 'set':
        return this.#set(statement, outer)
      case 'del':
        return this.#del(statement, outer)
      case 'merge':
        return this.#merge(statement, outer)
      case 'make': {
        const scope = writeScope(outer, { table: statement.table, alias: null })
        this.#hooks.table?.(statement.table, 'make', scope)
        return withProperties(statement, {
          columns: mapList(statement.columns, column => {
            const { references } = column
            if (references !== null) {
              this.#hooks.table?.(references.table, 'reference', scope)
              this.#hooks.name?.(references.column, 'reference', references.table)
            }
            return withProperties(column, {
              default: this.#optional(column.default, 'default', scope),
              check: this.#optional(column.check, 'check', scope),
            })
          }),
        })
      }
      case 'index': {
        const scope = writeScope(outer, { table: statement.table, alias: null })
        this.#hooks.table?.(statement.table, 'index', scope)
        this.#names(statement.columns, 'index', statement.table)
        return withProperties(statement, { where: this.#optional(statement.where, 'where', scope) })
      }
      case 'call':
        return withProperties(statement, { arguments: this.#expressions(statement.arguments, 'arguments', outer) })
      case 'begin':
      case 'commit':
      case 'rollback':
        return statement
      case 'explain':
        return withProperties(statement, { statement: this.statement(statement.statement, outer) })
      default:
        return unknownNode(statement)
    }
  }

  get(get: Get, outer: NameScope): Get {
    const commonTables = this.#with(get.with, outer)
    const around = withCommonTables(outer, get.with)
    const scope = getScope(get, around)
    if (get.fields.length === 0 && get.bare !== true && get.purpose !== 'count')
      this.#hooks.star?.(null, 'fields', scope)
    const replaced = withProperties(get, {
      with: commonTables,
      distinct:
        get.distinct && withProperties(get.distinct, { on: this.#expressions(get.distinct.on, 'distinct', scope) }),
      fields: this.#fields(get.fields, 'fields', scope),
      nests: mapList(get.nests, nest => this.nest(nest, scope)),
      source: this.#source(get.source, scope, around),
      joins: this.#joins(get.joins, scope, around),
      where: this.#optional(get.where, 'where', scope),
      groupBy: this.#expressions(get.groupBy, 'group by', scope),
      having: this.#optional(get.having, 'having', scope),
      windows: mapList(get.windows, window =>
        withProperties(window, { body: mapWindow(window.body, part => this.#expression(part, 'window', scope)) }),
      ),
      compounds: mapList(get.compounds, compound =>
        withProperties(compound, { query: this.get(compound.query, around) }),
      ),
      orderBy: mapOrder(get.orderBy, part => this.#expression(part, 'order by', scope)),
    })
    this.#count(get.limit, scope)
    this.#count(get.offset, scope)
    return this.#hooks.get?.(replaced, scope) ?? replaced
  }

  nest(nest: Nest, parent: NameScope): Nest {
    const scope = nestScope(nest, parent)
    this.#table(nest.table, parent)
    if (nest.fields.length === 0 && nest.bare !== true) this.#hooks.star?.(null, 'fields', scope)
    const replaced = withProperties(nest, {
      ...(nest.from && { from: this.#called(nest.from, parent) }),
      on: this.#optional(nest.on, 'on', scope),
      fields: this.#fields(nest.fields, 'fields', scope),
      nests: mapList(nest.nests, inner => this.nest(inner, scope)),
      where: this.#optional(nest.where, 'where', scope),
      ...(nest.groupBy && { groupBy: this.#expressions(nest.groupBy, 'group by', scope) }),
      orderBy: mapOrder(nest.orderBy, part => this.#expression(part, 'order by', scope)),
    })
    this.#count(nest.limit, scope)
    this.#count(nest.offset, scope)
    return this.#hooks.nest?.(replaced, scope) ?? replaced
  }

  #add(add: Add, outer: NameScope): Add {
    const commonTables = this.#with(add.with, outer)
    const around = withCommonTables(outer, add.with)
    const scope = writeScope(around, { table: add.table, alias: null })
    this.#hooks.table?.(add.table, 'add', scope)
    this.#names(add.columns, 'add', add.table)
    if (add.returning === null) this.#hooks.star?.(null, 'returning', scope)
    const { rows } = add
    return withProperties(add, {
      with: commonTables,
      rows:
        rows.kind === 'values'
          ? withProperties(rows, { rows: mapList(rows.rows, row => this.#expressions(row, 'values', around)) })
          : rows.kind === 'from'
            ? withProperties(rows, { query: this.get(rows.query, around) })
            : rows.items === undefined
              ? rows
              : withProperties(rows, { items: this.#expression(rows.items, 'values', around) }),
      conflict: add.conflict && this.#conflict(add.conflict, add.table, around),
      returning: add.returning && this.#fields(add.returning, 'returning', scope),
      ...(add.returned && { returned: this.#returned(add.returned, scope) }),
    })
  }

  #returned(returned: Returned, scope: NameScope): Returned {
    return withProperties(returned, {
      nests: mapList(returned.nests, nest => this.nest(nest, scope)),
      where: this.#optional(returned.where, 'where', scope),
      orderBy: mapOrder(returned.orderBy, part => this.#expression(part, 'order by', scope)),
    })
  }

  #conflict(conflict: Conflict, table: TableName, around: NameScope): Conflict {
    const scope = writeScope(around, { table, alias: null }, [], [excludedRelation(table)])
    this.#names(conflict.target, 'conflict', table)
    return withProperties(conflict, {
      update:
        conflict.update &&
        withProperties(conflict.update, {
          assignments: this.#assignments(conflict.update.assignments, table, scope),
          where: this.#optional(conflict.update.where, 'where', scope),
        }),
    })
  }

  #set(set: SetStatement, outer: NameScope): SetStatement {
    const commonTables = this.#with(set.with, outer)
    const { scope, around } = this.#target(set, outer)
    if (set.defaults !== undefined) this.#names(set.defaults, 'set', set.table)
    return withProperties(set, {
      with: commonTables,
      joins: this.#joins(set.joins, scope, around),
      assignments: this.#assignments(set.assignments, set.table, scope),
      where: set.where === 'all' ? 'all' : this.#expression(set.where, 'where', scope),
      returning: set.returning && this.#fields(set.returning, 'returning', scope),
      ...(set.returned && { returned: this.#returned(set.returned, scope) }),
    })
  }

  #del(del: Del, outer: NameScope): Del {
    const commonTables = this.#with(del.with, outer)
    const { scope, around } = this.#target(del, outer)
    return withProperties(del, {
      with: commonTables,
      joins: this.#joins(del.joins, scope, around),
      where: del.where === 'all' ? 'all' : this.#expression(del.where, 'where', scope),
      returning: del.returning && this.#fields(del.returning, 'returning', scope),
      ...(del.returned && { returned: this.#returned(del.returned, scope) }),
    })
  }

  #target(write: SetStatement | Del, outer: NameScope): { readonly scope: NameScope; readonly around: NameScope } {
    const around = withCommonTables(outer, write.with)
    const scope = writeScope(around, write, joinSources(write.joins))
    this.#hooks.table?.(write.table, write.kind, scope)
    return { scope, around }
  }

  #merge(merge: Merge, outer: NameScope): Merge {
    const commonTables = this.#with(merge.with, outer)
    const around = withCommonTables(outer, merge.with)
    const scope = writeScope(around, merge, [merge.using])
    this.#hooks.table?.(merge.table, 'merge', scope)
    return withProperties(merge, {
      with: commonTables,
      using: this.#source(merge.using, scope, around),
      on: this.#expression(merge.on, 'on', scope),
      whens: mapList(merge.whens, when =>
        withProperties(when, {
          and: this.#optional(when.and, 'when', scope),
          action: this.#action(when.action, merge.table, scope),
        }),
      ),
    })
  }

  #action(action: MergeAction, table: TableName, scope: NameScope): MergeAction {
    switch (action.kind) {
      case 'merge update':
        return withProperties(action, { assignments: this.#assignments(action.assignments, table, scope) })
      case 'merge insert':
        this.#names(action.columns, 'add', table)
        return withProperties(action, { values: this.#expressions(action.values, 'values', scope) })
      case 'merge delete':
      case 'merge nothing':
        return action
      default:
        return unknownNode(action)
    }
  }

  #with(clause: With | null, outer: NameScope): With | null {
    if (clause === null) return null
    const scopes = commonTableScopes(outer, clause)
    return withProperties(clause, {
      tables: mapList(clause.tables, (table, index) =>
        withProperties(table, { statement: this.statement(table.statement, scopes[index] ?? outer) }),
      ),
    })
  }

  #joins(joins: readonly Join[], scope: NameScope, around: NameScope): readonly Join[] {
    return mapList(joins, (join, index) => {
      const left =
        join.lateral || join.source.kind === 'function source'
          ? lateralScope(scope.relations.slice(0, index + 1), around)
          : around
      const parts = withProperties(join, {
        source: this.#source(join.source, scope, left),
        on: this.#optional(join.on, 'on', scope),
      })
      return this.#hooks.join?.(parts, scope) ?? parts
    })
  }

  /** `scope` is the scope of the statement that has the source; `outer` is what a derived table sees. */
  #source(source: Source, scope: NameScope, outer: NameScope): Source {
    switch (source.kind) {
      case 'query source':
        return withProperties(source, { query: this.get(source.query, outer) })
      case 'record source':
        return withProperties(source, { value: this.#expression(source.value, 'arguments', outer) })
      case 'array source':
        return withProperties(source, {
          values: mapList(source.values, value => this.#expression(value, 'arguments', outer)),
        })
      case 'function source':
        return this.#called(source, outer)
      case 'table source':
        this.#table(source.table, scope)
        return withProperties(source, { condition: this.#optional(source.condition, 'where', scope) })
      default:
        return unknownNode(source)
    }
  }

  #called(source: FunctionSource, outer: NameScope): FunctionSource {
    const called = mapList(source.arguments, argument =>
      withProperties(argument, { value: this.#expression(argument.value, 'arguments', outer) }),
    )
    this.#hooks.call?.(source)
    return withProperties(source, { arguments: called })
  }

  #table(table: TableName, scope: NameScope): void {
    if (findCommonTable(table, scope) === null) this.#hooks.table?.(table, 'read', scope)
  }

  #assignments(assignments: readonly Assignment[], table: TableName, scope: NameScope): readonly Assignment[] {
    return mapList(assignments, assignment => {
      this.#hooks.name?.(assignment.column.text, 'set', table)
      return withProperties(assignment, { value: this.#expression(assignment.value, 'assignment', scope) })
    })
  }

  #names(names: readonly Name[], use: ColumnUse, table: TableName): void {
    for (const name of names) this.#hooks.name?.(name.text, use, table)
  }

  #fields(fields: readonly Field[], clause: 'fields' | 'returning', scope: NameScope): readonly Field[] {
    return mapList(fields, field => {
      if (field.kind === 'field')
        return withProperties(field, { expression: this.#expression(field.expression, clause, scope) })
      this.#hooks.star?.(field, clause, scope)
      return field
    })
  }

  #expressions(expressions: readonly Expression[], clause: Clause, scope: NameScope): readonly Expression[] {
    return mapList(expressions, expression => this.#expression(expression, clause, scope))
  }

  #optional(expression: Expression | null, clause: Clause, scope: NameScope): Expression | null {
    return expression && this.#expression(expression, clause, scope)
  }

  #expression(expression: Expression, clause: Clause, scope: NameScope): Expression {
    if (expression.kind === 'column') this.#hooks.column?.(expression, clause, scope)
    if (expression.kind === 'position' || expression.kind === 'named') this.#hooks.parameter?.(expression, scope)
    if (expression.kind === 'in' && expression.set.kind === 'in values') this.#hooks.list?.(expression.set)
    const replaced = mapChildren(expression, {
      expression: part => this.#expression(part, clause, scope),
      query: query => this.get(query, scope),
    })
    if (expression.kind === 'function') this.#hooks.call?.(expression)
    if (expression.kind === 'cast') this.#hooks.type?.(expression.type)
    return this.#hooks.expression?.(replaced, clause, scope) ?? replaced
  }

  #count(count: Count | null, scope: NameScope): void {
    if (count !== null && count.kind !== 'literal') this.#hooks.parameter?.(count, scope)
  }
}

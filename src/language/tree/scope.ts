/**
 * Name resolution by PostgreSQL's rules: a query sees its own sources, then those of the enclosing queries;
 * common tables are visible after their definition. Needs no catalog.
 */

import type {
  Add,
  CommonTable,
  Del,
  Field,
  Get,
  Join,
  Nest,
  Set as SetStatement,
  Source,
  TableName,
  With,
} from './ast.ts'

/** A source whose columns can be referenced as `name.column`. */
export interface NamedSource {
  readonly name: string
  /** The table as written; null for a derived table. */
  readonly table: TableName | null
  /** True if an alias hides the table's own name, including its qualified form. */
  readonly aliased: boolean
  /** The query of a derived or common table; null for a table. */
  readonly query: Get | CommonTable | null
}

/**
 * Linked list of common tables, latest first. A clause may have thousands, and each sees those before it, so
 * they are not copied.
 */
interface CommonTables {
  readonly latest: CommonTable
  readonly before: CommonTables | null
}

/** The names that are visible at one point of a statement. */
export interface NameScope {
  readonly parent: NameScope | null
  readonly relations: readonly NamedSource[]
  /** The common tables that a table name can refer to, including those of enclosing queries. */
  readonly commonTables: CommonTables | null
  /** The select list, whose aliases `order by` and `having` can use; empty if absent. */
  readonly fields: readonly Field[]
}

/** The scope outside of all statements. */
export const OUTERMOST: NameScope = { parent: null, relations: [], commonTables: null, fields: [] }

/** The meaning of a dotted name. */
export interface ResolvedColumn {
  /** Null for an unqualified column, or for a name that nothing in scope matches. */
  readonly relation: NamedSource | null
  /** The part of the path that names the relation: empty, `alias`, or `schema.table`. */
  readonly qualifier: readonly string[]
  readonly column: string
  /** The path into the column's JSON; empty for the column itself. */
  readonly steps: readonly string[]
}

/**
 * Resolves a dotted name: to `alias.column` or `schema.table.column` if its prefix is in scope (including
 * enclosing queries), otherwise to a column and a path into its JSON.
 */
export function resolveColumn(path: readonly string[], scope: NameScope): ResolvedColumn {
  const [first = '', second = '', third = ''] = path
  if (path.length > 1) {
    const relation = findInScope(first, scope)
    if (relation !== null) return { relation, qualifier: [first], column: second, steps: path.slice(2) }
  }
  if (path.length > 2) {
    const relation = findTable(first, second, scope)
    if (relation !== null) return { relation, qualifier: [first, second], column: third, steps: path.slice(3) }
  }
  return { relation: null, qualifier: [], column: first, steps: path.slice(1) }
}

/** The innermost relation with that name, or null. */
export function findInScope(name: string, scope: NameScope): NamedSource | null {
  for (let at: NameScope | null = scope; at !== null; at = at.parent) {
    for (const relation of at.relations) {
      if (relation.name === name) return relation
    }
  }
  return null
}

function findTable(schema: string, name: string, scope: NameScope): NamedSource | null {
  for (let at: NameScope | null = scope; at !== null; at = at.parent) {
    const found = at.relations.find(({ table, aliased }) => !aliased && table?.schema === schema && table.name === name)
    if (found !== undefined) return found
  }
  return null
}

/** The common table that a table name refers to, or null. */
export function findCommonTable(table: TableName, scope: NameScope): CommonTable | null {
  if (table.schema !== null) return null
  for (let at = scope.commonTables; at !== null; at = at.before) {
    if (at.latest.name.text === table.name) return at.latest
  }
  return null
}

/** `scope` extended by the common tables of a `with` clause. */
export function withCommonTables(scope: NameScope, clause: With | null): NameScope {
  return clause === null ? scope : clause.tables.reduce(withCommonTable, scope)
}

function withCommonTable(scope: NameScope, table: CommonTable): NameScope {
  return {
    parent: scope.parent,
    relations: scope.relations,
    commonTables: { latest: table, before: scope.commonTables },
    fields: scope.fields,
  }
}

/**
 * The scope of each common table's statement: it sees the tables before it, or all of them in a recursive
 * clause.
 */
export function commonTableScopes(scope: NameScope, clause: With): readonly NameScope[] {
  if (clause.recursive) {
    const all = withCommonTables(scope, clause)
    return clause.tables.map(() => all)
  }
  let before = scope
  return clause.tables.map(table => {
    const inside = before
    before = withCommonTable(before, table)
    return inside
  })
}

/** The scope of a read's clauses; `outer` already includes its common tables. */
export function getScope(get: Get, outer: NameScope): NameScope {
  const relations = [sourceRelation(get.source, outer)]
  for (const join of get.joins) relations.push(sourceRelation(join.source, outer))
  return { parent: outer, relations, commonTables: outer.commonTables, fields: get.fields }
}

/** The scope of a `lateral` join's query: it sees all sources to its left. */
export function lateralScope(relations: readonly NamedSource[], outer: NameScope): NameScope {
  return { parent: outer, relations, commonTables: outer.commonTables, fields: [] }
}

/** The scope of a nest's clauses: its own table, then the read around it. */
export function nestScope(nest: Nest, parent: NameScope): NameScope {
  return {
    parent,
    relations: [tableRelation(nest.table, nest.alias, parent)],
    commonTables: parent.commonTables,
    fields: nest.fields,
  }
}

/** The name by which expressions of a write refer to its target. */
export function targetName(write: Add | SetStatement | Del): string {
  return write.kind === 'add' ? write.table.name : (write.alias ?? write.table.name)
}

/** The name by which expressions refer to a source. */
export function sourceName(source: Source): string {
  return source.kind === 'table source' ? (source.alias ?? source.table.name) : source.alias
}

/** The scope of a write: its target, its joins, and additional relations such as `excluded`. */
export function writeScope(
  outer: NameScope,
  target: { readonly table: TableName; readonly alias: string | null },
  sources: readonly Source[] = [],
  further: readonly NamedSource[] = [],
): NameScope {
  const relation: NamedSource = {
    name: target.alias ?? target.table.name,
    table: target.table,
    aliased: hides(target.alias, target.table),
    query: null,
  }
  return {
    parent: outer,
    relations: [relation, ...sources.map(source => sourceRelation(source, outer)), ...further],
    commonTables: outer.commonTables,
    fields: [],
  }
}

/** `excluded`: the row that an `add` proposed for insertion. */
export function excludedRelation(table: TableName): NamedSource {
  return { name: 'excluded', table, aliased: true, query: null }
}

/** The relation that a source adds to the scope. */
export function sourceRelation(source: Source, outer: NameScope): NamedSource {
  if (source.kind === 'table source') return tableRelation(source.table, source.alias, outer)
  const query = source.kind === 'query source' ? source.query : null
  return { name: source.alias, table: null, aliased: true, query }
}

function tableRelation(table: TableName, alias: string | null, outer: NameScope): NamedSource {
  return { name: alias ?? table.name, table, aliased: hides(alias, table), query: findCommonTable(table, outer) }
}

function hides(alias: string | null, table: TableName): boolean {
  return alias !== null && alias !== table.name
}

/** The sources of joins, in order. */
export function joinSources(joins: readonly Join[]): readonly Source[] {
  return joins.map(join => join.source)
}

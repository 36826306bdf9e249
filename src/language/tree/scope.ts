/**
 * Which names a query can see, by the rules of PostgreSQL: its own sources, then those of the queries around it; common tables from
 * the point where they are defined. Needs no catalogue.
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

/** Something whose columns can be named: `name.column`. */
export interface Relation {
  readonly name: string
  /** The table as it was mentioned; null for a derived table. */
  readonly table: TableName | null
  /** An alias hides the table's own name, also the qualified one. */
  readonly aliased: boolean
  /** What stands behind the name when that is not a table: a derived or common table. */
  readonly query: Get | CommonTable | null
}

/** A chain, the latest first: a clause may have thousands, and the statement of each sees those before it. */
interface CommonTables {
  readonly latest: CommonTable
  readonly before: CommonTables | null
}

export interface Scope {
  readonly parent: Scope | null
  readonly relations: readonly Relation[]
  /** Common tables that a table name of this query would mean, those of outer queries included. */
  readonly commonTables: CommonTables | null
  /** The select list, whose aliases `order by` and `having` may use; empty where there is none. */
  readonly fields: readonly Field[]
}

/** Where a statement begins. */
export const OUTERMOST: Scope = { parent: null, relations: [], commonTables: null, fields: [] }

/** What a dotted name means. */
export interface Resolved {
  /** Null: a bare column of some relation in scope, or a name that nothing in scope explains. */
  readonly relation: Relation | null
  /** The part of the path that names the relation: empty, `alias`, or `schema.table`. */
  readonly qualifier: readonly string[]
  readonly column: string
  /** The path into the column's JSON; empty for the column itself. */
  readonly steps: readonly string[]
}

/**
 * Reads a dotted name: `alias.column` (also `schema.table.column`) when its beginning is in scope, outer queries included; else a
 * column and a path into its JSON.
 */
export function resolveColumn(path: readonly string[], scope: Scope): Resolved {
  const [first = '', second = '', third = ''] = path
  if (path.length > 1) {
    const relation = findRelation(first, scope)
    if (relation !== null) return { relation, qualifier: [first], column: second, steps: path.slice(2) }
  }
  if (path.length > 2) {
    const relation = findTable(first, second, scope)
    if (relation !== null) return { relation, qualifier: [first, second], column: third, steps: path.slice(3) }
  }
  return { relation: null, qualifier: [], column: first, steps: path.slice(1) }
}

/** The innermost relation of that name. */
export function findRelation(name: string, scope: Scope): Relation | null {
  for (let at: Scope | null = scope; at !== null; at = at.parent) {
    for (const relation of at.relations) {
      if (relation.name === name) return relation
    }
  }
  return null
}

function findTable(schema: string, name: string, scope: Scope): Relation | null {
  for (let at: Scope | null = scope; at !== null; at = at.parent) {
    const found = at.relations.find(({ table, aliased }) => !aliased && table?.schema === schema && table.name === name)
    if (found !== undefined) return found
  }
  return null
}

/** The common table that this mention means, if it means one. */
export function commonTable(table: TableName, scope: Scope): CommonTable | null {
  if (table.schema !== null) return null
  for (let at = scope.commonTables; at !== null; at = at.before) {
    if (at.latest.name.text === table.name) return at.latest
  }
  return null
}

/** `scope` as a statement sees it that opens with `with`. */
export function withCommonTables(scope: Scope, clause: With | null): Scope {
  return clause === null ? scope : clause.tables.reduce(withCommonTable, scope)
}

function withCommonTable(scope: Scope, table: CommonTable): Scope {
  return {
    parent: scope.parent,
    relations: scope.relations,
    commonTables: { latest: table, before: scope.commonTables },
    fields: scope.fields,
  }
}

/** What the statement of each common table sees: those before it; all of them when the clause is recursive. */
export function commonTableScopes(scope: Scope, clause: With): readonly Scope[] {
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

/** The scope of a read's clauses; `outer` already knows its common tables. */
export function getScope(get: Get, outer: Scope): Scope {
  const relations = [sourceRelation(get.source, outer)]
  for (const join of get.joins) relations.push(sourceRelation(join.source, outer))
  return { parent: outer, relations, commonTables: outer.commonTables, fields: get.fields }
}

/** What the query of a `lateral` join sees: everything to its left. */
export function lateralScope(relations: readonly Relation[], outer: Scope): Scope {
  return { parent: outer, relations, commonTables: outer.commonTables, fields: [] }
}

export function nestScope(nest: Nest, parent: Scope): Scope {
  return {
    parent,
    relations: [tableRelation(nest.table, nest.alias, parent)],
    commonTables: parent.commonTables,
    fields: nest.fields,
  }
}

/** What a write calls its target. */
export function targetName(write: Add | SetStatement | Del): string {
  return write.kind === 'add' ? write.table.name : (write.alias ?? write.table.name)
}

/** What a statement calls a source. */
export function sourceName(source: Source): string {
  return source.kind === 'table source' ? (source.alias ?? source.table.name) : source.alias
}

/** The scope of a write: its target, what it joins, and further names such as `excluded`. */
export function writeScope(
  outer: Scope,
  target: { readonly table: TableName; readonly alias: string | null },
  sources: readonly Source[] = [],
  further: readonly Relation[] = [],
): Scope {
  const relation: Relation = {
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

/** `excluded`: the row that an `add` would have inserted. */
export function excludedRelation(table: TableName): Relation {
  return { name: 'excluded', table, aliased: true, query: null }
}

export function sourceRelation(source: Source, outer: Scope): Relation {
  if (source.kind === 'table source') return tableRelation(source.table, source.alias, outer)
  const query = source.kind === 'query source' ? source.query : null
  return { name: source.alias, table: null, aliased: true, query }
}

function tableRelation(table: TableName, alias: string | null, outer: Scope): Relation {
  return { name: alias ?? table.name, table, aliased: hides(alias, table), query: commonTable(table, outer) }
}

function hides(alias: string | null, table: TableName): boolean {
  return alias !== null && alias !== table.name
}

/** The sources of joins, in order. */
export function joinSources(joins: readonly Join[]): readonly Source[] {
  return joins.map(join => join.source)
}

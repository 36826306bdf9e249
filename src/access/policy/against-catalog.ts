/** The entries of a policy that do not match the schema: a misspelt name protects nothing. */

import type { Catalog, Table } from '../../catalog/model.ts'
import { tableWritten } from '../../catalog/table-names.ts'
import { type Document, DocumentProblems, type Path } from '../../config/document.ts'
import type { Problem } from '../../config/problem.ts'
import { GatewayError } from '../../errors.ts'
import { nearest } from '../../text/nearest.ts'
import { checkCondition } from '../check.ts'
import { isFor, type RoutePolicy } from './legacy.ts'
import { type ColumnRule, type NativePolicy, WILDCARD } from './native.ts'

/** The schema that policies are checked against. */
export interface PolicySchema {
  readonly catalog: Catalog
  readonly searchLanguage: string
}

/**
 * The problems of an access policy: unknown tables and columns, duplicate entries, entries that allow
 * nothing.
 */
export function nativeProblems(
  policy: NativePolicy,
  document: Document,
  { catalog }: PolicySchema,
): readonly Problem[] {
  const problems = new DocumentProblems(document)
  const named = new Map<Table | null, string>()
  for (const [name, entry] of policy.tables) {
    const path = ['tables', name]
    const table = name === WILDCARD ? null : tableWritten(name, catalog)
    if (table === undefined) {
      problems.add(path, 'there is no such table', nearest(name, catalog.tables.keys()))
      continue
    }
    // Only one of the two entries would apply.
    const other = named.get(table)
    if (other !== undefined) problems.add(path, `is the same table as the entry "${other}"; merge them`)
    named.set(table, name)
    if (entry.operations === null && policy.defaultDecision === 'deny') {
      problems.add(
        path,
        'allows nothing: default_decision is "deny" and it has no operations; write operations = [] if that is ' +
          'intended',
      )
    }
    const rules = {
      read_columns: entry.readColumns,
      write_columns: entry.writeColumns,
      returning_columns: entry.returningColumns,
    }
    for (const [key, rule] of Object.entries(rules)) {
      if (rule !== null) addUnknown(columnsOf(rule), table, [...path, key, rule.kind], problems)
    }
  }
  return problems.found
}

/** The problems of a route policy: unknown tables and columns, and filters that do not match their table. */
export function routeProblems(
  policies: readonly RoutePolicy[],
  document: Document,
  { catalog, searchLanguage }: PolicySchema,
): readonly Problem[] {
  const problems = new DocumentProblems(document)
  for (const [index, policy] of policies.entries()) {
    const path = ['policies', index]
    const tables = [...catalog.tables.values()].filter(table => isFor(policy, table))
    if (tables.length === 0) {
      problems.add(
        [...path, 'table'],
        `there is no table "${policy.table}"`,
        nearest(policy.table, catalog.tables.keys()),
      )
      continue
    }
    // A policy for every table can name columns that only some tables have; the others are refused to the
    // callers that it applies to.
    const [only] = policy.table === WILDCARD ? [] : tables
    addUnknown(policy.allowedColumns ?? [], only ?? null, [...path, 'allowed_columns'], problems)
    if (policy.filter === null) continue
    for (const table of tables) {
      const reason = misfit(() => policy.filter && checkCondition(policy.filter, table, { catalog, searchLanguage }))
      if (reason !== null) problems.add([...path, 'filter'], `does not match table "${table.resource}": ${reason}`)
    }
  }
  return problems.found
}

function columnsOf(rule: ColumnRule): readonly string[] {
  return rule.kind === 'only' || rule.kind === 'except' ? rule.columns : []
}

/** `table`: null means every table. */
function addUnknown(columns: readonly string[], table: Table | null, path: Path, problems: DocumentProblems): void {
  if (table === null) return
  for (const [index, name] of columns.entries()) {
    if (table.columnByName.has(name)) continue
    problems.add(
      [...path, index],
      `table "${table.resource}" has no column "${name}"`,
      nearest(name, table.columnByName.keys()),
    )
  }
}

function misfit(check: () => unknown): string | null {
  try {
    check()
    return null
  } catch (error) {
    if (error instanceof GatewayError) return error.message
    throw error
  }
}

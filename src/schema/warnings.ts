/**
 * Warnings about a schema document. Only problems that are certain from the document alone: expressions and
 * queries are not parsed.
 */

import { nearest, WORDS } from '../text/nearest.ts'
import { isOneFamily } from '../types/traits.ts'
import { lookupKeyOf, primaryKeyOf, type SchemaLookup, shownName } from './lookup.ts'
import type {
  CommentDefinition,
  IndexDefinition,
  Name,
  PolicyDefinition,
  ReferenceDefinition,
  SchemaDocument,
  SchemaType,
  Span,
  TableDefinition,
  TableName,
} from './model.ts'
import { isOwnType, printSchemaType, TYPE_NAMES } from './type-name.ts'

export interface SchemaWarning {
  readonly code: WarningCode
  /** The problem and where it is, as a sentence. */
  readonly message: string
  /** The position in the text of the document. */
  readonly span: Span
}

export type WarningCode =
  | 'missing_table'
  | 'missing_column'
  | 'unknown_type'
  | 'duplicate_name'
  | 'no_unique_key'
  | 'wrong_type'
  | 'primary_key_twice'
  | 'tenant_unprotected'
  | 'rls_not_forced'
  | 'rls_not_enabled'
  | 'no_policy'
  | 'policy_clause'
  | 'view_bypasses_rls'

type Report = (code: WarningCode, span: Span, message: string) => void

/** Returns the warnings in the order of the checks; each problem is reported once. */
export function warningsOf(
  document: SchemaDocument,
  lookup: SchemaLookup,
  tenantColumn: string,
): readonly SchemaWarning[] {
  const warnings: SchemaWarning[] = []
  const report: Report = (code, span, message) => warnings.push({ code, message, span })
  checkDuplicates(document, report)
  checkTypes(document, lookup, report)
  const keys = uniqueKeysOf(document, lookup)
  for (const table of document.tables) {
    checkColumnNames(table, lookup, report)
    checkForeignKeys(table, lookup, keys, report)
  }
  for (const index of document.indexes) checkIndex(index, lookup, report)
  checkRowSecurity(document, lookup, tenantColumn, report)
  const functions = new Set(document.functions.map(one => lookupKeyOf(one.name)))
  for (const comment of document.comments) checkComment(comment, functions, lookup, report)
  return warnings
}

// ---- names
// -------------------------------------------------------------------------------------------------

function checkDuplicates(document: SchemaDocument, report: Report): void {
  const { tables, views, indexes, enums, domains, functions, policies, extensions, comments } = document
  // In PostgreSQL tables, views and indexes share their names, and so do types and tables.
  repeated(
    [...tables, ...views],
    one => lookupKeyOf(one.name),
    one => `${shownName(one.name)} is defined twice`,
    report,
  )
  const relations = new Set([...tables, ...views].map(one => lookupKeyOf(one.name)))
  repeated(indexes, indexKey, one => `index ${one.name.text} is defined twice`, report)
  for (const index of indexes.filter(one => relations.has(indexKey(one)))) {
    report('duplicate_name', index.span, `index ${index.name.text} has the name of a table or view`)
  }
  repeated(
    [...enums, ...domains],
    one => lookupKeyOf(one.name),
    one => `type ${shownName(one.name)} is defined twice`,
    report,
  )
  for (const one of [...enums, ...domains].filter(({ name }) => relations.has(lookupKeyOf(name)))) {
    report('duplicate_name', one.span, `type ${shownName(one.name)} has the name of a table or view`)
  }
  repeated(
    functions,
    functionKey,
    one => `function ${shownName(one.name)} is defined twice with the same arguments`,
    report,
  )
  repeated(policies, policyKey, one => `table ${shownName(one.table)} has two policies ${one.name.text}`, report)
  repeated(
    extensions,
    one => one.text,
    one => `extension ${one.text} is listed twice`,
    report,
  )
  repeated(comments, commentKey, one => `${targetName(one)} has two comments`, report)
  for (const one of enums) {
    repeated(
      one.labels,
      label => label.text,
      label => `enum ${shownName(one.name)} has the label ${label.text} twice`,
      report,
    )
  }
  for (const one of tables) {
    repeated(
      one.columns,
      column => column.name.text,
      column => `table ${shownName(one.name)} has two columns ${column.name.text}`,
      report,
    )
  }
}

function repeated<T extends { readonly span: Span }>(
  items: readonly T[],
  key: (item: T) => string,
  message: (item: T) => string,
  report: Report,
): void {
  const seen = new Set<string>()
  for (const item of items) {
    const name = key(item)
    if (seen.has(name)) report('duplicate_name', item.span, message(item))
    seen.add(name)
  }
}

/** An index is in the schema of its table. */
function indexKey(index: IndexDefinition): string {
  return lookupKeyOf({ schema: index.table.schema, name: index.name.text })
}

function policyKey(policy: PolicyDefinition): string {
  return JSON.stringify([lookupKeyOf(policy.table), policy.name.text])
}

function functionKey({ name, arguments: list }: SchemaDocument['functions'][number]): string {
  const types = list
    .filter(one => one.mode !== 'out')
    .map(one => `${lookupKeyOf(one.type)}${one.type.dimensions > 0 ? '[]' : ''}`)
  return JSON.stringify([lookupKeyOf(name), types])
}

function commentKey({ on }: CommentDefinition): string {
  return JSON.stringify(on, (key, value: unknown) => (key === 'span' ? undefined : value))
}

function targetName({ on }: CommentDefinition): string {
  return on.kind === 'column' ? `column ${shownName(on.table)}.${on.column.text}` : shownName(on.name)
}

// ---- types
// -------------------------------------------------------------------------------------------------

/** Extensions without types: they cannot be the source of an unknown type. */
const TYPELESS: ReadonlySet<string> = new Set(
  (
    'plpgsql pgcrypto uuid-ossp pg_trgm btree_gin btree_gist unaccent pg_stat_statements ' +
    'pg_cron dblink file_fdw postgres_fdw fuzzystrmatch'
  ).split(' '),
)

/** Limit on suggestions: each one compares all names of the document, of which there can be thousands. */
export const SUGGESTIONS_MAX = 50

function checkTypes(document: SchemaDocument, lookup: SchemaLookup, report: Report): void {
  // The type may come from an extension.
  if (document.extensions.some(extension => !TYPELESS.has(extension.text))) return
  const names = [...document.enums, ...document.domains].map(one => one.name.name)
  const unknown = typesOf(document).filter(({ type }) => !lookup.isKnown(type))
  for (const [index, { type, owner }] of unknown.entries()) {
    const near =
      index < SUGGESTIONS_MAX ? (nearest(type.name, names, WORDS) ?? nearest(type.name, TYPE_NAMES, WORDS)) : null
    const hint = near === null ? '' : `; did you mean ${near}?`
    report(
      'unknown_type',
      type.span,
      `${owner}: the type ${type.name} is neither PostgreSQL's own nor defined in the document${hint}`,
    )
  }
}

function typesOf(document: SchemaDocument): readonly { readonly type: SchemaType; readonly owner: string }[] {
  return [
    ...document.tables.flatMap(({ name, columns }) =>
      columns.map(column => ({ type: column.type, owner: `column ${shownName(name)}.${column.name.text}` })),
    ),
    ...document.domains.map(({ name, type }) => ({ type, owner: `domain ${shownName(name)}` })),
    ...document.functions.flatMap(({ name, arguments: list, returns }) =>
      [...list, ...(returns.kind === 'table' ? returns.columns : [returns])].map(({ type }) => ({
        type,
        owner: `function ${shownName(name)}`,
      })),
    ),
  ]
}

// ---- tables
// ------------------------------------------------------------------------------------------------

function checkColumnNames(table: TableDefinition, lookup: SchemaLookup, report: Report): void {
  const name = shownName(table.name)
  const columns = lookup.columns(table)
  const mentioned = [
    ...table.keys.flatMap(key => key.columns),
    ...table.foreignKeys.flatMap(key => [...key.columns, ...key.references.onDeleteColumns]),
  ]
  for (const column of mentioned) {
    if (!columns.has(column.text)) report('missing_column', column.span, `table ${name} has no column ${column.text}`)
  }
  const primary = [
    ...table.columns.filter(column => column.primaryKey),
    ...table.keys.filter(key => key.kind === 'primary key'),
  ]
  const [, second] = primary
  if (second !== undefined) {
    report('primary_key_twice', second.span, `table ${name} has two primary keys; write one primary_key (a, b)`)
  }
}

/**
 * The sets of unique columns of each table, as text. Partial indexes and indexes over expressions are not
 * keys.
 */
function uniqueKeysOf(
  document: SchemaDocument,
  lookup: SchemaLookup,
): ReadonlyMap<TableDefinition, ReadonlySet<string>> {
  const keys = new Map(
    document.tables.map(table => [
      table,
      new Set([
        columnSet(primaryKeyOf(table)),
        ...table.columns.filter(column => column.unique).map(column => columnSet([column.name.text])),
        ...table.keys.map(key => columnSet(key.columns.map(column => column.text))),
      ]),
    ]),
  )
  for (const index of document.indexes) {
    if (!index.unique || index.where !== null) continue
    const table = lookup.relation(index.table)
    if (typeof table === 'string' || table.kind !== 'table definition') continue
    const columns = index.elements.map(plainColumn)
    if (columns.every(column => column !== null)) keys.get(table)?.add(columnSet(columns))
  }
  return keys
}

function columnSet(columns: readonly string[]): string {
  return JSON.stringify(columns.toSorted())
}

function checkForeignKeys(
  table: TableDefinition,
  lookup: SchemaLookup,
  keys: ReadonlyMap<TableDefinition, ReadonlySet<string>>,
  report: Report,
): void {
  for (const column of table.columns) {
    if (column.references !== null) checkReference(table, [column.name], column.references, lookup, keys, report)
  }
  for (const key of table.foreignKeys) checkReference(table, key.columns, key.references, lookup, keys, report)
}

function checkReference(
  table: TableDefinition,
  columns: readonly Name[],
  reference: ReferenceDefinition,
  lookup: SchemaLookup,
  keys: ReadonlyMap<TableDefinition, ReadonlySet<string>>,
  report: Report,
): void {
  const target = shownName(reference.table)
  const whole =
    `table ${shownName(table.name)}: (${columns.map(one => one.text).join(', ')}) refers to ` +
    `${target} (${reference.columns.map(one => one.text).join(', ')})`
  const found = lookup.relation(reference.table)
  if (found === 'outside') return
  if (found === 'missing') {
    report('missing_table', reference.table.span, `${whole}, but table ${target} does not exist`)
    return
  }
  if (found.kind === 'view') {
    report('missing_table', reference.table.span, `${whole}, but ${target} is a view`)
    return
  }
  const names = lookup.columns(found)
  const missing = reference.columns.filter(column => !names.has(column.text))
  for (const column of missing)
    report('missing_column', column.span, `${whole}, but ${target} has no column ${column.text}`)
  if (missing.length > 0) return
  if (!keys.get(found)?.has(columnSet(reference.columns.map(column => column.text)))) {
    report('no_unique_key', reference.span, `${whole}, which is neither a primary key nor unique`)
  }
  columns.forEach((column, n) => {
    const from = lookup.columns(table).get(column.text)?.type
    const to = names.get(reference.columns[n]?.text ?? '')?.type
    if (from === undefined || to === undefined || isComparable(from, to)) return
    report(
      'wrong_type',
      column.span,
      `${whole}, but ${column.text} is ${printSchemaType(from)} and the other ${printSchemaType(to)}`,
    )
  })
}

/** Only for built-in types; nothing is known about others. */
function isComparable(a: SchemaType, b: SchemaType): boolean {
  const isOwn = (type: SchemaType): boolean => type.schema === null && isOwnType(type.name)
  if (!isOwn(a) || !isOwn(b)) return true
  if (a.dimensions > 0 !== b.dimensions > 0) return false
  return a.name === b.name || isOneFamily(a.name, b.name)
}

/** No column with order, collation and operator class is longer; a longer element is an expression. */
const PLAIN_LENGTH_MAX = 512

/** The column of an index element without order and operator class; null for an expression. */
function plainColumn(element: string): string | null {
  if (element.length > PLAIN_LENGTH_MAX) return null
  const [, quoted, word, rest = ''] = /^(?:"((?:[^"]|"")+)"|([\p{L}_][\p{L}\p{M}\p{N}_$]*))(.*)$/su.exec(element) ?? []
  if (!/^(?: +(?:[\w.]+|"[^"]*")(?:\([^()]*\))?)*$/.test(rest)) return null
  return quoted?.replaceAll('""', '"') ?? word?.toLowerCase() ?? null
}

function checkIndex(index: IndexDefinition, lookup: SchemaLookup, report: Report): void {
  const whole = `index ${index.name.text} on ${shownName(index.table)}`
  const table = relationOrReport(index.table, whole, lookup, report)
  if (table?.kind !== 'table definition') return
  const names = lookup.columns(table)
  for (const element of index.elements) {
    const column = plainColumn(element)
    if (column !== null && !names.has(column))
      report('missing_column', index.span, `${whole}: column ${column} does not exist`)
  }
  for (const column of index.include.filter(one => !names.has(one.text))) {
    report('missing_column', column.span, `${whole}: column ${column.text} does not exist`)
  }
}

function relationOrReport(
  name: TableName,
  whole: string,
  lookup: SchemaLookup,
  report: Report,
): SchemaDocument['tables' | 'views'][number] | null {
  const found = lookup.relation(name)
  if (found === 'missing') report('missing_table', name.span, `${whole}: table ${shownName(name)} does not exist`)
  return typeof found === 'string' ? null : found
}

function checkComment(
  comment: CommentDefinition,
  functions: ReadonlySet<string>,
  lookup: SchemaLookup,
  report: Report,
): void {
  const { on } = comment
  const whole = `comment on ${targetName(comment)}`
  if (on.kind === 'relation') relationOrReport(on.name, whole, lookup, report)
  else if (on.kind === 'column') {
    const table = relationOrReport(on.table, whole, lookup, report)
    if (table?.kind === 'table definition' && !lookup.columns(table).has(on.column.text)) {
      report('missing_column', on.column.span, `${whole}: column ${on.column.text} does not exist`)
    }
  } else if (on.kind === 'type name') {
    if (lookup.declared(on.name) === null) report('missing_table', on.span, `${whole}: there is no such type`)
  } else if (!functions.has(lookupKeyOf(on.name))) {
    report('missing_table', on.span, `${whole}: there is no such function`)
  }
}

// ---- row-level security
// ------------------------------------------------------------------------------------

function checkRowSecurity(document: SchemaDocument, lookup: SchemaLookup, tenantColumn: string, report: Report): void {
  const policies = new Map<unknown, PolicyDefinition[]>(document.tables.map(table => [table, []]))
  for (const policy of document.policies) {
    const found = relationOrReport(policy.table, `policy ${policy.name.text}`, lookup, report)
    if (found?.kind === 'view') {
      report('missing_table', policy.table.span, `policy ${policy.name.text}: ${shownName(policy.table)} is a view`)
    }
    policies.get(found)?.push(policy)
    checkClauses(policy, report)
  }
  for (const table of document.tables) checkTable(table, policies.get(table) ?? [], lookup, tenantColumn, report)
  checkViews(document, report)
}

function checkTable(
  table: TableDefinition,
  policies: readonly PolicyDefinition[],
  lookup: SchemaLookup,
  tenantColumn: string,
  report: Report,
): void {
  const name = shownName(table.name)
  const { enabled, forced } = table.rowSecurity
  if (!enabled && lookup.columns(table).has(tenantColumn)) {
    report(
      'tenant_unprotected',
      table.name.span,
      `table ${name} has ${tenantColumn}, but no row-level security: write enable_rls, force_rls and a policy`,
    )
  }
  if (!enabled && forced) {
    report(
      'rls_not_enabled',
      table.name.span,
      `table ${name} forces row-level security, but does not enable it: write enable_rls`,
    )
  }
  if (!enabled && policies.length > 0) {
    report(
      'rls_not_enabled',
      table.name.span,
      `table ${name} has policies without effect, because row-level security is not enabled: write enable_rls`,
    )
  }
  if (!enabled) return
  if (!forced) {
    report(
      'rls_not_forced',
      table.name.span,
      `table ${name} does not force row-level security, so its owner sees every row: write force_rls`,
    )
  }
  if (policies.every(policy => policy.restrictive)) {
    const what = policies.length === 0 ? 'no policy' : 'no permissive policy'
    report('no_policy', table.name.span, `table ${name} enables row-level security and has ${what}: no row is visible`)
  }
}

/** PostgreSQL manual, CREATE POLICY. */
function checkClauses(policy: PolicyDefinition, report: Report): void {
  const whole = `policy ${policy.name.text} on ${shownName(policy.table)}`
  const { operation, using, withCheck } = policy
  if (operation === 'insert' && using !== null) {
    report('policy_clause', policy.span, `${whole}: insert takes with_check, but not using`)
  } else if ((operation === 'select' || operation === 'delete') && withCheck !== null) {
    report('policy_clause', policy.span, `${whole}: ${operation} takes using, but not with_check`)
  } else if (using === null && withCheck === null) {
    report('policy_clause', policy.span, `${whole}: it has neither using nor with_check`)
  }
}

/**
 * A view with its owner's privileges bypasses policies. Its query is not parsed: a table counts as read if
 * its name occurs.
 */
function checkViews(document: SchemaDocument, report: Report): void {
  const guarded = new Set(document.tables.filter(table => table.rowSecurity.enabled).map(table => table.name.name))
  if (guarded.size === 0) return
  for (const view of document.views.filter(one => !one.securityInvoker)) {
    const words = view.query.match(/[\p{L}_][\p{L}\p{M}\p{N}_$]*/gu) ?? []
    const table = words.find(word => guarded.has(word))
    if (table === undefined) continue
    const how = view.materialized ? 'holds rows of' : 'is not security_invoker and shows rows of'
    report(
      'view_bypasses_rls',
      view.name.span,
      `view ${shownName(view.name)} ${how} ${table} regardless of its row-level security`,
    )
  }
}

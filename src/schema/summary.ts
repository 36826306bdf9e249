/**
 * The summary of a schema document, as plain data for people and tools. It contains everything in the tree,
 * plus warnings.
 */

import { unknownNode } from '../language/tree/error.ts'
import { lookupOf, primaryKeyOf, type SchemaLookup, shownName } from './lookup.ts'
import type {
  CommentDefinition,
  EnumDefinition,
  Exclusion,
  FunctionDefinition,
  IndexDefinition,
  KeyConstraint,
  Name,
  PolicyDefinition,
  ReferenceDefinition,
  SchemaColumn,
  SchemaDocument,
  TableDefinition,
  ViewDefinition,
} from './model.ts'
import { printResult } from './print.ts'
import type {
  ColumnSummary,
  ExclusionSummary,
  ForeignKeySummary,
  FunctionSummary,
  IndexSummary,
  KeySummary,
  PolicySummary,
  SchemaSummary,
  TableSummary,
  ViewSummary,
} from './summary-model.ts'
import { printSchemaType } from './type-name.ts'
import { warningsOf } from './warnings.ts'

export type * from './summary-model.ts'

export interface SummaryOptions {
  /** The column by which rows belong to a tenant. */
  readonly tenantColumn?: string
}

export function summarize(document: SchemaDocument, options: SummaryOptions = {}): SchemaSummary {
  const lookup = lookupOf(document)
  const comments = new Map(document.comments.map(comment => [targetKey(comment), comment.text]))
  const onColumns = new Map<string, { readonly column: string; readonly comment: string }[]>()
  for (const { on, text } of document.comments) {
    if (on.kind !== 'column') continue
    const name = shownName(on.table)
    const entry = { column: on.column.text, comment: text }
    const known = onColumns.get(name)
    if (known === undefined) onColumns.set(name, [entry])
    else known.push(entry)
  }
  const commentOn = (kind: string, ...names: readonly string[]): string | null =>
    comments.get(JSON.stringify([kind, ...names])) ?? null
  return {
    ok: true,
    tables: document.tables.map(table => summarizeTable(table, lookup, commentOn)),
    enums: document.enums.map(({ name, labels }) => ({
      ...{ name: shownName(name), labels: texts(labels), comment: commentOn('type name', shownName(name)) },
    })),
    domains: document.domains.map(domain => ({
      ...{ name: shownName(domain.name), type: printSchemaType(domain.type), nullable: !domain.notNull },
      ...{ default: domain.default, checks: domain.checks.map(check => check.expression) },
      comment: commentOn('type name', shownName(domain.name)),
    })),
    indexes: document.indexes.map(summarizeIndex),
    policies: document.policies.map(summarizePolicy),
    views: document.views.map(view => summarizeView(view, onColumns.get(shownName(view.name)) ?? [], commentOn)),
    functions: document.functions.map(definition => summarizeFunction(definition, commentOn)),
    extensions: texts(document.extensions),
    warnings: warningsOf(document, lookup, options.tenantColumn ?? 'tenant_id'),
  }
}

type CommentOn = (kind: string, ...names: readonly string[]) => string | null

/** The last comment on an object is used; another one causes a warning. */
export function targetKey({ on }: CommentDefinition): string {
  switch (on.kind) {
    case 'relation':
    case 'type name':
      return JSON.stringify([on.kind, shownName(on.name)])
    case 'column':
      return JSON.stringify([on.kind, shownName(on.table), on.column.text])
    case 'function name':
      return JSON.stringify([on.kind, shownName(on.name), ...on.arguments.map(printSchemaType)])
    default:
      return unknownNode(on)
  }
}

function texts(names: readonly Name[]): readonly string[] {
  return names.map(name => name.text)
}

function summarizeTable(table: TableDefinition, lookup: SchemaLookup, commentOn: CommentOn): TableSummary {
  const name = shownName(table.name)
  return {
    name,
    comment: commentOn('relation', name),
    columns: table.columns.map(column => summarizeColumn(column, table, lookup, commentOn)),
    primary_key: primaryKeyOf(table),
    keys: [...table.columns.flatMap(keysOfColumn), ...table.keys.map(summarizeKey)],
    foreign_keys: [
      ...table.columns.flatMap(column =>
        column.references === null ? [] : [summarizeForeignKey([column.name], column.references)],
      ),
      ...table.foreignKeys.map(key => summarizeForeignKey(key.columns, key.references)),
    ],
    checks: [...table.columns.flatMap(column => column.checks), ...table.checks].map(check => check.expression),
    exclusions: table.exclusions.map(summarizeExclusion),
    partition_by: table.partition && { strategy: table.partition.strategy, elements: table.partition.elements },
    rls: { ...table.rowSecurity },
  }
}

function summarizeColumn(
  column: SchemaColumn,
  table: TableDefinition,
  lookup: SchemaLookup,
  commentOn: CommentOn,
): ColumnSummary {
  const declared = lookup.declared(column.type)
  return {
    ...{ name: column.name.text, type: printSchemaType(column.type), nullable: lookup.isNullable(column, table) },
    ...{ default: column.default, identity: column.identity, generated: column.generated },
    enum: declared?.kind === 'enum' ? labelsOf(declared) : null,
    comment: commentOn('column', shownName(table.name), column.name.text),
  }
}

/**
 * One list shared by all columns of the type: a document can have as many labels as columns, and separate
 * lists would exhaust memory.
 */
const LABELS = new WeakMap<EnumDefinition, readonly string[]>()

function labelsOf(definition: EnumDefinition): readonly string[] {
  const known = LABELS.get(definition) ?? texts(definition.labels)
  LABELS.set(definition, known)
  return known
}

function keysOfColumn(column: SchemaColumn): readonly KeySummary[] {
  const key = {
    columns: [column.name.text],
    nulls_distinct: true,
    without_overlaps: false,
    timing: 'immediate' as const,
  }
  return [
    ...(column.primaryKey ? [{ ...key, primary: true }] : []),
    ...(column.unique ? [{ ...key, primary: false }] : []),
  ]
}

function summarizeKey(key: KeyConstraint): KeySummary {
  return {
    ...{ columns: texts(key.columns), primary: key.kind === 'primary key', nulls_distinct: key.nullsDistinct },
    ...{ without_overlaps: key.withoutOverlaps, timing: key.timing },
  }
}

function summarizeForeignKey(columns: readonly Name[], reference: ReferenceDefinition): ForeignKeySummary {
  return {
    columns: texts(columns),
    references: { table: shownName(reference.table), columns: texts(reference.columns) },
    ...{
      on_delete: reference.onDelete,
      on_delete_columns: texts(reference.onDeleteColumns),
      on_update: reference.onUpdate,
    },
    ...{ match_full: reference.matchFull, period: reference.period, timing: reference.timing },
  }
}

function summarizeExclusion({ method, elements, where, timing }: Exclusion): ExclusionSummary {
  return { method, elements, where, timing }
}

function summarizeIndex(index: IndexDefinition): IndexSummary {
  return {
    ...{
      name: index.name.text,
      table: shownName(index.table),
      unique: index.unique,
      nulls_distinct: index.nullsDistinct,
    },
    ...{ method: index.method ?? 'btree', elements: index.elements, include: texts(index.include), where: index.where },
  }
}

function summarizePolicy(policy: PolicyDefinition): PolicySummary {
  return {
    ...{ name: policy.name.text, table: shownName(policy.table), operation: policy.operation },
    roles: policy.roles.length > 0 ? texts(policy.roles) : ['public'],
    ...{ restrictive: policy.restrictive, using: policy.using, with_check: policy.withCheck },
  }
}

function summarizeView(
  view: ViewDefinition,
  onColumns: readonly { readonly column: string; readonly comment: string }[],
  commentOn: CommentOn,
): ViewSummary {
  const name = shownName(view.name)
  return {
    ...{ name, materialized: view.materialized, security_invoker: view.securityInvoker, query: view.query },
    comment: commentOn('relation', name),
    column_comments: onColumns,
  }
}

function summarizeFunction(definition: FunctionDefinition, commentOn: CommentOn): FunctionSummary {
  return {
    name: shownName(definition.name),
    arguments: definition.arguments.map(argument => ({
      ...{ name: argument.name, type: printSchemaType(argument.type), mode: argument.mode, default: argument.default },
    })),
    returns: printResult(definition.returns, name => name),
    ...{ language: definition.language, volatility: definition.volatility },
    ...{ security_definer: definition.securityDefiner, strict: definition.strict, body: definition.body },
    comment: commentOn('function name', shownName(definition.name), ...inputTypes(definition)),
  }
}

/** PostgreSQL distinguishes functions of the same name by these. */
export function inputTypes(definition: FunctionDefinition): readonly string[] {
  return definition.arguments
    .filter(argument => argument.mode !== 'out')
    .map(argument => printSchemaType(argument.type))
}

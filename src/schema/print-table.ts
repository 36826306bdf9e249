/** Prints tables and domains as canonical text: a line for each column, then one for each directive. */

import { canonicalElement, canonicalExpression, printDocumentExpression } from './expression.ts'
import type {
  Check,
  DomainDefinition,
  Exclusion,
  ForeignKeyDefinition,
  KeyConstraint,
  Name,
  ReferenceAction,
  ReferenceDefinition,
  SchemaColumn,
  TableDefinition,
  Timing,
} from './model.ts'
import { printDocumentTable, printName } from './name.ts'
import { DEFAULT_END, DIRECTIVES } from './parse-table.ts'
import { printSchemaType } from './type-name.ts'

export function printTable(table: TableDefinition): string {
  const { partition, rowSecurity } = table
  const lines = [
    ...table.columns.map(printColumn),
    ...table.keys.map(printKey),
    ...table.foreignKeys.map(printForeignKey),
    ...table.checks.map(printCheck),
    ...table.exclusions.map(printExclusion),
    ...(partition === null
      ? []
      : [`partition_by ${printName(partition.strategy)} ${printElements(partition.elements)}`]),
    ...(rowSecurity.enabled ? ['enable_rls'] : []),
    ...(rowSecurity.forced ? ['force_rls'] : []),
  ]
  return `table ${printDocumentTable(table.name)} {${lines.map(line => `\n  ${line}`).join('')}\n}`
}

export function printNames(names: readonly Name[]): string {
  return `(${names.map(name => printName(name.text)).join(', ')})`
}

export function printDomain(domain: DomainDefinition): string {
  return [
    `domain ${printDocumentTable(domain.name)} ${printSchemaType(domain.type)}`,
    ...(domain.notNull ? ['not_null'] : []),
    ...(domain.default === null ? [] : [`default ${printDocumentExpression(domain.default, DEFAULT_END)}`]),
    ...domain.checks.map(printCheck),
  ].join(' ')
}

function printColumn(column: SchemaColumn): string {
  const { generated } = column
  return [
    `${printName(column.name.text, DIRECTIVES)} ${printSchemaType(column.type)}`,
    ...(column.primaryKey ? ['primary_key'] : []),
    ...(column.notNull ? ['not_null'] : []),
    ...(column.unique ? ['unique'] : []),
    ...(column.default === null ? [] : [`default ${printDocumentExpression(column.default, DEFAULT_END)}`]),
    ...(column.identity === null ? [] : [column.identity === 'always' ? 'identity always' : 'identity']),
    ...(generated === null ? [] : [`generated (${canonicalExpression(generated.expression)})`]),
    ...(generated?.storage === 'virtual' ? ['virtual'] : []),
    ...(column.references === null ? [] : [printReference(column.references)]),
    ...column.checks.map(printCheck),
  ].join(' ')
}

function printKey(key: KeyConstraint): string {
  return [
    `${key.kind === 'unique' ? 'unique' : 'primary_key'} ${printNames(key.columns)}`,
    ...(key.nullsDistinct ? [] : ['nulls_not_distinct']),
    ...(key.withoutOverlaps ? ['without_overlaps'] : []),
    ...printTiming(key.timing),
  ].join(' ')
}

function printForeignKey({ columns, references }: ForeignKeyDefinition): string {
  return `foreign_key ${printNames(columns)} ${printReference(references)}`
}

function printReference(reference: ReferenceDefinition): string {
  return [
    `references ${printDocumentTable(reference.table)} ${printNames(reference.columns)}`,
    ...(reference.onDelete === 'no action' ? [] : [`on_delete ${printAction(reference.onDelete)}`]),
    ...(reference.onDeleteColumns.length === 0 ? [] : [printNames(reference.onDeleteColumns)]),
    ...(reference.onUpdate === 'no action' ? [] : [`on_update ${printAction(reference.onUpdate)}`]),
    ...(reference.matchFull ? ['match_full'] : []),
    ...(reference.period ? ['period'] : []),
    ...printTiming(reference.timing),
  ].join(' ')
}

function printAction(action: ReferenceAction): string {
  return action.replace(' ', '_')
}

const TIMINGS: Readonly<Record<Timing, readonly string[]>> = {
  immediate: [],
  deferrable: ['deferrable'],
  deferred: ['initially_deferred'],
}

function printTiming(timing: Timing): readonly string[] {
  return TIMINGS[timing]
}

function printCheck(check: Check): string {
  return `check (${canonicalExpression(check.expression)})`
}

function printExclusion(exclusion: Exclusion): string {
  return [
    'exclude',
    ...(exclusion.method === null ? [] : [`using ${printName(exclusion.method)}`]),
    printElements(exclusion.elements),
    ...(exclusion.where === null ? [] : [`where (${canonicalExpression(exclusion.where)})`]),
    ...printTiming(exclusion.timing),
  ].join(' ')
}

function printElements(elements: readonly string[]): string {
  return `(${elements.map(canonicalElement).join(', ')})`
}

/**
 * A schema document → TypeScript source: the schema type that the query builder checks names and values by.
 *
 * | PostgreSQL | TypeScript |
 * |---|---|
 * | int2, int4, float4, float8, oid | `number` |
 * | int8, numeric, money | `string`: a `number` would lose digits |
 * | bool | `boolean` |
 * | json, jsonb | `Json` |
 * | enums | the union of their labels |
 * | domains | as the type below |
 * | arrays | `T[]` |
 * | types that the document does not define | `unknown` |
 * | everything else: texts, dates and times, uuid, bytea … | `string`, as PostgreSQL writes it |
 *
 * A column that can be null is `T | null`. A view has columns that the document does not say: any name, any value.
 */

import { byType } from '../types/builtin.ts'
import { type Lookup, lookupOf, shownName } from './lookup.ts'
import type { SchemaColumn, SchemaDocument, SchemaType, TableDefinition } from './model.ts'
import { targetKey } from './summary.ts'
import { isOwnType } from './type-name.ts'

/** Domains over domains: more of them are a circle. */
const DOMAIN_DEPTH_MAX = 16

/** Text of a module that exports `Schema`, and `Json` where a column has it. Ends with a line break. */
export function printTypes(document: SchemaDocument): string {
  const lookup = lookupOf(document)
  const comments = new Map(document.comments.map(comment => [targetKey(comment), comment.text]))
  const commentLines = (...target: readonly string[]): readonly string[] =>
    docLines(comments.get(JSON.stringify(target)))
  const parts = new Map<string, readonly string[]>()
  for (const view of document.views) {
    const name = shownName(view.name)
    const columns = '{ columns: { [column: string]: unknown } }'
    parts.set(name, [...commentLines('relation', name), `${printKey(name)}: ${columns}`])
  }
  for (const table of document.tables) {
    const name = shownName(table.name)
    const columns = Array.from(lookup.columns(table).values())
      .toReversed()
      .flatMap(column => [
        ...commentLines('column', name, column.name.text),
        `${printKey(column.name.text)}: ${columnType(column, table, lookup)}`,
      ])
    parts.set(name, [...commentLines('relation', name), ...nested(`${printKey(name)}:`, nested('columns:', columns))])
  }
  const schema = nested('export interface Schema', Array.from(parts.values()).flat())
  const usesJson = document.tables.some(table => table.columns.some(({ type }) => isJson(type, lookup)))
  return `${[...(usesJson ? [JSON_TYPE, ''] : []), ...schema].join('\n')}\n`
}

const JSON_TYPE =
  'export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json }'

function nested(head: string, lines: readonly string[]): readonly string[] {
  return lines.length === 0 ? [`${head} {}`] : [`${head} {`, ...lines.map(line => `  ${line}`), '}']
}

/** Escapes text so that it cannot end the comment. */
function docLines(comment: string | undefined): readonly string[] {
  if (comment === undefined) return []
  const lines = comment.replaceAll('*/', '*\\/').split(/\r\n|[\r\n\u2028\u2029]/)
  return lines.length === 1 ? [`/** ${lines[0]} */`] : ['/**', ...lines.map(line => ` * ${line}`), ' */']
}

function printKey(name: string): string {
  return /^[A-Za-z_$][A-Za-z0-9_$]*$/.test(name) ? name : printString(name)
}

function printString(text: string): string {
  return `'${JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`
}

function columnType(column: SchemaColumn, table: TableDefinition, lookup: Lookup): string {
  const type = typeText(column.type, lookup, 0)
  // With null, unknown would be no more than unknown.
  return lookup.isNullable(column, table) && type !== 'unknown' ? `${type} | null` : type
}

function typeText(type: SchemaType, lookup: Lookup, depth: number): string {
  const element = elementType(type, lookup, depth)
  const isUnion = type.dimensions > 0 && element.includes(' | ')
  return `${isUnion ? `(${element})` : element}${'[]'.repeat(type.dimensions)}`
}

function elementType(type: SchemaType, lookup: Lookup, depth: number): string {
  const declared = lookup.declared(type)
  if (declared?.kind === 'enum') return declared.labels.map(label => printString(label.text)).join(' | ') || 'never'
  if (declared?.kind === 'domain')
    return depth < DOMAIN_DEPTH_MAX ? typeText(declared.type, lookup, depth + 1) : 'unknown'
  if (type.name === 'citext') return 'string'
  if (type.schema !== null && type.schema !== 'pg_catalog') return 'unknown'
  return OWN.get(type.name) ?? (isOwnType(type.name) || type.schema !== null ? 'string' : 'unknown')
}

const OWN: ReadonlyMap<string, string> = byType({
  ...{ int2: 'number', int4: 'number', float4: 'number', float8: 'number', oid: 'number' },
  ...{ smallserial: 'number', serial: 'number', bool: 'boolean', json: 'Json', jsonb: 'Json' },
})

function isJson(type: SchemaType, lookup: Lookup): boolean {
  let below = type
  for (let depth = 0; depth <= DOMAIN_DEPTH_MAX; depth++) {
    const declared = lookup.declared(below)
    if (declared === null) return elementType(below, lookup, depth) === 'Json'
    if (declared.kind === 'enum') return false
    below = declared.type
  }
  return false
}

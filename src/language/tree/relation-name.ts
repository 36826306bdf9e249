/**
 * Foreign keys guessed from names, for joins and nests without `on`: `<table in the singular>_id` references
 * `id`.
 */

import type { ColumnReference, Comparison } from './ast.ts'
import { NOWHERE } from './ast.ts'

const IRREGULAR: ReadonlyMap<string, string> = new Map([
  ['people', 'person'],
  ['children', 'child'],
  ['men', 'man'],
  ['women', 'woman'],
])

/** Plural endings and their replacements; the first match applies. */
const ENDINGS: readonly (readonly [RegExp, string])[] = [
  [/(series|species|ss|us|is)$/, '$1'],
  [/ies$/, 'y'],
  [/(ss|sh|ch|x|z)es$/, '$1'],
  [/([^aeo])uses$/, '$1us'],
  [/s$/, ''],
]

/**
 * `users` → `user`, `order_items` → `order_item`, `categories` → `category`. A word that is not a plural is
 * unchanged.
 */
export function singular(name: string): string {
  const at = name.lastIndexOf('_') + 1
  const irregular = IRREGULAR.get(name.slice(at))
  if (irregular !== undefined) return name.slice(0, at) + irregular
  for (const [ending, replacement] of ENDINGS) {
    if (ending.test(name)) return name.replace(ending, replacement)
  }
  return name
}

/** A table and its alias. */
export interface AliasedTable {
  readonly table: string
  readonly alias: string
}

/** `holder.<target singular>_id = target.id`. */
export function keyByName(holder: AliasedTable, target: AliasedTable): Comparison {
  const key = column(holder.alias, `${singular(target.table)}_id`)
  return { kind: 'comparison', operator: '=', left: key, right: column(target.alias, 'id'), span: NOWHERE }
}

function column(alias: string, name: string): ColumnReference {
  return { kind: 'column', path: [alias, name], span: NOWHERE }
}

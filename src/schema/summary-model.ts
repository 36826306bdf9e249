/** The shape of a summary as tools return it, with the naming of the gateway's other documents. */

import type { Timing } from './model.ts'
import type { SchemaWarning } from './warnings.ts'

/**
 * A summary. `ok` is always true, because only a document that can be parsed has a summary; tools return it.
 */
export interface SchemaSummary {
  readonly ok: true
  readonly tables: readonly TableSummary[]
  readonly enums: readonly {
    readonly name: string
    readonly labels: readonly string[]
    readonly comment: string | null
  }[]
  readonly domains: readonly DomainSummary[]
  readonly indexes: readonly IndexSummary[]
  readonly policies: readonly PolicySummary[]
  readonly views: readonly ViewSummary[]
  readonly functions: readonly FunctionSummary[]
  readonly extensions: readonly string[]
  readonly warnings: readonly SchemaWarning[]
}

export interface TableSummary {
  readonly name: string
  readonly comment: string | null
  readonly columns: readonly ColumnSummary[]
  readonly primary_key: readonly string[]
  /** All keys including the primary key, each with its properties. */
  readonly keys: readonly KeySummary[]
  readonly foreign_keys: readonly ForeignKeySummary[]
  /** The text of each check, including those of columns. */
  readonly checks: readonly string[]
  readonly exclusions: readonly ExclusionSummary[]
  readonly partition_by: { readonly strategy: string; readonly elements: readonly string[] } | null
  readonly rls: { readonly enabled: boolean; readonly forced: boolean }
}

export interface ColumnSummary {
  readonly name: string
  readonly type: string
  readonly nullable: boolean
  readonly default: string | null
  readonly identity: 'always' | 'by default' | null
  readonly generated: { readonly expression: string; readonly storage: 'stored' | 'virtual' } | null
  readonly enum: readonly string[] | null
  readonly comment: string | null
}

export interface KeySummary {
  readonly columns: readonly string[]
  readonly primary: boolean
  readonly nulls_distinct: boolean
  readonly without_overlaps: boolean
  readonly timing: Timing
}

export interface ForeignKeySummary {
  readonly columns: readonly string[]
  readonly references: { readonly table: string; readonly columns: readonly string[] }
  readonly on_delete: string
  readonly on_delete_columns: readonly string[]
  readonly on_update: string
  readonly match_full: boolean
  readonly period: boolean
  readonly timing: Timing
}

export interface ExclusionSummary {
  readonly method: string | null
  readonly elements: readonly string[]
  readonly where: string | null
  readonly timing: Timing
}

export interface DomainSummary {
  readonly name: string
  readonly type: string
  readonly nullable: boolean
  readonly default: string | null
  readonly checks: readonly string[]
  readonly comment: string | null
}

export interface IndexSummary {
  readonly name: string
  readonly table: string
  readonly unique: boolean
  readonly nulls_distinct: boolean
  readonly method: string
  readonly elements: readonly string[]
  readonly include: readonly string[]
  readonly where: string | null
}

export interface PolicySummary {
  readonly name: string
  readonly table: string
  readonly operation: string
  readonly roles: readonly string[]
  readonly restrictive: boolean
  readonly using: string | null
  readonly with_check: string | null
}

export interface ViewSummary {
  readonly name: string
  readonly materialized: boolean
  readonly security_invoker: boolean
  readonly query: string
  readonly comment: string | null
  readonly column_comments: readonly { readonly column: string; readonly comment: string }[]
}

export interface FunctionSummary {
  readonly name: string
  readonly arguments: readonly {
    readonly name: string | null
    readonly type: string
    readonly mode: string
    readonly default: string | null
  }[]
  readonly returns: string
  readonly language: string
  readonly volatility: string
  readonly security_definer: boolean
  readonly strict: boolean
  readonly body: string
  readonly comment: string | null
}

/**
 * The tree of a schema document: readonly plain data, every node with its `kind` and the `span` of its text.
 * It contains what was written: a key or an identity implies `not_null`, but `notNull` is true only if the
 * words are present. Expressions, bodies and queries are SQL text. Parts of one kind are grouped in the order
 * of the text; the order between kinds has no meaning.
 */

import type { Name, Span, TableName } from '../language/tree/ast.ts'

export type { Name, Span, TableName } from '../language/tree/ast.ts'
export { NOWHERE } from '../language/tree/ast.ts'

export interface SchemaDocument {
  readonly kind: 'document'
  readonly extensions: readonly Name[]
  readonly enums: readonly EnumDefinition[]
  readonly domains: readonly DomainDefinition[]
  readonly tables: readonly TableDefinition[]
  readonly indexes: readonly IndexDefinition[]
  readonly views: readonly ViewDefinition[]
  readonly functions: readonly FunctionDefinition[]
  readonly policies: readonly PolicyDefinition[]
  readonly comments: readonly CommentDefinition[]
  readonly span: Span
}

export interface TableDefinition {
  readonly kind: 'table definition'
  readonly name: TableName
  readonly columns: readonly SchemaColumn[]
  /** Keys in separate directives; keys, references and checks written with a column are in the column. */
  readonly keys: readonly KeyConstraint[]
  readonly foreignKeys: readonly ForeignKeyDefinition[]
  readonly checks: readonly Check[]
  readonly exclusions: readonly Exclusion[]
  readonly partition: PartitionDefinition | null
  /** `enable_rls`, `force_rls`. */
  readonly rowSecurity: { readonly enabled: boolean; readonly forced: boolean }
  readonly span: Span
}

export interface SchemaColumn {
  readonly kind: 'column definition'
  readonly name: Name
  readonly type: SchemaType
  readonly primaryKey: boolean
  readonly notNull: boolean
  readonly unique: boolean
  readonly default: string | null
  readonly identity: 'always' | 'by default' | null
  readonly generated: { readonly expression: string; readonly storage: 'stored' | 'virtual' } | null
  /** The reference written with this column. */
  readonly references: ReferenceDefinition | null
  readonly checks: readonly Check[]
  readonly span: Span
}

/**
 * A type: PostgreSQL's name for a built-in type (`int4`, `timestamptz`, `char` with its length), or the name
 * of a user-defined type as written.
 */
export interface SchemaType {
  readonly kind: 'type'
  readonly schema: string | null
  readonly name: string
  /** `['10', '2']`, `['Point', '4326']`: numbers and words, as written. */
  readonly modifiers: readonly string[]
  /** The number of `[]` after the name. */
  readonly dimensions: number
  readonly span: Span
}

/**
 * When a constraint is checked. `immediate`: after each statement. `deferrable`: the same, unless the
 * transaction defers it. `deferred`: at the end of the transaction, unless the transaction changes that.
 */
export type Timing = 'immediate' | 'deferrable' | 'deferred'

export interface KeyConstraint {
  readonly kind: 'primary key' | 'unique'
  readonly columns: readonly Name[]
  readonly nullsDistinct: boolean
  /** The last column is a range, compared by overlap (PostgreSQL 18, `WITHOUT OVERLAPS`). */
  readonly withoutOverlaps: boolean
  readonly timing: Timing
  readonly span: Span
}

export type ReferenceAction = 'no action' | 'restrict' | 'cascade' | 'set null' | 'set default'

export interface ForeignKeyDefinition {
  readonly kind: 'foreign key'
  readonly columns: readonly Name[]
  readonly references: ReferenceDefinition
  readonly span: Span
}

export interface ReferenceDefinition {
  readonly kind: 'reference'
  readonly table: TableName
  readonly columns: readonly Name[]
  readonly onDelete: ReferenceAction
  /** Columns that `set null` and `set default` change; empty means all columns of the key. */
  readonly onDeleteColumns: readonly Name[]
  readonly onUpdate: ReferenceAction
  readonly matchFull: boolean
  /** The last column is a range, compared by containment (PostgreSQL 18, `PERIOD`). */
  readonly period: boolean
  readonly timing: Timing
  readonly span: Span
}

export interface Check {
  readonly kind: 'check'
  readonly expression: string
  readonly span: Span
}

export interface Exclusion {
  readonly kind: 'exclusion'
  readonly method: string | null
  /** `room with =`, as SQL. */
  readonly elements: readonly string[]
  readonly where: string | null
  readonly timing: Timing
  readonly span: Span
}

export interface PartitionDefinition {
  readonly kind: 'partition'
  readonly strategy: string
  readonly elements: readonly string[]
  readonly span: Span
}

export interface IndexDefinition {
  readonly kind: 'index definition'
  readonly name: Name
  readonly table: TableName
  readonly unique: boolean
  readonly nullsDistinct: boolean
  /** Null: btree. */
  readonly method: string | null
  /**
   * SQL of each element, with its operator class and order: `lower(email)`, `created_at desc`, `"Order
   * Date"`.
   */
  readonly elements: readonly string[]
  readonly include: readonly Name[]
  readonly where: string | null
  readonly span: Span
}

export type PolicyOperation = 'all' | 'select' | 'insert' | 'update' | 'delete'

export interface PolicyDefinition {
  readonly kind: 'policy'
  readonly name: Name
  readonly table: TableName
  readonly operation: PolicyOperation
  /** Empty means `public`, all roles. */
  readonly roles: readonly Name[]
  readonly restrictive: boolean
  readonly using: string | null
  readonly withCheck: string | null
  readonly span: Span
}

export interface EnumDefinition {
  readonly kind: 'enum'
  readonly name: TableName
  readonly labels: readonly Name[]
  readonly span: Span
}

export interface DomainDefinition {
  readonly kind: 'domain'
  readonly name: TableName
  readonly type: SchemaType
  readonly notNull: boolean
  readonly default: string | null
  readonly checks: readonly Check[]
  readonly span: Span
}

export interface ViewDefinition {
  readonly kind: 'view'
  readonly name: TableName
  readonly materialized: boolean
  readonly securityInvoker: boolean
  readonly query: string
  readonly span: Span
}

export type Volatility = 'immutable' | 'stable' | 'volatile'

export interface FunctionDefinition {
  readonly kind: 'function'
  readonly name: TableName
  readonly arguments: readonly FunctionArgument[]
  readonly returns: FunctionResultDefinition
  readonly language: string
  readonly volatility: Volatility
  readonly securityDefiner: boolean
  readonly strict: boolean
  /** The body, unchanged, including white space. */
  readonly body: string
  readonly span: Span
}

export interface FunctionArgument {
  readonly kind: 'argument'
  readonly mode: 'in' | 'out' | 'inout' | 'variadic'
  readonly name: string | null
  readonly type: SchemaType
  readonly default: string | null
  readonly span: Span
}

export type FunctionResultDefinition =
  | { readonly kind: 'value' | 'set'; readonly type: SchemaType; readonly span: Span }
  | { readonly kind: 'table'; readonly columns: readonly ResultColumn[]; readonly span: Span }

export interface ResultColumn {
  readonly kind: 'result column'
  readonly name: Name
  readonly type: SchemaType
  readonly span: Span
}

export interface CommentDefinition {
  readonly kind: 'comment'
  readonly on: CommentTarget
  readonly text: string
  readonly span: Span
}

export type CommentTarget =
  /** A table, view or materialized view. */
  | { readonly kind: 'relation'; readonly name: TableName; readonly span: Span }
  | { readonly kind: 'column'; readonly table: TableName; readonly column: Name; readonly span: Span }
  /** An enum or domain. */
  | { readonly kind: 'type name'; readonly name: TableName; readonly span: Span }
  /** A function, identified by the types of its input arguments. */
  | {
      readonly kind: 'function name'
      readonly name: TableName
      readonly arguments: readonly SchemaType[]
      readonly span: Span
    }

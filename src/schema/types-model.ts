/** The tree that a module of TypeScript types is printed from. Types are TypeScript text without `null`. */

export interface TypesModel {
  readonly tables: readonly TableTypes[]
  readonly functions: readonly FunctionTypes[]
  readonly enums: readonly EnumTypes[]
}

export interface TableTypes {
  /** The name in paths. */
  readonly name: string
  readonly comment: string | null
  /** Null if the columns are unknown: those of a view in a schema document. */
  readonly columns: readonly ColumnTypes[] | null
  /** Whether rows can be created (`insert`) and changed (`update`). */
  readonly writable: { readonly insert: boolean; readonly update: boolean }
  readonly relations: readonly RelationTypes[]
}

export interface ColumnTypes {
  readonly name: string
  readonly comment: string | null
  readonly type: string
  readonly nullable: boolean
  /** `required`: a creation must contain the column. `never`: a creation that contains it is refused. */
  readonly insert: 'required' | 'optional' | 'never'
  readonly updatable: boolean
}

export interface RelationTypes {
  /** What `expand` accepts, without `nested:`. */
  readonly name: string
  readonly table: string
  readonly many: boolean
}

export interface FunctionTypes {
  /** The name in paths; overloads share it. */
  readonly name: string
  readonly comment: string | null
  /** One for each form of the arguments, at least one. */
  readonly arguments: readonly ArgumentsTypes[]
  /** Complete types, which include `null` where NULL is possible. */
  readonly returns: readonly string[]
}

/** Arguments by name; null if they can only be passed by position. */
export type ArgumentsTypes = readonly ArgumentTypes[] | null

export interface ArgumentTypes {
  readonly name: string
  readonly type: string
  readonly required: boolean
}

export interface EnumTypes {
  readonly name: string
  readonly labels: readonly string[]
}

/** The type of any JSON value. */
export const JSON_TYPE = 'Json'

/** The union of an enum's labels. */
export function labelsType(labels: readonly string[]): string {
  return labels.map(printString).join(' | ') || 'never'
}

export function arrayType(element: string, dimensions = 1): string {
  return `${element.includes(' | ') ? `(${element})` : element}${'[]'.repeat(dimensions)}`
}

export function orNull(type: string): string {
  // `Json` already includes null.
  return type === JSON_TYPE || type === 'null' ? type : `${type} | null`
}

/** The row of a table, by its name in paths. */
export function rowType(table: string): string {
  return `Row<${printString(table)}>`
}

/** The named enum. */
export function enumType(name: string): string {
  return `Enum<${printString(name)}>`
}

export function printString(text: string): string {
  return `'${JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`
}

export function printKey(name: string): string {
  return /^[A-Za-z_$][A-Za-z0-9_$]*$/.test(name) ? name : printString(name)
}

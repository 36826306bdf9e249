/** Conditions as objects → the filters of a query string (docs/reference/reading.md#filters). */

import type { AnyRow } from './schema-types.ts'

/** A value in a condition. A `bigint` keeps all its digits, and a `Date` is sent as a time in UTC. */
export type Scalar = string | number | bigint | boolean | Date

/** A value of this column, or another representation of it. */
type Like<V> =
  | (V extends number ? V | bigint | `${number}` : V extends string ? V | Date : V extends Scalar ? V : Scalar | object)
  | never

/** Tests of one column; all of them must hold. */
export interface Tests<V> {
  /** Equal. */
  readonly eq?: Like<V>
  /** Not equal. */
  readonly ne?: Like<V>
  /** Greater. */
  readonly gt?: Like<V>
  /** Greater or equal. */
  readonly gte?: Like<V>
  /** Less. */
  readonly lt?: Like<V>
  /** Less or equal. */
  readonly lte?: Like<V>
  /** One of these values. */
  readonly in?: readonly Like<V>[]
  /** None of these values. */
  readonly not_in?: readonly Like<V>[]
  /** A pattern in which `*` matches any text, and `_` one character. */
  readonly like?: string
  /** The same, case-insensitive. */
  readonly ilike?: string
  /** No match of the pattern. */
  readonly not_like?: string
  /** The same, case-insensitive. */
  readonly not_ilike?: string
  /** A regular expression of PostgreSQL. */
  readonly match?: string
  /** The same, case-insensitive. */
  readonly imatch?: string
  /** Words of a web search. */
  readonly fts?: string
  /** True: NULL. False: not NULL. */
  readonly is_null?: boolean
  /** Not equal, where NULL is compared like a value. */
  readonly is_distinct?: Like<V>
  /** Contains all of these: elements (an array), members of JSON (an object), or a range (a string). */
  readonly contains?: Operand
  /** Contains only these elements or members. */
  readonly contained?: Operand
  /** Contains any of these elements. */
  readonly overlaps?: Operand
}

type Operand = string | readonly Scalar[] | Readonly<Record<string, unknown>>

/** Columns, each with its required value (null for NULL) or with tests. All of them must hold. */
export type Where<Row> = {
  readonly [C in keyof Row]?:
    | Like<NonNullable<Row[C]>>
    | (null extends Row[C] ? null : never)
    | Tests<NonNullable<Row[C]>>
} & { readonly [path in `${keyof Row & string}->${string}`]?: Scalar | null | Tests<Scalar> }

/** Conditions joined by `or`, `and` or `not`. */
export class Group<Row> {
  /** Exists only in the type. */
  declare protected readonly of?: (row: Row) => void
  readonly name: 'or' | 'and' | 'not.and'
  readonly items: readonly object[]

  constructor(name: 'or' | 'and' | 'not.and', items: readonly object[]) {
    this.name = name
    this.items = items
  }
}

/** Rows for which at least one of the conditions holds. */
export function or<Row = AnyRow>(...items: readonly NoInfer<Where<Row> | Group<Row>>[]): Group<Row> {
  return new Group('or', items)
}

/** Rows for which all of the conditions hold. Use it within `or` and `not`. */
export function and<Row = AnyRow>(...items: readonly NoInfer<Where<Row> | Group<Row>>[]): Group<Row> {
  return new Group('and', items)
}

/** Rows for which the conditions do not all hold. */
export function not<Row = AnyRow>(...items: readonly NoInfer<Where<Row> | Group<Row>>[]): Group<Row> {
  return new Group('not.and', items)
}

/** A parameter of the query string, not encoded yet. */
export type ParameterPair = readonly [name: string, value: string]

/**
 * A name in the form of the query string: in double quotes if it contains punctuation, unless it is a path
 * into JSON.
 */
export function columnText(name: string): string {
  return name === '*' || name.includes('->') || PLAIN.test(name) ? name : `"${name.replaceAll('"', '""')}"`
}

const PLAIN = /^\w(?:[\w ]*\w)?$/

/** `prefix`: `items.`, for the rows of a relation. */
export function conditionParameters<Row>(
  conditions: readonly (Where<Row> | Group<Row>)[],
  prefix = '',
): readonly ParameterPair[] {
  return conditions.flatMap((condition): readonly ParameterPair[] =>
    condition instanceof Group
      ? [[prefix + condition.name, `(${groupText(condition)})`]]
      : testsOf(condition).map(([column, operator, value]) => [
          `${prefix}${columnText(column)}.${operator}`,
          Array.isArray(value) && LISTS.has(operator) ? value.map(inQuotes).join(',') : operandText(value),
        ]),
  )
}

function groupText(group: Pick<Group<never>, 'name' | 'items'>): string {
  if (group.items.length === 0) throw new TypeError(`${group.name}() needs at least one condition`)
  return group.items.map(itemText).join(',')
}

function itemText(item: object): string {
  if (item instanceof Group) return `${item.name}(${groupText(item)})`
  const tests = testsOf(item).map(([column, operator, value]) => {
    const operand =
      Array.isArray(value) && LISTS.has(operator) ? `(${value.map(inQuotes).join(',')})` : inQuotes(operandText(value))
    return `${columnText(column)}.${operator}.${operator === 'is_null' ? value : operand}`
  })
  if (tests.length === 0) throw new TypeError('a condition without columns; leave it out')
  return tests.length === 1 ? (tests[0] ?? '') : `and(${tests.join(',')})`
}

const LISTS: ReadonlySet<string> = new Set(['in', 'not_in'])

type Test = readonly [column: string, operator: string, value: unknown]

/**
 * In a condition, undefined is a mistake and does not mean that there is no condition: a filter that silently
 * disappears would match every row.
 */
function testsOf(where: object): readonly Test[] {
  return Object.entries(where).flatMap(([column, value]): readonly Test[] => {
    if (value === undefined)
      throw new TypeError(`the condition on ${column} is undefined; leave the column out, or use null`)
    if (value === null) return [[column, 'is_null', true]]
    if (typeof value !== 'object' || value instanceof Date) return [[column, 'eq', value]]
    return Object.entries(value).map(([operator, operand]) => {
      if (operand === undefined || operand === null) {
        throw new TypeError(`the operand of ${column}.${operator} is ${operand}; leave it out, or use is_null`)
      }
      return [column, operator, operand]
    })
  })
}

function operandText(value: unknown): string {
  if (value instanceof Date) return value.toISOString()
  if (Array.isArray(value)) return `{${value.map(element => inQuotes(element)).join(',')}}`
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

function inQuotes(value: unknown): string {
  return `"${operandText(value).replace(/["\\]/g, '\\$&')}"`
}

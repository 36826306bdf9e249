/**
 * Routing: finds the visibility groups that a change cannot concern. Only the database decides which rows are
 * visible. But if a policy requires `column = <a setting of the caller>`, possibly among other conditions, a
 * row with another value is invisible to the group before and after the change, and no query is needed. A
 * condition that is not fully understood routes to every group.
 */
import { quoteIdentifier } from '../language/sql/quote.ts'
import type { ResultRow } from '../run/run.ts'
import { routeHash } from '../run/write-notifications.ts'

/** A routing column and the setting it is compared with. */
export interface VisibilityRoute {
  readonly column: string
  /** SQL that reads settings which the gateway sets for every statement. */
  readonly value: string
}

/** The values of the routing column before and after a change, as JSON text or as `hashed` prints them. */
export interface Routes {
  readonly column: string
  readonly values: readonly string[]
}

/** The value that all rows visible to a group have in the routing column. */
export interface RouteValue {
  readonly column: string
  /** The value as JSON text and as a hash; empty if no row can have it. */
  readonly values: readonly string[]
}

/** Marks a hash (run/write-notifications), to distinguish it from JSON text. */
export function hashed(hash: string): string {
  return `#${hash}`
}

/** True unless the changed rows are known to have, before and after, other values than a caller's rows. */
export function mayConcern(routes: Routes | null, value: RouteValue | null): boolean {
  if (routes === null || value === null || routes.column !== value.column) return true
  return routes.values.some(text => value.values.includes(text))
}

/** The condition of one policy. */
export interface PolicyCondition {
  readonly permissive: boolean
  readonly condition: string
}

/** Columns whose equal values have equal JSON, by name: numbers or strings. */
export type ExactColumns = ReadonlyMap<string, 'number' | 'string'>

/** Finds the routing column. `settings` are those that the gateway sets for every statement. */
export function routeOf(
  policies: readonly PolicyCondition[],
  exact: ExactColumns,
  settings: ReadonlySet<string>,
): VisibilityRoute | null {
  const required = policies.map(({ condition }) => conjunctsOf(condition).map(part => routeIn(part, exact, settings)))
  const permissive = required.filter((_, index) => policies[index]?.permissive === true)
  const restrictive = required.filter((_, index) => policies[index]?.permissive === false)
  for (const route of restrictive.flat()) if (route !== null) return route
  // Every permissive alternative must require it.
  const [first = [], ...others] = permissive
  const isRequired = (route: VisibilityRoute | null): route is VisibilityRoute =>
    route !== null && others.every(parts => parts.some(other => isSame(other, route)))
  return first.find(isRequired) ?? null
}

/** Selects the value for a caller, as JSON text and as a hash. */
export function routeStatement({ value }: VisibilityRoute): string {
  const json = `pg_catalog.to_json(${value})`
  return `SELECT ${json}, ${routeHash(json)}`
}

/** Converts the result of `routeStatement`. */
export function routeValueOf({ column }: VisibilityRoute, [json, hash]: ResultRow): RouteValue {
  return { column, values: json == null || hash == null ? [] : [json.toString(), hashed(hash.toString())] }
}

/** Types of `pg_catalog` whose values are equal exactly when their JSON is. */
const EXACT_TYPES: ReadonlyMap<string, 'number' | 'string'> = new Map([
  ...(['text', 'varchar', 'uuid'] as const).map(name => [name, 'string'] as const),
  ...(['int2', 'int4', 'int8'] as const).map(name => [name, 'number'] as const),
])

/** The columns with such a type, of a table with these columns. */
export function exactColumns(columns: readonly { readonly name: string; readonly type: string }[]): ExactColumns {
  return new Map(
    columns.flatMap(({ name, type }) => {
      const json = EXACT_TYPES.get(type)
      return json === undefined ? [] : [[name, json] as const]
    }),
  )
}

// --- conditions as PostgreSQL prints them (pg_get_expr) ---

/** Splits `((a) AND (b))` into a and b; any other condition is returned as one. */
function conjunctsOf(condition: string): readonly string[] {
  if (enclosed(condition, 0) !== condition.length) return [condition]
  const parts: string[] = []
  for (let place = 1; ; place += ' AND '.length) {
    const end = enclosed(condition, place)
    if (end === null) return [condition]
    parts.push(condition.slice(place, end))
    place = end
    if (place === condition.length - 1) return parts.length > 1 ? parts.flatMap(conjunctsOf) : [condition]
    if (!condition.startsWith(' AND ', place)) return [condition]
  }
}

/** The position after the parenthesis that closes the one at `start`; null for none. */
function enclosed(text: string, start: number): number | null {
  if (text[start] !== '(') return null
  let depth = 0
  for (let place = start; place < text.length; place++) {
    const character = text[place]
    if (character === "'" || character === '"') {
      // A doubled quote is an end and a beginning. A backslash would be an escape in E'…', which is not
      // supported.
      place = text.indexOf(character, place + 1)
      if (place < 0) return null
    } else if (character === '\\') return null
    else if (character === '(') depth++
    else if (character === ')' && --depth === 0) return place + 1
  }
  return null
}

const SETTING = `current_setting\\('[^'\\\\]*'::text(?:, (?:true|false))?\\)`
const UNCAST_VALUE = `(?:${SETTING}|NULLIF\\(${SETTING}, ''::text\\))`
const VALUE = `(?:\\(${UNCAST_VALUE}\\)::(?:uuid|smallint|integer|bigint|text)|${UNCAST_VALUE})`
const MAYBE_SUBQUERY = `(?:\\( SELECT ${VALUE} AS (?:"[^"]*"|\\w+)\\)|${VALUE})`
const COLUMN = `(?:[a-z_][a-z0-9_]*|"(?:[^"]|"")*")`
const EQUALITY = new RegExp(`^\\((?:(${COLUMN})|\\((${COLUMN})\\)::text) = (${MAYBE_SUBQUERY})\\)$`)

function routeIn(part: string, exact: ExactColumns, settings: ReadonlySet<string>): VisibilityRoute | null {
  const [, bare, asText, value = ''] = EQUALITY.exec(part) ?? []
  const name = bare ?? asText
  if (name === undefined) return null
  const column = [...exact.keys()].find(each => each === name || quoteIdentifier(each) === name)
  const [, setting = ''] = /current_setting\('([^']*)'/.exec(value) ?? []
  if (column === undefined || !settings.has(setting.toLowerCase())) return null
  // The number is compared as text, but its JSON is a number.
  const isNumber = asText !== undefined && exact.get(column) === 'number'
  return { column, value: isNumber ? `NULLIF(${value}, ''::text)::bigint` : value }
}

function isSame(one: VisibilityRoute | null, other: VisibilityRoute): boolean {
  return one !== null && one.column === other.column && one.value === other.value
}

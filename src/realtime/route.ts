/**
 * Which groups a change cannot concern. Only the database decides who sees a row; but where a policy says `column = <a setting of the caller>` and whatever else,
 * a row whose column has another value is seen by nobody of theirs, before and after, and they need not look. What is not understood to the last character concerns
 * everybody.
 */
import type { Table } from '../catalog/model.ts'
import { quoteIdentifier } from '../language/sql/quote.ts'
import { routeHash } from '../run/announce.ts'
import type { Row } from '../run/run.ts'
import { typeSet } from '../types/builtin.ts'

export interface Route {
  readonly column: string
  /** SQL, made of settings that the gateway sets for every statement. */
  readonly value: string
}

/** Of a row before and after a change: what the column was, as JSON text or as `hashed` writes it. */
export interface Routes {
  readonly column: string
  readonly values: readonly string[]
}

/** What a group sees has this value in the column. */
export interface RouteValue {
  readonly column: string
  /** The same value as JSON text and as a hash; none: no row can have it. */
  readonly values: readonly string[]
}

/** Values by their hashes (run/announce) are told apart from JSON texts. */
export function hashed(hash: string): string {
  return `#${hash}`
}

export interface PolicyCondition {
  readonly permissive: boolean
  readonly condition: string
}

/** `exact`: columns whose equal values are the same text. `settings`: those that are set for every statement. */
export function routeOf(
  policies: readonly PolicyCondition[],
  exact: ReadonlySet<string>,
  settings: ReadonlySet<string>,
): Route | null {
  const required = policies.map(({ condition }) => conjunctsOf(condition).map(part => routeIn(part, exact, settings)))
  const permissive = required.filter((_, index) => policies[index]?.permissive === true)
  const restrictive = required.filter((_, index) => policies[index]?.permissive === false)
  for (const route of restrictive.flat()) if (route !== null) return route
  // Each alternative has to demand it.
  const [first = [], ...others] = permissive
  const isDemanded = (route: Route | null): route is Route =>
    route !== null && others.every(parts => parts.some(other => isSame(other, route)))
  return first.find(isDemanded) ?? null
}

/** The value for a caller, as JSON text, and its hash. */
export function routeStatement({ value }: Route): string {
  const json = `pg_catalog.to_json(${value})`
  return `SELECT ${json}, ${routeHash(json)}`
}

/** The answer to `routeStatement`. */
export function routeValueOf({ column }: Route, [json, hash]: Row): RouteValue {
  return { column, values: json == null || hash == null ? [] : [json.toString(), hashed(hash.toString())] }
}

/** Types whose values are equal exactly if their JSON is. */
const EXACT = typeSet('text', 'varchar', 'uuid', 'int2', 'int4', 'int8')

export function exactColumns({ columns }: Table): readonly string[] {
  return columns
    .filter(({ type: { kind, schema, name } }) => kind === 'base' && schema === 'pg_catalog' && EXACT.has(name))
    .map(({ name }) => name)
}

// ---- conditions as PostgreSQL prints them (pg_get_expr) ---------------------------------------------------------

/** `((a) AND (b))` is a and b; anything else is one. */
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

/** Behind the parenthesis that closes the one at `start`; null where there is none. */
function enclosed(text: string, start: number): number | null {
  if (text[start] !== '(') return null
  let depth = 0
  for (let place = start; place < text.length; place++) {
    const character = text[place]
    if (character === "'" || character === '"') {
      // A doubled quote is an end and a beginning. A backslash would mean something else in E'…': not understood.
      place = text.indexOf(character, place + 1)
      if (place < 0) return null
    } else if (character === '\\') return null
    else if (character === '(') depth++
    else if (character === ')' && --depth === 0) return place + 1
  }
  return null
}

const SETTING = `current_setting\\('[^'\\\\]*'::text(?:, (?:true|false))?\\)`
const PLAIN = `(?:${SETTING}|NULLIF\\(${SETTING}, ''::text\\))`
const VALUE = `(?:\\(${PLAIN}\\)::(?:uuid|smallint|integer|bigint|text)|${PLAIN})`
const ONCE = `(?:\\( SELECT ${VALUE} AS (?:"[^"]*"|\\w+)\\)|${VALUE})`
const COLUMN = `(?:[a-z_][a-z0-9_]*|"(?:[^"]|"")*")`
const EQUALITY = new RegExp(`^\\((?:(${COLUMN})|\\((${COLUMN})\\)::text) = (${ONCE})\\)$`)

function routeIn(part: string, exact: ReadonlySet<string>, settings: ReadonlySet<string>): Route | null {
  const [, bare, asText, value = ''] = EQUALITY.exec(part) ?? []
  const name = bare ?? asText
  if (name === undefined) return null
  const column = [...exact].find(each => each === name || quoteIdentifier(each) === name)
  const [, setting = ''] = /current_setting\('([^']*)'/.exec(value) ?? []
  if (column === undefined || !settings.has(setting.toLowerCase())) return null
  return { column, value }
}

function isSame(one: Route | null, other: Route): boolean {
  return one !== null && one.column === other.column && one.value === other.value
}

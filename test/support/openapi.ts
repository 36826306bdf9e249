/** Tools for tests of an OpenAPI document: requests that it allows, and the violations in a response. */

// biome-ignore lint/suspicious/noExplicitAny: an arbitrary JSON document
type Json = any

export interface Walked {
  readonly path: string
  readonly method: string
  readonly operation: Json
  readonly parameters: readonly Json[]
}

const METHODS = ['get', 'post', 'patch', 'delete']

export function follow(document: Json, value: Json): Json {
  if (value?.$ref === undefined) return value
  const keys = value.$ref.slice('#/'.length).split('/')
  return keys.reduce((inner: Json, key: string) => inner[key.replaceAll('~1', '/').replaceAll('~0', '~')], document)
}

/**
 * The document's response object for a status of this operation: its own, or the one shared by all errors.
 */
export function documentedResponse(document: Json, { operation }: Walked, status: number): Json {
  const { [status]: own, default: others } = operation.responses
  return follow(document, own ?? (status >= 400 ? others : undefined))
}

export function operationsOf(document: Json): readonly Walked[] {
  return Object.entries<Json>(document.paths).flatMap(([path, item]) =>
    METHODS.filter(method => item[method] !== undefined).map(method => ({
      path,
      method,
      operation: item[method],
      parameters: [...(item.parameters ?? []), ...(item[method].parameters ?? [])].map(one => follow(document, one)),
    })),
  )
}

/** Pseudo-random numbers from 0 up to 1, always the same for one seed (mulberry32). */
export function random(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

export interface WalkedRequest {
  readonly target: string
  readonly headers: Readonly<Record<string, string>>
  /** Names of the query parameters. */
  readonly given: readonly string[]
}

/** A request that the document allows, including about `share` of the optional parts. */
export function requestOf(
  document: Json,
  { path, parameters }: Walked,
  next: () => number,
  share: number,
): WalkedRequest {
  let filled = path
  const query: string[] = []
  const given: string[] = []
  const headers: Record<string, string> = {}
  for (const parameter of parameters) {
    if (parameter.required !== true && next() >= share) continue
    const schema = follow(document, parameter.schema)
    const isFilter = parameter.schema.$ref?.endsWith('/svc-filter') === true
    const value = isFilter ? FILTERS[Math.floor(next() * FILTERS.length)] : valueFor(document, schema, next)
    if (parameter.in === 'path') {
      filled = filled.replace(`{${parameter.name}}`, encodeURIComponent(String(value)))
      continue
    }
    if (parameter.in === 'header') {
      headers[parameter.name] = String(value)
      continue
    }
    given.push(parameter.name)
    const write = (name: string, text: unknown) =>
      query.push(`${encodeURIComponent(name)}=${encodeURIComponent(String(text))}`)
    // Style `form`: an array is joined with commas or repeated; the members of an object become parameters.
    if (schema.type === 'object') for (const [name, text] of Object.entries(value)) write(name, text)
    else if (Array.isArray(value) && parameter.explode === false) write(parameter.name, value.join(','))
    else for (const one of Array.isArray(value) ? value : [value]) write(parameter.name, one)
  }
  return { target: query.length === 0 ? filled : `${filled}?${query.join('&')}`, headers, given }
}

const FILTERS = ['is_null', 'not.is_null', '1', 'gt.1', 'in.(1,2)', 'like.*a*', 'neq.paid', 'contains.a', 'fts.desk']
const UUID = '00000000-0000-4000-8000-000000000001'

export function valueFor(document: Json, schemaOrReference: Json, next: () => number): Json {
  const schema = follow(document, schemaOrReference)
  const pick = (values: readonly Json[]) => values[Math.floor(next() * values.length)]
  if (schema.enum !== undefined) return pick(schema.enum)
  switch (schema.type) {
    case 'boolean':
      return next() < 0.5
    case 'integer':
      return Math.floor(next() * 20)
    case 'number':
      return Math.floor(next() * 2_000) / 100
    case 'array': {
      const values = Array.from({ length: 1 + Math.floor(next() * 2) }, () => valueFor(document, schema.items, next))
      return [...new Set(values)]
    }
    case 'object':
      return { 'id.is_null': 'false' }
    default:
      return textFor(schema, pick)
  }
}

function textFor(schema: Json, pick: (values: readonly string[]) => string): string {
  switch (schema.format) {
    case 'uuid':
      return UUID
    case 'date':
      return '2025-03-01'
    case 'date-time':
      return '2025-03-01T12:00:00Z'
    default:
      return pick(['desk', 'a b', '1', 'x'])
  }
}

/** The violations of the schema in `value`. With `partial`, members may be missing, as with `select`. */
export function problemsOf(
  document: Json,
  value: Json,
  schemaOrReference: Json,
  partial: boolean,
  at = '$',
): readonly string[] {
  const schema = follow(document, schemaOrReference)
  const inner = (one: Json, by: Json, where: string) => problemsOf(document, one, by, partial, where)
  if (schema.anyOf !== undefined) {
    const tries = schema.anyOf.map((one: Json) => inner(value, one, at))
    return tries.some((found: readonly string[]) => found.length === 0) ? [] : tries[0]
  }
  if (schema.allOf !== undefined) return schema.allOf.flatMap((one: Json) => inner(value, one, at))
  if (schema.type === undefined) return []
  if (value === null) return schema.nullable === true ? [] : [`${at} is null`]
  if (schema.enum !== undefined && !schema.enum.includes(value)) return [`${at} is ${value}, not one of ${schema.enum}`]
  if (!isOfType(value, schema.type)) return [`${at} is ${JSON.stringify(value)} and no ${schema.type}`]
  const beyond = boundsOf(schema, value).filter(([, holds]) => !holds)
  if (beyond.length > 0) return beyond.map(([bound]) => `${at} is ${JSON.stringify(value)}, which violates ${bound}`)
  if (schema.type === 'array') {
    return value.flatMap((one: Json, index: number) => inner(one, schema.items, `${at}[${index}]`))
  }
  if (schema.type !== 'object') return []
  const known = schema.properties ?? {}
  const missing =
    partial && at !== '$' ? [] : (schema.required ?? []).filter((name: string) => !Object.hasOwn(value, name))
  return [
    ...missing.map((name: string) => `${at} has no ${name}`),
    ...Object.entries(value).flatMap(([name, one]) => {
      if (Object.hasOwn(known, name)) return inner(one, known[name], `${at}.${name}`)
      const others = schema.additionalProperties
      if (others === false) return [`${at} has ${name}`]
      return typeof others === 'object' ? inner(one, others, `${at}.${name}`) : []
    }),
  ]
}

const FORMATS: Readonly<Record<string, RegExp>> = {
  uuid: /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/,
  date: /^\d{4}-\d\d-\d\d$/,
  // RFC 3339.
  'date-time': /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/,
}

/** Constraints on a value in addition to its type, with their checks. */
function boundsOf(schema: Json, value: Json): readonly (readonly [bound: string, holds: boolean])[] {
  const { format, pattern, maxLength, minimum, maximum, minItems, maxItems, minProperties } = schema
  const bounds: readonly (readonly [string, unknown, () => boolean])[] = [
    ['format', FORMATS[format], () => FORMATS[format]?.test(value) === true],
    ['pattern', pattern, () => new RegExp(pattern, 'u').test(value)],
    ['maxLength', maxLength, () => [...value].length <= maxLength],
    ['minimum', minimum, () => value >= minimum],
    ['maximum', maximum, () => value <= maximum],
    ['minItems', minItems, () => value.length >= minItems],
    ['maxItems', maxItems, () => value.length <= maxItems],
    ['minProperties', minProperties, () => Object.keys(value).length >= minProperties],
  ]
  return bounds.filter(([, bound]) => bound !== undefined).map(([name, , holds]) => [name, holds()] as const)
}

export interface Shown {
  readonly at: string
  readonly example: Json
  readonly schema: Json
}

/** Every example in a document, with its schema. */
export function examplesOf(value: Json, at = '#'): readonly Shown[] {
  if (typeof value !== 'object' || value === null) return []
  const own = Object.hasOwn(value, 'example') && isSchemaOrParameter(value) ? [value] : []
  return [
    ...own.map(({ example, schema = value }) => ({ at, example, schema })),
    ...Object.entries(value).flatMap(([key, inner]) => (key === 'example' ? [] : examplesOf(inner, `${at}/${key}`))),
  ]
}

/** False for a map of properties in which one property happens to be called `example`. */
function isSchemaOrParameter({ type, schema, anyOf, example, description }: Json): boolean {
  return (
    typeof type === 'string' ||
    schema !== undefined ||
    anyOf !== undefined ||
    typeof (description ?? example) === 'string'
  )
}

function isOfType(value: unknown, type: string): boolean {
  if (type === 'array') return Array.isArray(value)
  if (type === 'integer') return Number.isInteger(value)
  return type === 'object' ? typeof value === 'object' && !Array.isArray(value) : typeof value === type
}

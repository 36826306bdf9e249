/** Types and defaults of columns and arguments as OpenAPI 2.0 documents of PostgREST have them. */
import type { Column, DataType } from '../../catalog/model.ts'
import { quoteIdentifier } from '../../language/sql/quote.ts'

/** SQL's names of built-in types that have another name in the catalog. */
const SQL_NAMES: ReadonlyMap<string, string> = new Map([
  ['int2', 'smallint'],
  ['int4', 'integer'],
  ['int8', 'bigint'],
  ['float4', 'real'],
  ['float8', 'double precision'],
  ['bool', 'boolean'],
  ['varchar', 'character varying'],
  ['bpchar', 'character'],
  ['char', '"char"'],
  ['varbit', 'bit varying'],
  ['time', 'time without time zone'],
  ['timetz', 'time with time zone'],
  ['timestamp', 'timestamp without time zone'],
  ['timestamptz', 'timestamp with time zone'],
])

/** The name of a type without modifiers. Types of the schemas in `visible` are not qualified. */
export function formatOf(type: DataType, visible: readonly string[] = []): string {
  if (type.kind === 'array' && type.of !== null) return `${formatOf(type.of, visible)}[]`
  const base = baseOf(type)
  if (base !== type && isBuiltIn(base)) return formatOf(base, visible)
  if (isBuiltIn(type)) return SQL_NAMES.get(type.name) ?? type.name
  const name = quoteIdentifier(type.name)
  return visible.includes(type.schema) ? name : `${quoteIdentifier(type.schema)}.${name}`
}

/** The type below all domains. */
function baseOf(type: DataType): DataType {
  return type.kind === 'domain' && type.of !== null ? baseOf(type.of) : type
}

function isBuiltIn(type: DataType): boolean {
  const element = type.kind === 'array' && type.of !== null ? type.of : type
  return element.schema === 'pg_catalog'
}

/** A type of JSON. */
export type SwaggerType = 'string' | 'boolean' | 'integer' | 'number' | 'array'

const JSON_TYPES: Readonly<Record<string, SwaggerType>> = {
  ...{ boolean: 'boolean', smallint: 'integer', integer: 'integer', bigint: 'integer' },
  ...{ numeric: 'number', real: 'number', 'double precision': 'number' },
}

/** The type of the JSON value; null for `json` and `jsonb`, which can be any. */
export function jsonTypeOf(format: string): SwaggerType | null {
  if (format === 'json' || format === 'jsonb') return null
  if (format.endsWith('[]')) return 'array'
  return JSON_TYPES[format] ?? 'string'
}

/** Formats of integers that OpenAPI 2.0 defines; other types keep SQL's name. */
const INTEGER_FORMATS: ReadonlyMap<string, string> = new Map([
  ...(['smallint', 'integer'] as const).map(name => [name, 'int32'] as const),
  ['bigint', 'int64'],
])

/** The format of a value as the document has it. */
export function swaggerFormat(format: string): string {
  return INTEGER_FORMATS.get(format) ?? format
}

/** The schema of a value. */
export function swaggerSchema(format: string): Readonly<Record<string, unknown>> {
  const type = jsonTypeOf(format)
  return {
    ...(type === null ? {} : { type }),
    ...(type === 'array' ? { items: itemsOf(format) } : {}),
    format: swaggerFormat(format),
  }
}

function itemsOf(format: string): Readonly<Record<string, unknown>> {
  const type = jsonTypeOf(format.slice(0, -2))
  return type === null ? {} : { type }
}

/** The maximum length of a character or bit column. */
export function maxLengthOf({ typeText }: Column): number | null {
  const length = /^(?:character|bit)(?: varying)?\((\d+)\)$/.exec(typeText)?.[1]
  return length === undefined ? null : Number(length)
}

/**
 * The default of a column: the constant, or the text of an expression for a string. Undefined for any other
 * default that is not a JSON value.
 */
export function defaultOf({ default: text }: Column, format: string): unknown {
  if (text === null) return undefined
  if (jsonTypeOf(format) !== 'string') return parsed(text)
  const constant = /^'((?:[^']|'')*)'(?:::.*)?$/s.exec(text)?.[1]
  return constant === undefined ? text : constant.replaceAll("''", "'")
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

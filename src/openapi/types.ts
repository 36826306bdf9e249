/**
 * Data types as schemas of the JSON that PostgreSQL prints for their values (PostgreSQL manual, 9.16.1 and
 * 8), and accepts.
 */
import { baseOf } from '../access/types.ts'
import type { DataType } from '../catalog/model.ts'
import { byType } from '../types/builtin.ts'
import type { SchemaObject } from './model.ts'

/** Any JSON value. */
export const ANY: SchemaObject = {}

/** A nullable schema: NULL is JSON's null. An enumeration has to list it. */
export function nullable(schema: SchemaObject): SchemaObject {
  if (Object.keys(schema).length === 0) return schema
  return { ...schema, nullable: true, ...(schema.enum === undefined ? {} : { enum: [...schema.enum, null] }) }
}

/**
 * The schema of a type. `typeText` includes modifiers, such as `character varying(20)`; for a domain it is
 * its name.
 */
export function valueSchema(type: DataType, typeText: string): SchemaObject {
  const base = baseOf(type)
  switch (base.kind) {
    case 'enum':
      return { type: 'string', enum: base.labels }
    case 'array':
      // A type does not define the number of dimensions; nearly all values have one.
      return base.of === null
        ? ANY
        : { type: 'array', items: nullable(valueSchema(base.of, typeText.replace(/\[\]$/, ''))) }
    case 'range':
    case 'multirange':
      return { type: 'string' }
    case 'composite':
      return { type: 'object', additionalProperties: true }
    case 'pseudo':
      return ANY
    default:
      return baseSchema(base, typeText)
  }
}

/** The schema of a value in a path or query string: values that are not scalars are written as text. */
export function textSchema(type: DataType, typeText: string): SchemaObject {
  const schema = valueSchema(type, typeText)
  return schema.type === undefined || schema.type === 'array' || schema.type === 'object' ? { type: 'string' } : schema
}

/**
 * Numbers are JSON numbers with all digits, whether or not a client can represent them: `int64` and `number`
 * without a format exceed the plain numbers of some languages.
 */
const SCHEMA_OF: ReadonlyMap<string, SchemaObject> = byType<SchemaObject>({
  bool: { type: 'boolean' },
  int2: { type: 'integer', format: 'int32', minimum: -32_768, maximum: 32_767 },
  int4: { type: 'integer', format: 'int32' },
  int8: { type: 'integer', format: 'int64' },
  float4: { type: 'number', format: 'float' },
  float8: { type: 'number', format: 'double' },
  numeric: { type: 'number' },
  uuid: { type: 'string', format: 'uuid' },
  date: { type: 'string', format: 'date' },
  timestamptz: { type: 'string', format: 'date-time' },
  // Without an offset they are not the date-time and time of RFC 3339; these names are in the registry of
  // formats.
  timestamp: { type: 'string', format: 'date-time-local' },
  timetz: { type: 'string', format: 'time' },
  time: { type: 'string', format: 'time-local' },
  json: ANY,
  jsonb: ANY,
})

const LENGTH = /^character(?: varying)?\((\d+)\)/

function baseSchema({ schema, name, category }: DataType, typeText: string): SchemaObject {
  if (schema === 'pg_catalog') {
    const length = LENGTH.exec(typeText)?.[1]
    const known = SCHEMA_OF.get(name) ?? { type: 'string' }
    return length === undefined ? known : { ...known, maxLength: Number(length) }
  }
  // A type from an extension may have a cast to JSON, which determines the form; strings have none.
  return category === 'S' ? { type: 'string' } : ANY
}

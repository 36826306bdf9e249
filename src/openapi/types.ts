/** Data types as schemas of the JSON that PostgreSQL writes for their values (PostgreSQL manual, 9.16.1 and 8), which is also what it reads. */
import { baseOf } from '../access/types.ts'
import type { DataType } from '../catalog/model.ts'
import { byType } from '../types/builtin.ts'
import type { Schema } from './model.ts'

/** Any JSON value. */
export const ANY: Schema = {}

/** A value that may be missing: PostgreSQL's NULL is JSON's null. Enumerated values have to list it. */
export function nullable(schema: Schema): Schema {
  if (Object.keys(schema).length === 0) return schema
  return { ...schema, nullable: true, ...(schema.enum === undefined ? {} : { enum: [...schema.enum, null] }) }
}

/** `typeText` with modifiers, e.g. `character varying(20)`; of a domain its name. */
export function valueSchema(type: DataType, typeText: string): Schema {
  const base = baseOf(type)
  switch (base.kind) {
    case 'enum':
      return { type: 'string', enum: base.labels }
    case 'array':
      // How many dimensions a value has, no type says; nearly all have one.
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

/** What a path or a query string can hold: values that are more than a scalar are written as text. */
export function textSchema(type: DataType, typeText: string): Schema {
  const schema = valueSchema(type, typeText)
  return schema.type === undefined || schema.type === 'array' || schema.type === 'object' ? { type: 'string' } : schema
}

/**
 * Numbers are JSON numbers with all their digits, whatever a client can hold: an `int64` and a `number` without format are not for every
 * language's plain numbers.
 */
const SCHEMA_OF: ReadonlyMap<string, Schema> = byType<Schema>({
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
  // Without an offset they are no date-time and no time of RFC 3339; these names are in the registry of formats.
  timestamp: { type: 'string', format: 'date-time-local' },
  timetz: { type: 'string', format: 'time' },
  time: { type: 'string', format: 'time-local' },
  json: ANY,
  jsonb: ANY,
})

const LENGTH = /^character(?: varying)?\((\d+)\)/

function baseSchema({ schema, name, category }: DataType, typeText: string): Schema {
  if (schema === 'pg_catalog') {
    const length = LENGTH.exec(typeText)?.[1]
    const known = SCHEMA_OF.get(name) ?? { type: 'string' }
    return length === undefined ? known : { ...known, maxLength: Number(length) }
  }
  // A type that came with an extension may have a cast to JSON, which then decides; texts have none.
  return category === 'S' ? { type: 'string' } : ANY
}

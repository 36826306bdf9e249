/** Example values derived from a type and its labels: deterministic, and valid by the schemas beside them. */
import { baseOf, isJson } from '../access/types.ts'
import type { DataType } from '../catalog/model.ts'
import { byType } from '../types/builtin.ts'
import type { SchemaObject } from './model.ts'

/** An example of a type; undefined where any value is possible. `schema` is the type in JSON. */
export function exampleValue(type: DataType, schema: SchemaObject): unknown {
  const [label] = schema.enum ?? []
  if (label !== undefined) return label
  switch (schema.type) {
    case 'boolean':
      return true
    case 'integer':
      return 1
    case 'number':
      return 1.5
    case 'string':
      return exampleText(baseOf(type), schema)
    case 'array':
      return elementsOf(type, schema)
    case 'object':
      return {}
    default:
      return isJson(type) ? {} : undefined
  }
}

function elementsOf(type: DataType, { items }: SchemaObject): unknown {
  const base = baseOf(type)
  if (base.of === null || items === undefined || '$ref' in items) return []
  const element = exampleValue(base.of, items)
  return element === undefined ? [] : [element]
}

/** Examples in PostgreSQL's text format, for types that do not accept arbitrary text. */
const TEXT_OF: ReadonlyMap<string, string> = byType({
  uuid: '018f2d5e-7b1c-7c4a-9e3d-2f6a1b8c4d5e',
  date: '2025-03-01',
  timestamptz: '2025-03-01T12:00:00+00:00',
  timestamp: '2025-03-01T12:00:00',
  timetz: '12:00:00+00:00',
  time: '12:00:00',
  interval: '1 day',
  bytea: '\\x00ff',
  inet: '192.0.2.1',
  cidr: '192.0.2.0/24',
  macaddr: '00:00:5e:00:53:01',
  macaddr8: '00:00:5e:ef:10:00:53:01',
  bit: '1',
  varbit: '1',
  money: '1.00',
  xml: '<a/>',
  jsonpath: '$',
  tsvector: "'word'",
  tsquery: "'word'",
  point: '(1,2)',
  line: '{1,2,3}',
  lseg: '[(1,2),(3,4)]',
  box: '(3,4),(1,2)',
  path: '[(1,2),(3,4)]',
  polygon: '((1,2),(3,4),(5,6))',
  circle: '<(1,2),3>',
  pg_lsn: '0/1',
})

function exampleText({ schema, name, kind }: DataType, { maxLength }: SchemaObject): string | undefined {
  // The empty range and multirange are valid whatever the element type.
  if (kind === 'range') return 'empty'
  if (kind === 'multirange') return '{}'
  const known = schema === 'pg_catalog' ? TEXT_OF.get(name) : undefined
  return known ?? 'text'.slice(0, maxLength)
}

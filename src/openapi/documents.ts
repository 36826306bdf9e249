/** Schemas of the `_schema` and `_rpc/contracts` documents. */
import type { SchemaObject } from './model.ts'
import { envelope } from './responses.ts'

const TEXT: SchemaObject = { type: 'string' }
const FLAG: SchemaObject = { type: 'boolean' }
const NULLABLE_TEXT: SchemaObject = { type: 'string', nullable: true }
const NAMES: SchemaObject = { type: 'array', items: TEXT }

const COLUMN = envelope(
  {
    name: TEXT,
    type: TEXT,
    nullable: FLAG,
    default: NULLABLE_TEXT,
    generated: { type: 'string', nullable: true, enum: ['stored', 'virtual', null] },
    identity: { type: 'string', nullable: true, enum: ['always', 'by default', null] },
    read_only: FLAG,
    enum: NAMES,
    comment: NULLABLE_TEXT,
  },
  ['name', 'type', 'nullable', 'default', 'generated', 'identity', 'comment'],
)

const TABLE = envelope({
  schema: TEXT,
  name: TEXT,
  kind: { type: 'string', enum: ['table', 'partitioned', 'foreign', 'view', 'materialized view'] },
  comment: NULLABLE_TEXT,
  primary_key: NAMES,
  columns: { type: 'array', items: COLUMN },
  foreign_keys: {
    type: 'array',
    items: envelope({ name: TEXT, columns: NAMES, references: envelope({ table: TEXT, columns: NAMES }) }),
  },
  referenced_by: {
    type: 'array',
    items: envelope({ name: TEXT, table: TEXT, columns: NAMES, references: NAMES }),
  },
  unique: { type: 'array', items: NAMES },
  relations: {
    type: 'array',
    items: envelope({
      name: TEXT,
      table: TEXT,
      cardinality: { type: 'string', enum: ['one', 'many'] },
      columns: NAMES,
      via: TEXT,
    }),
  },
})

/** The schema of `_schema`. */
export const SCHEMA_DOCUMENT: SchemaObject = envelope({ tables: { type: 'object', additionalProperties: TABLE } })

const ARGUMENT = envelope({
  position: { type: 'integer', nullable: true },
  name: NULLABLE_TEXT,
  type: TEXT,
  mode: { type: 'string', enum: ['in', 'inout', 'variadic', 'out'] },
  required: FLAG,
  default: NULLABLE_TEXT,
})

const CONTRACT = envelope({
  schema: TEXT,
  name: TEXT,
  function: TEXT,
  identity_args: TEXT,
  result_type: TEXT,
  returns_set: FLAG,
  volatility: { type: 'string', enum: ['immutable', 'stable', 'volatile'] },
  variadic: FLAG,
  args: { type: 'array', items: ARGUMENT },
  comment: NULLABLE_TEXT,
})

/** The schema of `_rpc/contracts`. */
export const CONTRACTS_DOCUMENT: SchemaObject = envelope({
  functions: { type: 'array', items: CONTRACT },
  count: { type: 'integer', minimum: 0 },
})

/** Parameters shared by operations, and those of each table. */
import { isOrdered } from '../access/types.ts'
import type { Column } from '../catalog/model.ts'
import { partOfId } from '../rest/path.ts'
import { declaredValue } from './declared-examples.ts'
import { exampleValue } from './examples.ts'
import { distinctBy, quoteIfNeeded } from './keys.ts'
import { type ParameterObject, type SchemaObject, type SchemaOrReference, schemaRef } from './model.ts'
import { textSchema, valueSchema } from './types.ts'
import { valueText } from './value-text.ts'
import { canRead, type VisibleTable } from './visible-tables.ts'

/** Limits that the document states for pages. */
export interface PageLimits {
  readonly defaultLimit: number
  /** 0: unlimited. */
  readonly maxResultRows: number
}

/** The shared parameters. */
export function sharedParameters(limits: PageLimits): readonly (readonly [string, ParameterObject])[] {
  const cap = limits.maxResultRows === 0 ? '' : `; values above ${limits.maxResultRows} are lowered to it`
  const count: SchemaObject = { type: 'integer', format: 'int64', minimum: 0 }
  return [
    query('limit', `Maximum number of rows${cap}.`, { ...count, default: limits.defaultLimit }),
    // By default, all groups and all rows of functions are returned.
    ['limit-all', { name: 'limit', in: 'query', description: `Maximum number of rows${cap}.`, schema: count }],
    query('offset', 'Rows to skip at the beginning; cannot be combined with `cursor`.', count),
    query('cursor', 'The `next_cursor` of the previous page, with the same `sort`.', { type: 'string' }),
    query('stream', 'Return the rows as NDJSON, one per line, while the database produces them.', {
      type: 'boolean',
      default: false,
    }),
    query('search', 'Words to search for, as in a search engine.', { type: 'string' }),
    query('search_columns', 'The columns to search, separated by commas; all text columns by default.', {
      type: 'string',
    }),
    query('distinct', 'A column whose distinct values are returned instead of rows.', { type: 'string' }),
    query(
      'fn',
      'The function to compute. With `group_by`, `limit` and `offset` apply to groups.',
      { type: 'string', enum: ['count', 'sum', 'avg', 'min', 'max'] },
      { required: true },
    ),
    header(
      'X-Max-Affected',
      'Maximum number of rows that the write may change. If the filters match more, nothing is changed.',
      {
        ...count,
        default: 1_000,
      },
      'most',
    ),
    header('X-Upsert', '`true`: an existing row with the same key is updated. `ignore`: it is left unchanged.', {
      type: 'string',
      enum: ['true', 'ignore', 'false'],
    }),
    header(
      'X-On-Conflict',
      'The columns, separated by commas, of the unique key for an upsert; the primary key by default.',
      {
        type: 'string',
      },
    ),
    header('x-svc-result-format', '`binary`: values in the binary format of PostgreSQL, as base64.', {
      type: 'string',
      enum: ['text', 'binary'],
      default: 'text',
    }),
    header(
      'If-None-Match',
      'The `ETag` of an earlier response: 304 without a body if it is still current.',
      { type: 'string' },
      'unless',
    ),
    header('If-Match', 'The `ETag` of the row: 412 and no change if the row has another version. `*`: any version.', {
      type: 'string',
    }),
    header(
      'Idempotency-Key',
      'The request takes effect once, however often it is sent with this key. PATCH and DELETE accept it as well.',
      { type: 'string', maxLength: 255 },
      'once',
    ),
    prefer(
      'count',
      '`count=exact`: `total` counts the rows of all pages. `consistency=strong`: read from the primary.',
      ['count=exact', 'consistency=strong'],
    ),
    prefer(
      'return',
      '`return=minimal`: no body, status 201 for a creation and 204 otherwise; `return=representation`: the rows.',
      ['return=minimal', 'return=representation'],
    ),
  ]
}

type Entry = readonly [string, ParameterObject]

function query(
  name: string,
  description: string,
  schema: SchemaObject,
  more: Pick<ParameterObject, 'required'> = {},
): Entry {
  return [name, { name, in: 'query', description, schema, ...more }]
}

/** `key`: of the component. Those that are often referenced have short keys, because documents are large. */
function header(name: string, description: string, schema: SchemaObject, key: string = name): Entry {
  return [key, { name, in: 'header', description, schema }]
}

function prefer(key: string, description: string, values: readonly string[]): Entry {
  return [key, { name: 'Prefer', in: 'header', description, schema: { type: 'string', enum: values } }]
}

// // --- parameters of a table ---

/**
 * The parameters of a table with its column names; aliases, paths and nesting are described in the reference.
 */
export function tableParameters(seen: VisibleTable, returned: readonly Column[]): readonly Entry[] {
  const { key, columns, distinct, relations } = seen
  const expands = [...new Set(relations.map(({ expand }) => expand))]
  const all = schemaRef(`columns-${key}`)
  const isAll = canRead(seen) && returned.length === columns.length && returned.every((one, at) => one === columns[at])
  return [
    [`id-${key}`, idParameter(seen)],
    ...(returned.length === 0
      ? []
      : [
          list(
            `rows-${key}`,
            'returning',
            RETURNING,
            isAll ? all : listParameterOf(writtenColumnNames(distinctBy(returned, ({ name }) => name))),
          ),
        ]),
    ...(canRead(seen)
      ? [
          list(`select-${key}`, 'select', 'The columns; all by default.', all),
          list(`groups-${key}`, 'group_by', 'The columns to group by.', all),
          ...notEmpty(`sort-${key}`, 'sort', '`-` before a column: descending.', sortsOf(distinct)),
          ...notEmpty(`expand-${key}`, 'expand', 'Related rows to include.', distinctTexts(expands)),
          columnParameter(key, distinct),
        ]
      : []),
  ]
}

const RETURNING = 'The columns; none by default for a deletion.'

function columnParameter(key: string, columns: readonly Column[]): Entry {
  const description = 'The column; optional for `count`.'
  const schema: SchemaObject = { type: 'string', enum: writtenColumnNames(columns) }
  return [`column-${key}`, { name: 'column', in: 'query', description, schema }]
}

/** The column names as `select` and similar parameters accept them. */
export function writtenColumnNames(columns: readonly Column[]): readonly string[] {
  return columns.map(({ name }) => quoteIfNeeded(name))
}

/** Texts from which generators make different names. */
export function distinctTexts(texts: readonly string[]): readonly string[] {
  return distinctBy(texts, text => text)
}

/** The values of `sort` for these names. */
export function sortsOf(columns: readonly Column[]): readonly string[] {
  return writtenColumnNames(columns.filter(isSortable)).flatMap(name => [name, `-${name}`])
}

function isSortable({ type }: Column): boolean {
  return isOrdered(type)
}

function notEmpty(key: string, name: string, description: string, values: readonly string[]): readonly Entry[] {
  return values.length === 0 ? [] : [list(key, name, description, listParameterOf(values))]
}

function list(key: string, name: string, description: string, schema: SchemaOrReference): Entry {
  return [key, listParameter(name, description, schema)]
}

/** A comma-separated list parameter. */
export function listParameter(name: string, description: string, schema: SchemaOrReference): ParameterObject {
  return { name, in: 'query', description, explode: false, schema }
}

/**
 * Not a component: its constants would be global in generated Go code and collide with those of other tables.
 */
export function listParameterOf(values: readonly string[]): SchemaObject {
  return { type: 'array', items: { type: 'string', enum: values }, uniqueItems: true, minItems: 1 }
}

function idParameter({ table, rights }: VisibleTable): ParameterObject {
  const columns = table.primaryKey.flatMap(name => table.columnByName.get(name) ?? [])
  const [only, ...more] = columns
  const isKeyReadable = table.primaryKey.every(name => rights.read === 'any' || rights.read.has(name))
  // Optional parameters have no example, because tools fill in examples, and would then send every filter at
  // once.
  const values = columns.map(exampleOfKey)
  if (only !== undefined && more.length === 0) {
    return {
      name: 'id',
      in: 'path',
      required: true,
      description: isKeyReadable ? `The primary key, \`${only.name}\`.` : 'The primary key.',
      schema: isKeyReadable ? { ...textSchema(only.type, only.typeText) } : { type: 'string' },
      ...(isKeyReadable ? { example: values[0] } : {}),
    }
  }
  const order = isKeyReadable ? `: ${table.primaryKey.map(name => `\`${name}\``).join(', ')}` : ''
  return {
    name: 'id',
    in: 'path',
    required: true,
    description:
      `The values of the primary key in order${order}, separated by commas; a ` +
      'comma in a value must be percent-encoded twice.',
    schema: { type: 'string' },
    ...(isKeyReadable ? { example: values.map(value => partOfId(String(value))).join(',') } : {}),
  }
}

function exampleOfKey(column: Column): unknown {
  const { type, typeText } = column
  const declared = valueText(declaredValue(column, valueSchema(type, typeText)), type)
  return declared ?? exampleValue(type, textSchema(type, typeText))
}

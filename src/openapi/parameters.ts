/** Parameters that operations share, and those of each table. */
import { isOrdered } from '../access/types.ts'
import type { Column } from '../catalog/model.ts'
import { partOfId } from '../rest/path.ts'
import { declaredValue } from './declared.ts'
import { exampleValue } from './examples.ts'
import { distinctBy, quoted } from './keys.ts'
import { type Parameter, type Schema, type SchemaOrReference, schemaRef } from './model.ts'
import { canRead, type SeenTable } from './seen.ts'
import { textSchema, valueSchema } from './types.ts'
import { valueText } from './value-text.ts'

export interface PageLimits {
  readonly defaultLimit: number
  /** 0: no cap. */
  readonly maxResultRows: number
}

export function sharedParameters(limits: PageLimits): readonly (readonly [string, Parameter])[] {
  const cap = limits.maxResultRows === 0 ? '' : `; above ${limits.maxResultRows} it is lowered to that`
  const count: Schema = { type: 'integer', format: 'int64', minimum: 0 }
  return [
    query('limit', `Rows at most${cap}.`, { ...count, default: limits.defaultLimit }),
    // Of groups and of functions' rows all are answered.
    ['limit-all', { name: 'limit', in: 'query', description: `Rows at most${cap}.`, schema: count }],
    query('offset', 'Rows to leave out at the beginning; not together with `cursor`.', count),
    query('cursor', 'The `next_cursor` of the page before, with the same `sort`.', { type: 'string' }),
    query('stream', 'The rows as NDJSON, one a line, as the database finds them.', { type: 'boolean', default: false }),
    query('search', 'Words to find, as in a search engine.', { type: 'string' }),
    query('search_columns', 'The columns to search, separated by commas; all columns of text by default.', {
      type: 'string',
    }),
    query('distinct', 'A column: its distinct values are answered instead of rows.', { type: 'string' }),
    query(
      'fn',
      'What is computed.',
      { type: 'string', enum: ['count', 'sum', 'avg', 'min', 'max'] },
      { required: true },
    ),
    header('X-Max-Affected', 'Rows that the write can change at most. If the filters match more, nothing is changed.', {
      ...count,
      default: 1_000,
    }),
    header('X-Upsert', '`true`: a row whose key exists is changed instead. `ignore`: it is left alone.', {
      type: 'string',
      enum: ['true', 'ignore', 'false'],
    }),
    header(
      'X-On-Conflict',
      'The columns, separated by commas, of the unique key that an upsert looks at; the primary key by default.',
      {
        type: 'string',
      },
    ),
    header('x-svc-result-format', '`binary`: values in the binary format of PostgreSQL, as base64.', {
      type: 'string',
      enum: ['text', 'binary'],
      default: 'text',
    }),
    prefer('prefer-count', '`count=exact`: the answer has `total`, the number of rows on all pages.', ['count=exact']),
    prefer(
      'prefer-return',
      '`return=minimal`: no body, 201 for a creation and else 204; `return=representation`: the rows.',
      ['return=minimal', 'return=representation'],
    ),
  ]
}

type Entry = readonly [string, Parameter]

function query(name: string, description: string, schema: Schema, more: Pick<Parameter, 'required'> = {}): Entry {
  return [name, { name, in: 'query', description, schema, ...more }]
}

function header(name: string, description: string, schema: Schema): Entry {
  return [name, { name, in: 'header', description, schema }]
}

function prefer(key: string, description: string, values: readonly string[]): Entry {
  return [key, { name: 'Prefer', in: 'header', description, schema: { type: 'string', enum: values } }]
}

// ---- of a table --------------------------------------------------------------------------------------------

/** What can be named here is listed; lists, aliases and paths that go further are in the reference. */
export function tableParameters(seen: SeenTable, returned: readonly Column[]): readonly Entry[] {
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
            `returning-${key}`,
            'returning',
            RETURNING,
            isAll ? all : listOf(namesOf(distinctBy(returned, ({ name }) => name))),
          ),
        ]),
    ...(canRead(seen)
      ? [
          list(`select-${key}`, 'select', 'The columns to answer; all by default.', all),
          list(`groups-${key}`, 'group_by', 'A value for each group instead of one.', all),
          ...notEmpty(`sort-${key}`, 'sort', 'What to sort by; `-` in front is descending.', sortsOf(distinct)),
          ...notEmpty(`expand-${key}`, 'expand', 'Related rows to put into each row.', distinctTexts(expands)),
          columnParameter(key, distinct),
        ]
      : []),
  ]
}

const RETURNING = 'The columns to answer; none by default of a deletion.'

function columnParameter(key: string, columns: readonly Column[]): Entry {
  const description = 'The column that is computed with; `count` needs none.'
  const schema: Schema = { type: 'string', enum: namesOf(columns) }
  return [`column-${key}`, { name: 'column', in: 'query', description, schema }]
}

/** The names that `select` and the like can write. */
export function namesOf(columns: readonly Column[]): readonly string[] {
  return columns.map(({ name }) => quoted(name))
}

function distinctTexts(texts: readonly string[]): readonly string[] {
  return distinctBy(texts, text => text)
}

export function sortsOf(columns: readonly Column[]): readonly string[] {
  return namesOf(columns.filter(isSortable)).flatMap(name => [name, `-${name}`])
}

function isSortable({ type }: Column): boolean {
  return isOrdered(type)
}

function notEmpty(key: string, name: string, description: string, values: readonly string[]): readonly Entry[] {
  return values.length === 0 ? [] : [list(key, name, description, listOf(values))]
}

function list(key: string, name: string, description: string, schema: SchemaOrReference): Entry {
  return [key, listParameter(name, description, schema)]
}

/** A comma-separated list. */
export function listParameter(name: string, description: string, schema: SchemaOrReference): Parameter {
  return { name, in: 'query', description, explode: false, schema }
}

/** The enumeration is no component of its own: its constants would be global in Go, and collide with those of another table. */
export function listOf(values: readonly string[]): Schema {
  return { type: 'array', items: { type: 'string', enum: values }, uniqueItems: true, minItems: 1 }
}

function idParameter({ table, rights }: SeenTable): Parameter {
  const columns = table.primaryKey.flatMap(name => table.columnByName.get(name) ?? [])
  const [only, ...more] = columns
  const told = table.primaryKey.every(name => rights.read === 'any' || rights.read.has(name))
  // Of a parameter that may be left out there is no example: tools fill it in, and then every filter at once.
  const values = columns.map(exampleOfKey)
  if (only !== undefined && more.length === 0) {
    return {
      name: 'id',
      in: 'path',
      required: true,
      description: told ? `The primary key, \`${only.name}\`.` : 'The primary key.',
      schema: told ? { ...textSchema(only.type, only.typeText) } : { type: 'string' },
      ...(told ? { example: values[0] } : {}),
    }
  }
  const order = told ? `: ${table.primaryKey.map(name => `\`${name}\``).join(', ')}` : ''
  return {
    name: 'id',
    in: 'path',
    required: true,
    description: `The values of the primary key in its order${order}, joined by commas; a comma in a value is percent-encoded twice.`,
    schema: { type: 'string' },
    ...(told ? { example: values.map(value => partOfId(String(value))).join(',') } : {}),
  }
}

function exampleOfKey(column: Column): unknown {
  const { type, typeText } = column
  const declared = valueText(declaredValue(column, valueSchema(type, typeText)), type)
  return declared ?? exampleValue(type, textSchema(type, typeText))
}

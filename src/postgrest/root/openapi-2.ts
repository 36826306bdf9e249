/**
 * The OpenAPI 2.0 document at the root, with the names of parameters and definitions that clients of
 * PostgREST expect (https://swagger.io/specification/v2/).
 */
import type { Column, DatabaseFunction, FunctionInput, Table } from '../../catalog/model.ts'
import type { Relationship } from '../relationship.ts'
import { defaultOf, formatOf, jsonTypeOf, maxLengthOf, swaggerFormat, swaggerSchema } from './json-type.ts'

/** A JSON object. */
export type Members = Readonly<Record<string, unknown>>

/** The contents of a document. */
export interface Described {
  readonly version: string
  /** The comment of the schema. */
  readonly comment: string | null
  readonly tables: readonly Table[]
  /** One function of each name. */
  readonly functions: readonly DatabaseFunction[]
  readonly relationships: (table: Table) => readonly Relationship[]
  /** The schemas whose types are shown without a schema in the arguments of functions. */
  readonly searchPath: readonly string[]
  readonly securityActive: boolean
  readonly address: DocumentAddress
}

/** Where the described server is. */
export interface DocumentAddress {
  readonly scheme: 'http' | 'https'
  readonly host: string
  readonly path: string
}

const JSON_TYPES = [
  'application/json',
  'application/vnd.pgrst.object+json;nulls=stripped',
  'application/vnd.pgrst.object+json',
]

/** Describes tables and functions. */
export function describeRoot(of: Described): Members {
  const { title, text } = split(of.comment)
  const media = [...JSON_TYPES, 'text/csv']
  return {
    swagger: '2.0',
    info: {
      title: title ?? 'REST API',
      description: text ?? 'Tables, views and functions of a database, served by svc',
      version: of.version,
    },
    host: of.address.host,
    basePath: of.address.path,
    schemes: [of.address.scheme],
    consumes: media,
    produces: media,
    paths: {
      '/': { get: ROOT },
      ...Object.fromEntries(of.tables.map(table => [`/${table.name}`, tablePath(table)])),
      ...Object.fromEntries(of.functions.map(call => [`/rpc/${call.name}`, functionPath(call, of.searchPath)])),
    },
    definitions: Object.fromEntries(of.tables.map(table => [table.name, definition(table, of.relationships(table))])),
    parameters: { ...SHARED, ...Object.fromEntries(of.tables.flatMap(tableParameters)) },
    ...(of.securityActive ? SECURITY : {}),
    externalDocs: {
      description: 'Reference of the dialect',
      url: 'https://postgrest.org/en/v16/references/api.html',
    },
  }
}

const ROOT: Members = {
  tags: ['Introspection'],
  summary: 'OpenAPI description (this document)',
  produces: ['application/openapi+json', 'application/json'],
  responses: { 200: { description: 'OK' } },
}

const SECURITY: Members = {
  securityDefinitions: {
    JWT: {
      description: 'Add the token prepending "Bearer " (without quotes) to it',
      in: 'header',
      name: 'Authorization',
      type: 'apiKey',
    },
  },
  security: [{ JWT: [] }],
}

/** The first line of a comment, and the rest. */
function split(comment: string | null): { readonly title: string | null; readonly text: string | null } {
  if (comment === null) return { title: null, text: null }
  const end = comment.indexOf('\n')
  if (end < 0) return { title: comment, text: null }
  const rest = comment.slice(end).replace(/^\n+/, '')
  return { title: comment.slice(0, end), text: rest === '' ? null : rest }
}

function summary(comment: string | null): Members {
  const { title, text } = split(comment)
  return { ...(title === null ? {} : { summary: title }), ...(text === null ? {} : { description: text }) }
}

// ---- tables -----------------------------------------------------------------------------------------------

function tablePath(table: Table): Members {
  const { name, comment, columns, writable } = table
  const filters = columns.map(column => `rowFilter.${name}.${column.name}`)
  const operation = (parameters: readonly string[], responses: Members): Members => ({
    tags: [name],
    ...summary(comment),
    parameters: parameters.map(parameter => ({ $ref: `#/parameters/${parameter}` })),
    responses,
  })
  const body = `body.${name}`
  const noContent = { 204: { description: 'No Content' } }
  const page = ['select', 'order', 'range', 'rangeUnit', 'offset', 'limit', 'preferCount']
  return {
    get: operation([...filters, ...page], {
      200: { description: 'OK', schema: { type: 'array', items: { $ref: `#/definitions/${name}` } } },
      206: { description: 'Partial Content' },
    }),
    ...(writable.insert
      ? { post: operation([body, 'select', 'preferPost'], { 201: { description: 'Created' } }) }
      : {}),
    ...(writable.update ? { patch: operation([...filters, body, 'preferReturn'], noContent) } : {}),
    ...(writable.delete ? { delete: operation([...filters, 'preferReturn'], noContent) } : {}),
  }
}

function tableParameters({ name, columns }: Table): readonly (readonly [string, Members])[] {
  const filters = columns.map((column): readonly [string, Members] => [
    `rowFilter.${name}.${column.name}`,
    queryParameter(column.name, column.comment),
  ])
  const schema = { $ref: `#/definitions/${name}` }
  return [[`body.${name}`, { name, description: name, required: false, in: 'body', schema }], ...filters]
}

function definition(table: Table, relationships: readonly Relationship[]): Members {
  const { comment, columns } = table
  const required = columns.filter(({ nullable }) => !nullable).map(({ name }) => name)
  return {
    ...(comment === null ? {} : { description: comment }),
    ...(required.length === 0 ? {} : { required }),
    properties: Object.fromEntries(columns.map(column => [column.name, property(column, table, relationships)])),
    type: 'object',
  }
}

function property(column: Column, { primaryKey }: Table, relationships: readonly Relationship[]): Members {
  const format = formatOf(column.type)
  const value = defaultOf(column, format)
  const maxLength = maxLengthOf(column)
  const description = describeColumn(column, primaryKey.includes(column.name), referenced(column, relationships))
  return {
    ...swaggerSchema(format),
    ...(value === undefined ? {} : { default: value }),
    ...(description === null ? {} : { description }),
    ...(column.type.labels.length === 0 ? {} : { enum: column.type.labels }),
    ...(maxLength === null ? {} : { maxLength }),
  }
}

/** The markup of keys is part of the dialect: clients find relations by it. */
function describeColumn({ comment }: Column, isKey: boolean, target: Target | null): string | null {
  const notes = [
    ...(isKey ? ['This is a Primary Key.<pk/>'] : []),
    ...(target === null
      ? []
      : [
          `This is a Foreign Key to \`${target.table}.${target.column}\`.` +
            `<fk table='${target.table}' column='${target.column}'/>`,
        ]),
  ]
  if (notes.length === 0) return comment
  return `${comment === null ? '' : `${comment}\n\n`}${['Note:', ...notes].join('\n')}`
}

interface Target {
  readonly table: string
  readonly column: string
}

/** The column that a foreign key of one column refers to; a table comes before a view. */
function referenced({ name }: Column, relationships: readonly Relationship[]): Target | null {
  const keys = relationships.filter(
    ({ cardinality, columns }) =>
      (cardinality === 'many-to-one' || cardinality === 'one-to-one') && columns.length === 1 && columns[0] === name,
  )
  const found = keys.find(({ to }) => to.kind !== 'view' && to.kind !== 'materialized view') ?? keys[0]
  const column = found?.toColumns[0]
  return found === undefined || column === undefined ? null : { table: found.to.name, column }
}

// ---- functions --------------------------------------------------------------------------------------------

function functionPath(of: DatabaseFunction, searchPath: readonly string[]): Members {
  const named = of.inputs.filter(({ name }) => name !== null)
  const operation = (parameters: readonly Members[]): Members => ({
    tags: [`(rpc) ${of.name}`],
    ...summary(of.comment),
    produces: JSON_TYPES,
    parameters,
    responses: { 200: { description: 'OK' } },
  })
  const args = { name: 'args', in: 'body', required: true, schema: argumentsSchema(of, named, searchPath) }
  return {
    ...(of.volatility === 'volatile'
      ? {}
      : { get: operation(named.map(input => argumentParameter(input, searchPath))) }),
    post: operation([args, { $ref: '#/parameters/preferParams' }]),
  }
}

function argumentsSchema(
  { comment }: DatabaseFunction,
  inputs: readonly FunctionInput[],
  searchPath: readonly string[],
): Members {
  const required = inputs.flatMap(input => (input.required ? [input.name] : []))
  const properties = inputs.map(({ name, type }) => [name, swaggerSchema(formatOf(type, searchPath))])
  return {
    ...(comment === null ? {} : { description: comment }),
    ...(required.length === 0 ? {} : { required }),
    ...(properties.length === 0 ? {} : { properties: Object.fromEntries(properties) }),
    type: 'object',
  }
}

function argumentParameter({ name, type, mode, required }: FunctionInput, searchPath: readonly string[]): Members {
  const format = formatOf(type, searchPath)
  const own = { name, required, in: 'query' }
  if (mode === 'variadic') {
    const item = format.slice(0, -2)
    const items = { type: scalarTypeOf(item), format: swaggerFormat(item) }
    return { ...own, type: 'array', collectionFormat: 'multi', items }
  }
  return { ...own, type: scalarTypeOf(format), format: swaggerFormat(format) }
}

/** Arrays and JSON are texts in a query string. */
function scalarTypeOf(format: string): string {
  const type = jsonTypeOf(format)
  return type === null || type === 'array' ? 'string' : type
}

// ---- parameters -------------------------------------------------------------------------------------------

function queryParameter(name: string, description: string | null): Members {
  return { name, ...(description === null ? {} : { description }), required: false, in: 'query', type: 'string' }
}

const PREFER: Members = { name: 'Prefer', description: 'Preference', required: false, in: 'header', type: 'string' }

function prefer(values: readonly string[]): Members {
  return { ...PREFER, enum: values }
}

const RETURN = ['return=representation', 'return=minimal', 'return=headers-only']
const PAGES = 'Limiting and Pagination'

const SHARED: Members = {
  preferParams: PREFER,
  preferReturn: prefer(RETURN),
  preferCount: prefer(['count=exact', 'count=planned', 'count=estimated']),
  preferPost: prefer([...RETURN, 'resolution=ignore-duplicates', 'resolution=merge-duplicates']),
  select: queryParameter('select', 'Filtering Columns'),
  on_conflict: queryParameter('on_conflict', 'On Conflict'),
  order: queryParameter('order', 'Ordering'),
  range: { name: 'Range', description: PAGES, required: false, in: 'header', type: 'string' },
  rangeUnit: {
    ...{ name: 'Range-Unit', description: PAGES, required: false, in: 'header', type: 'string' },
    default: 'items',
  },
  offset: queryParameter('offset', PAGES),
  limit: queryParameter('limit', PAGES),
}

/**
 * Names of tables and types as a pulled document writes them: those of the first schema bare, others with
 * their schema.
 */
import { NOWHERE, type SchemaType, type TableName } from '../schema/model.ts'
import { DIMENSIONS_MAX, isOwnType } from '../schema/type-name.ts'
import type { Pulled } from './pull-statement.ts'

export interface Names {
  /**
   * The name of a type. A type with the name of a built-in one keeps its schema, because the bare name would
   * be the built-in type.
   */
  typeName(schema: string, name: string): TableName
  table(schema: string, name: string): TableName
  /** `text` is the type with its modifiers as `format_type` shows it. */
  type(oid: number, text: string, dimensions: number): SchemaType
}

export function pulledNames(pulled: Pulled, first: string | undefined): Names {
  const types = new Map(pulled.type.map(type => [type.oid, type]))
  const declared = new Set(
    [...pulled.enum, ...pulled.domain, ...pulled.relation].map(({ schema, name }) => key(schema, name)),
  )
  const table: Names['table'] = (schema, name) => ({
    ...{ kind: 'table', schema: schema === first ? null : schema, name, span: NOWHERE },
  })
  return {
    table,
    typeName: (schema, name) => ({
      ...table(schema, name),
      schema: schema === first && !isOwnType(name) ? null : schema,
    }),
    type(oid, text, dimensions) {
      const found = types.get(oid)
      if (found === undefined) throw new Error(`the pull statement returned no type ${oid}`)
      const { schema, name, array } = found
      const isBare = schema === first && declared.has(key(schema, name)) && !isOwnType(name)
      const own = schema === 'pg_catalog' ? ownType(name, text) : { schema: isBare ? null : schema, name }
      return {
        ...{ kind: 'type', schema: own.schema, name: own.name, modifiers: modifiersOf(text) },
        // The number of dimensions is not always stored: an array has at least one.
        ...{ dimensions: array ? Math.min(Math.max(dimensions, 1), DIMENSIONS_MAX) : 0, span: NOWHERE },
      }
    },
  }
}

function key(schema: string, name: string): string {
  return JSON.stringify([schema, name])
}

/**
 * A built-in type by its name in documents. Types without such a name keep the schema, and so does `"char"`,
 * which would be read as another type.
 */
function ownType(name: string, text: string): { readonly schema: string | null; readonly name: string } {
  if (name === 'bpchar' && modifiersOf(text).length > 0) return { schema: null, name: 'char' }
  if (name === 'interval')
    return { schema: null, name: /^interval(?: (?:year|month|day|hour|minute|second|to))*/.exec(text)?.[0] ?? name }
  return { schema: name !== 'char' && isOwnType(name) ? null : 'pg_catalog', name }
}

/**
 * The modifiers of `numeric(10,2)[]`, `timestamp(3) with time zone`, `geometry(Point,4326)`; parentheses in
 * quoted names are ignored.
 */
function modifiersOf(text: string): readonly string[] {
  const list = /\(([^()"]*)\)/.exec(text.replaceAll(/"(?:[^"]|"")*"/g, ''))?.[1]
  return list === undefined ? [] : list.split(',').map(modifier => modifier.trim())
}

/**
 * The types that a query can cast to: PostgreSQL's own value types, and types of objects that the caller
 * can see.
 * Every table is also a type, whose text form shows its columns, and an error about a type reveals whether
 * a name exists. PostgreSQL types whose values are OIDs that print as names (`regclass`, `regrole`) are
 * excluded for the same reason.
 */
import type { Catalog, DataType } from '../catalog/model.ts'
import { GatewayError } from '../errors.ts'
import type { TypeName } from '../language/tree/ast.ts'
import { CASTABLE, EXTENSION_TYPES } from '../types/builtin.ts'
import { isKnown, isKnownColumn, type Rights, type View } from './rights.ts'
import { typeNameOf } from './types.ts'

/**
 * The type, schema-qualified if the database defines it. Throws `FORBIDDEN` for any other type, whether it
 * exists or not.
 */
export function castableType(type: TypeName, view: View): TypeName {
  const found = findCastable(type, view)
  if (found !== null) return found
  throw new GatewayError(
    'FORBIDDEN',
    `cannot cast to ${typeNameOf(type)}: it is neither a PostgreSQL value type ` +
      'nor the type of a column or argument that you can see',
    { span: type.span },
  )
}

/** The same; null for any other type. */
export function findCastable(type: TypeName, { catalog, rights }: View): TypeName | null {
  const { schema, name } = type
  // `_int4` is an alias of `int4[]`.
  const element = name.replace(/^_/, '')
  if ((schema === null || schema === 'pg_catalog') && CASTABLE.has(element)) return type
  if (schema === null && EXTENSION_TYPES.has(name)) return type
  const visible = visibleTypes(catalog, rights)
  const found = schema === null ? visible.bare.get(name) : visible.named.get(JSON.stringify([schema, name]))
  return found === undefined ? null : { ...type, schema: found.schema }
}

interface VisibleTypes {
  /** Types by schema and name. */
  readonly named: ReadonlyMap<string, DataType>
  /** Types by name alone; of several with the same name, the first. */
  readonly bare: ReadonlyMap<string, DataType>
}

const known = new WeakMap<Catalog, { readonly key: string; readonly types: VisibleTypes }>()

/** Caches the last result, because most callers have the same rights as the previous one. */
function visibleTypes(catalog: Catalog, rights: Rights): VisibleTypes {
  const kept = known.get(catalog)
  if (kept?.key === rights.key) return kept.types
  const types = readVisibleTypes(catalog, rights)
  known.set(catalog, { key: rights.key, types })
  return types
}

function readVisibleTypes(catalog: Catalog, rights: Rights): VisibleTypes {
  const named = new Map<string, DataType>()
  const bare = new Map<string, DataType>()
  const add = (type: DataType): void => {
    const key = JSON.stringify([type.schema, type.name])
    if (named.has(key) || isOfRows(type)) return
    named.set(key, type)
    if (!bare.has(type.name)) bare.set(type.name, type)
    if (type.of !== null) add(type.of)
  }
  for (const table of catalog.tables.values()) {
    if (!isKnown(table, rights)) continue
    const of = rights.of(table)
    for (const { name, type } of table.columns) if (isKnownColumn(name, of)) add(type)
  }
  for (const overloads of catalog.functions.values()) {
    for (const { executable, inputs } of overloads) if (executable) for (const { type } of inputs) add(type)
  }
  return { named, bare }
}

/**
 * Rows of a relation contain all its columns, including hidden ones, so casts to row types and to types
 * built on them are rejected.
 */
function isOfRows({ rows, of }: DataType): boolean {
  return rows === true || (of !== null && isOfRows(of))
}

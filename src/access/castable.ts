/**
 * Which types an author may cast to: PostgreSQL's own types of values, and types of what the caller can see.
 *
 * Every table is a type as well, whose text form shows its columns, and an error about a type tells whether a
 * name exists. The types of PostgreSQL whose values are numbers to it and names to readers (`regclass`,
 * `regrole`) are left out for the same reason.
 */
import type { Catalog, DataType } from '../catalog/model.ts'
import { GatewayError } from '../errors.ts'
import type { TypeName } from '../language/tree/ast.ts'
import { CASTABLE, EXTENSION_TYPES } from '../types/builtin.ts'
import { isKnown, isKnownColumn, type Rights, type View } from './rights.ts'
import { typeNameOf } from './types.ts'

/**
 * The type, with its schema where it is the database's own. Throws `FORBIDDEN` for any other, whether it
 * exists or not.
 */
export function castableType(type: TypeName, { catalog, rights }: View): TypeName {
  const { schema, name } = type
  // `_int4` is another name of `int4[]`.
  const element = name.replace(/^_/, '')
  if ((schema === null || schema === 'pg_catalog') && CASTABLE.has(element)) return type
  if (schema === null && EXTENSION_TYPES.has(name)) return type
  const visible = visibleTypes(catalog, rights)
  const found = schema === null ? visible.bare.get(name) : visible.named.get(JSON.stringify([schema, name]))
  if (found !== undefined) return { ...type, schema: found.schema }
  throw new GatewayError(
    'FORBIDDEN',
    `nothing can be cast to ${typeNameOf(type)}: it is neither a type of PostgreSQL for values ` +
      'nor the type of a column or argument that you can see',
    { span: type.span },
  )
}

interface VisibleTypes {
  /** By schema and name. */
  readonly named: ReadonlyMap<string, DataType>
  /** By name alone; of several the first. */
  readonly bare: ReadonlyMap<string, DataType>
}

const known = new WeakMap<Catalog, { readonly key: string; readonly types: VisibleTypes }>()

/** Most callers have the same rights as the one before. */
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
 * Rows of a relation have all of its columns, whoever may see them, so nothing is cast to them or to what is
 * made of them.
 */
function isOfRows({ rows, of }: DataType): boolean {
  return rows === true || (of !== null && isOfRows(of))
}

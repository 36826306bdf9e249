/**
 * Which types an author may cast to: PostgreSQL's own types of values, and types of what the caller can see.
 *
 * Every table is a type as well, whose text form shows its columns, and an error about a type tells whether a name exists. The types of PostgreSQL whose
 * values are numbers to it and names to readers (`regclass`, `regrole`) are left out for the same reason.
 */
import type { Catalog, DataType } from '../catalog/model.ts'
import { GatewayError } from '../errors.ts'
import type { TypeName } from '../language/tree/ast.ts'
import { isKnown, isKnownColumn, type Rights, type View } from './rights.ts'
import { typeNameOf } from './types.ts'

/** By PostgreSQL's names and those of SQL (PostgreSQL manual, 8). */
const VALUES: ReadonlySet<string> = new Set(
  `bigint bit bool boolean box bpchar bytea char character cidr circle date datemultirange daterange dec decimal float float4 float8 inet int int2
   int4 int4multirange int4range int8 int8multirange int8range integer interval json jsonb jsonpath line lseg macaddr macaddr8 money name nchar
   numeric nummultirange numrange oid path pg_lsn point polygon real regconfig regdictionary smallint text tid time timestamp timestamptz timetz
   tsmultirange tsquery tsrange tstzmultirange tstzrange tsvector uuid varbit varchar xid xid8 xml`.split(/\s+/),
)

/** Of extensions that come with PostgreSQL; the language knows them by name. */
const EXTENSIONS: ReadonlySet<string> = new Set(['citext', 'hstore', 'ltree'])

/** The type, with its schema where it is the database's own. Throws `FORBIDDEN` for any other, whether it exists or not. */
export function castableType(type: TypeName, { catalog, rights }: View): TypeName {
  const { schema, name } = type
  // `_int4` is another name of `int4[]`.
  const element = name.replace(/^_/, '')
  if ((schema === null || schema === 'pg_catalog') && VALUES.has(element)) return type
  if (schema === null && EXTENSIONS.has(name)) return type
  const visible = visibleTypes(catalog, rights)
  const found = schema === null ? visible.bare.get(name) : visible.named.get(JSON.stringify([schema, name]))
  if (found !== undefined) return { ...type, schema: found.schema }
  throw new GatewayError(
    'FORBIDDEN',
    `nothing can be cast to ${typeNameOf(type)}: it is neither a type of PostgreSQL for values nor the type of a column or argument that you can see`,
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

/** Rows of a relation have all of its columns, whoever may see them, so nothing is cast to them or to what is made of them. */
function isOfRows({ rows, of }: DataType): boolean {
  return rows === true || (of !== null && isOfRows(of))
}

/** How the check uses PostgreSQL's types: as cast targets and to decide which operators exist. */
import type { DataType } from '../catalog/model.ts'
import type { Cast, Expression, TypeName } from '../language/tree/ast.ts'
import { NOWHERE } from '../language/tree/ast.ts'
import { typeSet } from '../types/builtin.ts'
import { INCOMPARABLE, UNORDERED } from '../types/traits.ts'

/**
 * Names that mean something else when they are not qualified: `char` and `bit` have a length of one.
 * Qualified, they are the types of the catalog (PostgreSQL manual, 8.3, 8.10).
 */
const NEEDS_SCHEMA = typeSet('char', 'bit')

/**
 * `expression::type`, for a domain its base type: a filter can contain a value that the domain's checks
 * reject.
 */
export function castTo(expression: Expression, type: DataType): Cast {
  return { kind: 'cast', operand: expression, type: toTypeName(type), span: NOWHERE }
}

/** The type as the tree names it; a domain becomes its base type. */
export function toTypeName(type: DataType): TypeName {
  if (type.kind === 'domain' && type.of !== null) return toTypeName(type.of)
  if (type.kind !== 'array' || type.of === null) return nameOf(type)
  // An array of a domain differs from an array of its base type: its operators require the domain.
  return { ...nameOf(type.of), dimensions: 1 }
}

function nameOf(type: DataType): TypeName {
  const bare = type.schema === 'pg_catalog' && !NEEDS_SCHEMA.has(type.name)
  return {
    kind: 'type',
    schema: bare ? null : type.schema,
    name: type.name,
    modifiers: [],
    dimensions: 0,
    span: NOWHERE,
  }
}

/** `expression::type` for a type name as `typeNameOf` writes it: `public.status`, `int4[]`. */
export function castToNamed(expression: Expression, typeName: string): Cast {
  const [, schema = null, name = typeName, brackets = ''] = /^(?:(.*)\.)?([^.]*?)((?:\[\])*)$/s.exec(typeName) ?? []
  const dimensions = brackets.length / 2
  const type: TypeName = { kind: 'type', schema, name, modifiers: [], dimensions, span: NOWHERE }
  return { kind: 'cast', operand: expression, type, span: NOWHERE }
}

/** The name of a type for messages and for `castToNamed`. */
export function typeNameOf(type: TypeName): string {
  return `${type.schema === null ? '' : `${type.schema}.`}${type.name}${'[]'.repeat(type.dimensions)}`
}

/** The base type of a domain; any other type itself. */
export function baseOf(type: DataType): DataType {
  return type.kind === 'domain' && type.of !== null ? baseOf(type.of) : type
}

/** True if the type, or the base type of a domain, is a text. */
export function isText(type: DataType): boolean {
  const base = baseOf(type)
  return base.category === 'S' && base.kind === 'base'
}

/** True if the type, or the base type of a domain, is json or jsonb. */
export function isJson(type: DataType): boolean {
  const { name } = baseOf(type)
  return name === 'json' || name === 'jsonb'
}

const NUMBERS = typeSet('int2', 'int4', 'int8', 'numeric', 'float4', 'float8')

/** True if the type, or the base type of a domain, is a number, to which `$inc` adds. */
export function isNumber(type: DataType): boolean {
  return NUMBERS.has(baseOf(type).name)
}

/** Types that `fts` can search: text, JSON (by the texts in it), and tsvector. */
export function isDocument(type: DataType): boolean {
  return isText(type) || isJson(type) || baseOf(type).name === 'tsvector'
}

/**
 * True if the type is a domain over an enum. Operators of enums take `anyenum`, which such a domain does
 * not match, as it would match `anyarray` or `anyrange` (PostgreSQL manual, 36.2.5): it lacks even `=`
 * until it is cast.
 */
export function isEnumDomain(type: DataType): boolean {
  return type.kind === 'domain' && baseOf(type).kind === 'enum'
}

/**
 * True if the type has a sort order. False only for types that PostgreSQL is known to reject; types of
 * extensions are left to it.
 */
export function isOrdered(type: DataType): boolean {
  return !isAmong(UNORDERED, type)
}

/** Like `isOrdered`, for `=` and related operators. */
export function isComparable(type: DataType): boolean {
  return !isAmong(INCOMPARABLE, type)
}

/** True if the type is in the set; an array or domain counts as its element or base type. */
function isAmong(names: ReadonlySet<string>, type: DataType): boolean {
  const base = baseOf(type)
  if (base.kind === 'array' && base.of !== null) return isAmong(names, base.of)
  return base.schema === 'pg_catalog' && names.has(base.name)
}

/**
 * Numbers, texts, dates, booleans, enums: they contain no elements, so `@>`, `<@` and `&&` do not apply to
 * them.
 */
export function isScalar(type: DataType): boolean {
  const base = baseOf(type)
  return base.kind === 'enum' || (base.kind === 'base' && 'NSDBT'.includes(base.category))
}

/** The types that `search` searches if no columns are given. */
const SEARCHED = typeSet('text', 'varchar', 'bpchar', 'citext')

/** True if `search` includes columns of this type by default. */
export function isSearchable(type: DataType): boolean {
  return SEARCHED.has(baseOf(type).name)
}

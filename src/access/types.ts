/** How the check speaks of PostgreSQL's types: as cast targets and in questions about them. */
import type { DataType } from '../catalog/model.ts'
import type { Cast, Expression, TypeName } from '../language/tree/ast.ts'
import { NOWHERE } from '../language/tree/ast.ts'
import { typeSet } from '../types/builtin.ts'
import { INCOMPARABLE, UNORDERED } from '../types/traits.ts'

/**
 * Names that mean something else when written bare: `char` and `bit` take a length of one. Behind their
 * schema they are the types of the catalogue (PostgreSQL manual, 8.3, 8.10).
 */
const NEEDS_SCHEMA = typeSet('char', 'bit')

/**
 * `expression::type`, for a domain the type it is made of: a filter may name a value that the domain's checks
 * refuse.
 */
export function castTo(expression: Expression, type: DataType): Cast {
  return { kind: 'cast', operand: expression, type: toTypeName(type), span: NOWHERE }
}

/** The type as the tree names it; a domain as what it is made of. */
export function toTypeName(type: DataType): TypeName {
  if (type.kind === 'domain' && type.of !== null) return toTypeName(type.of)
  if (type.kind !== 'array' || type.of === null) return nameOf(type)
  // An array of a domain is not an array of what the domain is made of: its operators want the domain.
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

/** `expression::type` for a type by its name as `typeNameOf` writes it: `public.status`, `int4[]`. */
export function castToNamed(expression: Expression, typeName: string): Cast {
  const [, schema = null, name = typeName, brackets = ''] = /^(?:(.*)\.)?([^.]*?)((?:\[\])*)$/s.exec(typeName) ?? []
  const dimensions = brackets.length / 2
  const type: TypeName = { kind: 'type', schema, name, modifiers: [], dimensions, span: NOWHERE }
  return { kind: 'cast', operand: expression, type, span: NOWHERE }
}

/** For messages and `castToNamed`. */
export function typeNameOf(type: TypeName): string {
  return `${type.schema === null ? '' : `${type.schema}.`}${type.name}${'[]'.repeat(type.dimensions)}`
}

/** A domain counts as what it is made of. */
export function baseOf(type: DataType): DataType {
  return type.kind === 'domain' && type.of !== null ? baseOf(type.of) : type
}

export function isText(type: DataType): boolean {
  const base = baseOf(type)
  return base.category === 'S' && base.kind === 'base'
}

export function isJson(type: DataType): boolean {
  const { name } = baseOf(type)
  return name === 'json' || name === 'jsonb'
}

/** What `fts` can search: text, JSON by the texts in it, and what has been made a tsvector already. */
export function isDocument(type: DataType): boolean {
  return isText(type) || isJson(type) || baseOf(type).name === 'tsvector'
}

/**
 * The operators of enums take `anyenum`, which a domain over an enum does not match, as it would match
 * `anyarray` or `anyrange` (PostgreSQL manual, 36.2.5): it has not even `=`, until it is cast.
 */
export function isEnumDomain(type: DataType): boolean {
  return type.kind === 'domain' && baseOf(type).kind === 'enum'
}

/** False where PostgreSQL is known to refuse; types that it did not come with are left to it. */
export function isOrdered(type: DataType): boolean {
  return !isAmong(UNORDERED, type)
}

/** As `isOrdered`, for `=` and its kin. */
export function isComparable(type: DataType): boolean {
  return !isAmong(INCOMPARABLE, type)
}

/** An array or domain is as its elements or base are. */
function isAmong(names: ReadonlySet<string>, type: DataType): boolean {
  const base = baseOf(type)
  if (base.kind === 'array' && base.of !== null) return isAmong(names, base.of)
  return base.schema === 'pg_catalog' && names.has(base.name)
}

/**
 * Numbers, text, dates, booleans, enums: they contain nothing, so `@>`, `<@` and `&&` mean nothing to them.
 */
export function isScalar(type: DataType): boolean {
  const base = baseOf(type)
  return base.kind === 'enum' || (base.kind === 'base' && 'NSDBT'.includes(base.category))
}

/** The types that `search` looks into when it is given no columns. */
const SEARCHED = typeSet('text', 'varchar', 'bpchar', 'citext')

export function isSearchable(type: DataType): boolean {
  return SEARCHED.has(baseOf(type).name)
}

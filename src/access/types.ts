/** How the check speaks of PostgreSQL's types: as cast targets and in questions about them. */
import type { DataType } from '../catalog/model.ts'
import type { Cast, Expression, TypeName } from '../language/ast.ts'
import { NOWHERE } from '../language/ast.ts'

/**
 * Names that mean something else when written bare: `char` and `bit` take a length of one. Behind their schema they are the
 * types of the catalogue (manual, 8.3, 8.10).
 */
const NEEDS_SCHEMA: ReadonlySet<string> = new Set(['char', 'bit'])

/** `expression::type`, for a domain the type it is made of: a filter may name a value that the domain's checks refuse. */
export function castTo(expression: Expression, type: DataType): Cast {
  return { kind: 'cast', operand: expression, type: toTypeName(type), span: NOWHERE }
}

function toTypeName(type: DataType): TypeName {
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

/** For messages. */
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

/** The types that `search` looks into when it is given no columns (decisions 3). */
const SEARCHED: ReadonlySet<string> = new Set(['text', 'varchar', 'bpchar', 'citext'])

export function isSearchable(type: DataType): boolean {
  return SEARCHED.has(baseOf(type).name)
}

/**
 * Names the types of arguments in the tree exactly as declared, so that PostgreSQL selects the overload
 * chosen here.
 */
import { toTypeName } from '../../access/types.ts'
import type { DataType } from '../../catalog/model.ts'
import type { TypeName } from '../../language/tree/ast.ts'
import { NOWHERE } from '../../language/tree/ast.ts'

/**
 * The exact type of an argument. Domains are kept, unlike in filters and writes, because `f(zip)` and
 * `f(text)` are different functions.
 */
export function exactTypeName(type: DataType): TypeName {
  if (type.kind === 'array' && type.of !== null) return { ...exactTypeName(type.of), dimensions: 1 }
  if (type.kind !== 'domain') return toTypeName(type)
  return { kind: 'type', schema: type.schema, name: type.name, modifiers: [], dimensions: 0, span: NOWHERE }
}

/** The name of a built-in type or of an array of it. */
export function builtIn(name: string, dimensions: 0 | 1): TypeName {
  return { kind: 'type', schema: null, name, modifiers: [], dimensions, span: NOWHERE }
}

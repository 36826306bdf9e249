/** The types of arguments as the tree names them: exactly as declared, so that PostgreSQL takes the overload that was chosen here. */
import { toTypeName } from '../../access/types.ts'
import type { DataType } from '../../catalog/model.ts'
import type { TypeName } from '../../language/tree/ast.ts'
import { NOWHERE } from '../../language/tree/ast.ts'

/** Unlike in filters and writes a domain stays one: `f(zip)` and `f(text)` are two functions. */
export function exactTypeName(type: DataType): TypeName {
  if (type.kind === 'array' && type.of !== null) return { ...exactTypeName(type.of), dimensions: 1 }
  if (type.kind !== 'domain') return toTypeName(type)
  return { kind: 'type', schema: type.schema, name: type.name, modifiers: [], dimensions: 0, span: NOWHERE }
}

/** A type of PostgreSQL's own, or an array of it. */
export function builtIn(name: string, dimensions: 0 | 1): TypeName {
  return { kind: 'type', schema: null, name, modifiers: [], dimensions, span: NOWHERE }
}

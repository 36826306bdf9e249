/** The types that `select` casts to, by any of PostgreSQL's names for them. */
import type { TypeName } from '../language/tree/ast.ts'
import { NOWHERE } from '../language/tree/ast.ts'
import { SQL_NAMES } from '../types/builtin.ts'
import { SEVERAL_WORDS } from '../types/traits.ts'

/** The type that a cast names: `text`, `double precision`, `timestamp with time zone`. */
export function castType(written: string): TypeName {
  const lower = written.toLowerCase().replace(/\s+/g, ' ')
  const name = SEVERAL_WORDS.get(lower) ?? SQL_NAMES.get(lower) ?? lower
  return { kind: 'type', schema: null, name, modifiers: [], dimensions: 0, span: NOWHERE }
}

/** The types that `select` casts to, by any of PostgreSQL's names for them. */
import { findCastable } from '../access/castable.ts'
import type { View } from '../access/rights.ts'
import type { TypeName } from '../language/tree/ast.ts'
import { NOWHERE } from '../language/tree/ast.ts'
import { SQL_NAMES } from '../types/builtin.ts'
import { SEVERAL_WORDS } from '../types/traits.ts'
import type { BoundLevel } from './bind.ts'
import { undefinedType } from './errors.ts'

/** The type that a cast names: `text`, `double precision`, `timestamp with time zone`. */
export function castType(written: string): TypeName {
  const lower = written.toLowerCase().replace(/\s+/g, ' ')
  const name = SEVERAL_WORDS.get(lower) ?? SQL_NAMES.get(lower) ?? lower
  return { kind: 'type', schema: null, name, modifiers: [], dimensions: 0, span: NOWHERE }
}

/** @throws {PostgrestError} `42704` for a cast to a type that is not known, at any level. */
export function assertCastable(level: BoundLevel, view: View): void {
  for (const { cast, aggregate } of level.fields) {
    for (const name of [cast, aggregate?.cast ?? null]) {
      if (name !== null && findCastable(castType(name), view) === null) throw undefinedType(name)
    }
  }
  for (const embed of level.embedded) assertCastable(embed, view)
}

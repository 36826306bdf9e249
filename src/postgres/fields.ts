/** Column descriptions as users of the pool see them. */
import { decodeRowDescription } from './protocol/backend.ts'
import type { FieldDescription } from './types.ts'

export type { FieldDescription }

/** Of a statement that returns no rows. */
export const NO_FIELDS: readonly FieldDescription[] = []

export function readFields(bytes: Buffer, start: number, end: number): readonly FieldDescription[] {
  return decodeRowDescription(bytes, start, end).map(({ name, typeOid }) => ({ name, typeOid }))
}

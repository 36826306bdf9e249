/** Column descriptions for users of the pool. */
import { decodeRowDescription } from './protocol/backend.ts'
import type { FieldDescription } from './types.ts'

export type { FieldDescription }

/** The fields of a statement that returns no rows. */
export const NO_FIELDS: readonly FieldDescription[] = []

/** Decodes a RowDescription. */
export function readFields(bytes: Buffer, start: number, end: number): readonly FieldDescription[] {
  return decodeRowDescription(bytes, start, end).map(({ name, typeOid }) => ({ name, typeOid }))
}

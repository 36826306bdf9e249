/** Refuses writes and calls that affect more rows than the request permits. */
import { TOO_MANY_ROWS } from '../compile/print-write.ts'
import { GatewayError } from '../errors.ts'
import { DatabaseError } from '../postgres/errors.ts'
import { notSingular, tooManyAffected } from './errors.ts'
import type { DoorRequest } from './request.ts'

/** The number of rows above which the request is rolled back; null for no limit. */
export function rowsMaxOf({ mediaType, preferences }: Pick<DoorRequest, 'mediaType' | 'preferences'>): number | null {
  return mediaType.form === 'object' ? 1 : preferences.maxAffected
}

const TOO_MANY = new RegExp(`${TOO_MANY_ROWS}(\\d+)`)

/** The error for too many rows, whose number PostgreSQL's message contains; any other error unchanged. */
export function refuseTooMany(error: unknown, { mediaType }: Pick<DoorRequest, 'mediaType'>): never {
  const cause = error instanceof GatewayError ? error.cause : null
  const count = cause instanceof DatabaseError ? TOO_MANY.exec(cause.message)?.[1] : undefined
  if (count === undefined) throw error
  throw mediaType.form === 'object' ? notSingular(Number(count)) : tooManyAffected(Number(count))
}

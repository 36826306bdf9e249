/** Reads the headers that say what reads on a replica must see (docs/operations/replicas.md). */
import { GatewayError } from '../errors.ts'
import type { Incoming } from '../exchange.ts'
import { headerOf } from '../rest/header.ts'
import { preferencesOf } from '../rest/prefer.ts'
import type { Consistency } from '../usage.ts'

const PLAIN: Consistency = { isStrong: false, after: 0n }
/** All reads run on the primary. */
export const STRONG: Consistency = { isStrong: true, after: 0n }

/** PostgreSQL manual, 8.20: two hexadecimal numbers of up to 8 digits. */
const POSITION = /^\s*([0-9a-f]{1,8})\/([0-9a-f]{1,8})\s*$/i

/** Limit on the characters of a rejected value in the message. */
const SHOWN_MAX = 40

/** @throws {GatewayError} `PARSE_ERROR` for an invalid `X-Svc-LSN`. */
function consistencyOf(headers: Incoming['headers']): Consistency {
  if (headers['x-svc-lsn'] === undefined && headers.prefer === undefined) return PLAIN
  const after = positionOf(headers)
  if (isStrong(headers)) return STRONG
  return after === 0n ? PLAIN : { isStrong: false, after }
}

/** Looks for the name first, which is cheaper than parsing: most preferences are about something else. */
function isStrong(headers: Incoming['headers']): boolean {
  const prefer = headerOf(headers, 'prefer')
  return prefer !== undefined && /consistency/i.test(prefer) && preferencesOf(headers).strong
}

/** Records what the reads of a request, or of an operation of a batch without a transaction, must see. */
export function requireConsistency({ headers, operation, usage: { worked } }: Incoming): void {
  // Reads in a transaction see what it has written.
  if ('within' in worked) return
  const own = consistencyOf(headers)
  const { consistency: ofBatch } = worked
  worked.consistency = operation === undefined || ofBatch === undefined ? own : stricter(ofBatch, own)
}

/** Runs the reads of a request on the primary. The result cache answers them as it would otherwise. */
export function keepOnPrimary({ usage: { worked } }: Incoming): void {
  worked.consistency = worked.consistency === PLAIN ? undefined : STRONG
}

function stricter(one: Consistency, other: Consistency): Consistency {
  if (one.isStrong || other.isStrong) return STRONG
  return one.after >= other.after ? one : other
}

function positionOf(headers: Incoming['headers']): bigint {
  const given = headerOf(headers, 'x-svc-lsn')
  if (given === undefined) return 0n
  const [, high, low] = POSITION.exec(given) ?? []
  if (high !== undefined && low !== undefined) return (BigInt(`0x${high}`) << 32n) | BigInt(`0x${low}`)
  const shown = given.length > SHOWN_MAX ? `${given.slice(0, SHOWN_MAX)}…` : given
  throw new GatewayError(
    'PARSE_ERROR',
    `X-Svc-LSN must be one position as a write returned it, such as 16/B374D848, and not "${shown}"; ` +
      'send the header of an earlier response, or leave it out',
  )
}

/**
 * The cache key of a result: everything that is sent to the database (docs/guides/caching.md#cache-key).
 * - the caller's settings, as the bytes that would be sent, so that settings added later are included
 *   automatically;
 * - the texts of the statements, in order;
 * - the values, each preceded by its length, so that no two lists have the same key.
 * Settings and texts are long and shared by many requests, so their digests are used, which are computed once
 * for each identity and statement. A collision would require breaking SHA-256.
 */
import { createHash, hash } from 'node:crypto'
import type { StatementValue } from '../../compile/statement.ts'
import type { Identity } from '../../identity/identity.ts'
import type { Command } from '../../postgres/types.ts'

/** The digest as Latin-1, one character for each byte: the shortest text, which a map hashes fastest. */
export function digestOfText(text: string): string {
  return hash('sha256', text, 'binary')
}

/** The digest of a caller's session settings. */
export function createCallerDigests(settingsFor: (identity: Identity) => Command): (identity: Identity) => string {
  const known = new WeakMap<Identity, string>()
  return identity => {
    const found = known.get(identity)
    if (found !== undefined) return found
    const { text, parameters } = settingsFor(identity)
    const digest = createHash('sha256').update(`${text.length}:${text}`)
    if ('bytes' in parameters) digest.update(parameters.bytes)
    else digest.update(printValues(parameters))
    const made = digest.digest('binary')
    known.set(identity, made)
    return made
  }
}

/** Prints the values of one statement, whose text determines their number. */
export function printValues(values: readonly StatementValue[]): string {
  let text = ''
  for (const value of values) {
    if (value === null) text += '-'
    else if (typeof value === 'string') text += `${value.length}:${value}`
    else text += `${value.length}=${value.toString('latin1')}`
  }
  return text
}

/** The number of characters of the values. */
export function measureValues(values: readonly StatementValue[]): number {
  let length = 0
  for (const value of values) length += value === null ? 1 : value.length
  return length
}

/**
 * The cache key of an answer: everything that reaches the database (docs/guides/caching.md#cache-key).
 *
 * - the settings of the caller, as the very bytes that would be sent: what is added to them some day is in the key by itself;
 * - the texts of the statements, in their order;
 * - the values, each with its length before it, so that no two lists of them read alike.
 *
 * Settings and texts are long and the same for many requests, so their digests stand for them, which are made once for each identity and statement. Who could
 * make two of one digest could forge certificates.
 */
import { createHash, hash } from 'node:crypto'
import type { StatementValue } from '../../compile/statement.ts'
import type { Identity } from '../../identity/identity.ts'
import type { Command } from '../../postgres/types.ts'

/** As many characters as bytes: what a map hashes fastest. */
export function digestOfText(text: string): string {
  return hash('sha256', text, 'binary')
}

/** The digest of what the database is told about a caller. */
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

/** The values of one statement. Which statement it is says how many there are. */
export function printValues(values: readonly StatementValue[]): string {
  let text = ''
  for (const value of values) {
    if (value === null) text += '-'
    else if (typeof value === 'string') text += `${value.length}:${value}`
    else text += `${value.length}=${value.toString('latin1')}`
  }
  return text
}

/** Of how many characters the values are. */
export function measureValues(values: readonly StatementValue[]): number {
  let length = 0
  for (const value of values) length += value === null ? 1 : value.length
  return length
}

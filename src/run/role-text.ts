/**
 * Texts of statements for each database role. When PostgreSQL replaces a function by its body, it checks the
 * right to call it while it plans, and not again when the plan is used for another role. Prepared statements
 * are found by their text, so roles have different texts, and no role uses a plan that was made for another.
 * A plan that depends on row-level security is also not made again whenever the role changes.
 */
import { LRUCache } from 'lru-cache'
import type { Identity } from '../identity/identity.ts'

/** Limits on the kept texts: roles, texts of a role, and their characters. */
const ROLES_MAX = 64
const TEXTS_MAX = 1_000
const CHARACTERS_MAX = 1024 * 1024

const known = new LRUCache<string, LRUCache<string, string>>({ max: ROLES_MAX })

/** The text for the role of a caller. It is unchanged for callers that use the role of the connection. */
export function textForRole(text: string, { role, session }: Pick<Identity, 'role' | 'session'>): string {
  if (session === undefined) return text
  let texts = known.get(role)
  if (texts === undefined) {
    texts = new LRUCache({ max: TEXTS_MAX, maxSize: CHARACTERS_MAX, sizeCalculation: made => made.length })
    known.set(role, texts)
  }
  const found = texts.get(text)
  if (found !== undefined) return found
  // Encoded, so a name cannot end the comment.
  const made = `${text} /* role ${encodeURIComponent(Buffer.from(role).toString())} */`
  texts.set(text, made)
  return made
}

/** The messages that gateways send each other through the store. */

/** A message. `from` is the id of the gateway that sent it. */
export type SharedMessage =
  | { readonly kind: 'changed'; readonly from: string; readonly relations: readonly number[] | null }
  | { readonly kind: 'revoked'; readonly from: string }

/** Limit on the characters of a message; more relations than fit mean all of them. */
const MESSAGE_CHARACTERS_MAX = 16_384

/** Prints a message. */
export function printSharedMessage(message: SharedMessage): string {
  const text = JSON.stringify(message)
  return text.length <= MESSAGE_CHARACTERS_MAX ? text : JSON.stringify({ ...message, relations: null })
}

/**
 * Parses a message. Null for anything else: other programs can use the store, and gateways of another version
 * can send other messages.
 */
export function parseSharedMessage(text: string): SharedMessage | null {
  if (text.length > MESSAGE_CHARACTERS_MAX) return null
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return null
  }
  if (typeof value !== 'object' || value === null || !('from' in value) || typeof value.from !== 'string') return null
  const { from } = value
  if (!('kind' in value)) return null
  if (value.kind === 'revoked') return { kind: 'revoked', from }
  if (value.kind !== 'changed' || !('relations' in value)) return null
  const { relations } = value
  if (relations === null) return { kind: 'changed', from, relations }
  if (!Array.isArray(relations) || !relations.every(Number.isInteger)) return null
  return { kind: 'changed', from, relations }
}

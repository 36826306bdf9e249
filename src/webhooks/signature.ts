/** Signs requests as Standard Webhooks says (https://www.standardwebhooks.com, "Verifying webhook authenticity"). */
import { Webhook } from 'standardwebhooks'

const SECRET_BYTES_MIN = 24
const SECRET_BYTES_MAX = 64

const PREFIX = 'whsec_'

export const SIGNATURE_HEADERS = {
  id: 'webhook-id',
  timestamp: 'webhook-timestamp',
  signature: 'webhook-signature',
} as const

/** Null if it can sign. Base64, because receivers' libraries decode it, with or without the prefix. */
export function whyNoSecret(secret: string): string | null {
  const encoded = secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : secret
  const bytes = Buffer.from(encoded, 'base64')
  const isBase64 = /^[A-Za-z0-9+/]+={0,2}$/.test(encoded) && bytes.toString('base64') === encoded
  if (isBase64 && bytes.length >= SECRET_BYTES_MIN && bytes.length <= SECRET_BYTES_MAX) return null
  return `expected base64 of ${SECRET_BYTES_MIN} to ${SECRET_BYTES_MAX} random bytes, with or without ${PREFIX} before it; make one: openssl rand -base64 32`
}

/**
 * The headers by which a receiver knows who sent a body and that nobody changed it; `id` is the same on every try, so that it also knows what it has seen
 * before. With several secrets there are as many signatures, and one that fits is enough. Without a secret nothing is signed.
 */
export function signatureHeaders(
  secrets: readonly string[],
  id: string,
  nowMs: number,
  body: Buffer,
): Readonly<Record<string, string>> {
  const at = new Date(Math.floor(nowMs / 1_000) * 1_000)
  const head = { [SIGNATURE_HEADERS.id]: id, [SIGNATURE_HEADERS.timestamp]: String(at.getTime() / 1_000) }
  if (secrets.length === 0) return head
  // The library signs text; a body is UTF-8, so it is the same bytes again.
  const text = body.toString()
  const signatures = secrets.map(secret => new Webhook(secret).sign(id, at, text))
  return { ...head, [SIGNATURE_HEADERS.signature]: signatures.join(' ') }
}

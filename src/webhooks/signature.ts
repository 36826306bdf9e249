/**
 * Signs requests according to Standard Webhooks (https://www.standardwebhooks.com, "Verifying webhook
 * authenticity").
 */
import { Webhook } from 'standardwebhooks'

const SECRET_BYTES_MIN = 24
const SECRET_BYTES_MAX = 64

const PREFIX = 'whsec_'

const HINT = `with or without the prefix ${PREFIX}; to create one, run: openssl rand -base64 32`

/** The headers of a signature. */
export const SIGNATURE_HEADERS = {
  id: 'webhook-id',
  timestamp: 'webhook-timestamp',
  signature: 'webhook-signature',
} as const

/**
 * Why a secret cannot be used for signing; null if it can. Secrets are base64, with or without the prefix,
 * because receivers' libraries decode them.
 */
export function secretProblem(secret: string): string | null {
  const encoded = secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : secret
  const bytes = Buffer.from(encoded, 'base64')
  const isBase64 = /^[A-Za-z0-9+/]+={0,2}$/.test(encoded) && bytes.toString('base64') === encoded
  if (isBase64 && bytes.length >= SECRET_BYTES_MIN && bytes.length <= SECRET_BYTES_MAX) return null
  return `expected base64 of ${SECRET_BYTES_MIN} to ${SECRET_BYTES_MAX} random bytes, ${HINT}`
}

/**
 * The headers by which a receiver verifies the sender and the body. `id` is the same for every attempt, so
 * that receivers can detect duplicates. With several secrets there is one signature each, and one valid
 * signature is enough. Without secrets the request is not signed.
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
  // The library signs text. A body is UTF-8, so converting it preserves the bytes.
  const text = body.toString()
  const signatures = secrets.map(secret => new Webhook(secret).sign(id, at, text))
  return { ...head, [SIGNATURE_HEADERS.signature]: signatures.join(' ') }
}

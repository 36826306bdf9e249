/** Tokens with any claims. */
import { createHmac } from 'node:crypto'

/** Signs claims with HS256. */
export function signed(claims: object, secret: string): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const head = `${part({ alg: 'HS256', typ: 'JWT' })}.${part(claims)}`
  return `${head}.${createHmac('sha256', secret).update(head).digest('base64url')}`
}

/** Who calls: what a token or the development headers say, in the form every later stage uses. */

export interface Identity {
  readonly source: 'jwt' | 'headers' | 'anonymous'
  /** Empty string where absent: so it reaches the database, and nothing of an earlier caller can stay in the setting. */
  readonly tenantId: string
  readonly userId: string
  readonly agentId: string
  readonly role: string
  readonly scopes: readonly string[]
  /** All claims as JSON text; `{}` without a token. */
  readonly claims: string
  /** Seconds since the epoch, or null: the token's `exp`. */
  readonly expiresAt: number | null
}

/** The caller, as a token or the development headers describe it, in the form that every later stage uses. */

export interface Identity {
  readonly source: 'jwt' | 'headers' | 'anonymous'
  /**
   * Empty if absent. The empty string is sent to PostgreSQL, so a setting never keeps the value of an
   * earlier caller.
   */
  readonly tenantId: string
  readonly userId: string
  readonly agentId: string
  readonly role: string
  readonly scopes: readonly string[]
  /** All claims as JSON text; `{}` without a token. */
  readonly claims: string
  /** The token's `exp` in seconds since the epoch; null if the identity does not expire. */
  readonly expiresAt: number | null
}

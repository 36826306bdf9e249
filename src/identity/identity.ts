/** The caller, as a token or the development headers describe it, in the form that every later stage uses. */
import type { TokenFacts } from './denylist.ts'

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
  /**
   * The facts by which the token can be revoked; absent without a token. Identities derived from this one
   * keep the object.
   */
  readonly token?: TokenFacts
  /** Additions to every transaction of one request; absent for requests below `/api`. */
  readonly session?: RequestSession
}

/** Settings and commands around the statements of one request. */
export interface RequestSession {
  /**
   * Session settings after those of the caller. The names depend on the configuration, not on the caller. An
   * array belongs to one caller and one timeout, so what is made for it serves other requests with the same
   * array.
   */
  readonly settings: readonly (readonly [name: string, value: string])[]
  /** In milliseconds: that of the role, or the shorter one that the request prefers. Null for none. */
  readonly timeoutMs: number | null
  /** SQL that runs after the settings and before the first statement; null for none. */
  readonly before: string | null
  /** True if the transaction is rolled back after its statements. */
  readonly rollsBack: boolean
  /**
   * Receives the settings `response.headers` and `response.status` as the statements left them; empty or null
   * if they are not set.
   */
  readonly replied: (headers: string | null, status: string | null) => void
}

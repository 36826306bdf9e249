/**
 * Revoked tokens, as listed in the table `jwt_denylist_table`
 * (docs/guides/authentication.md#revoke-tokens). The table is read at startup and every few seconds, so a
 * revocation takes effect at every gateway within ten seconds.
 */
import type { Clock } from '../clock.ts'

/** The properties of a token by which it can be revoked. */
export interface TokenFacts {
  readonly jti: string | null
  readonly sub: string | null
  /** The time of issue in seconds since the epoch; null if the token has none. */
  readonly iat: number | null
}

/** A row of the table, as texts. */
export interface DeniedRow {
  readonly jti: string | null
  readonly sub: string | null
  /** The time in seconds since the epoch; null if the row has none. */
  readonly iat: string | null
}

/** The list of revoked tokens. */
export interface Denylist {
  denies(facts: TokenFacts): boolean
  /** A number that changes with the list: earlier results must then be computed again. */
  version(): number
}

/** The list of a gateway without a denylist table. */
export const NOTHING_DENIED: Denylist = { denies: () => false, version: () => 0 }

/** The maximum number of rows in force: the newest ones. */
export const DENIED_ROWS_MAX = 20_000

const READ_INTERVAL_MS = 3_000

/** The dependencies of the list of revoked tokens. */
export interface DenylistParts {
  /** Reads the newest rows first, at most one more than `DENIED_ROWS_MAX`. */
  readonly read: () => Promise<readonly DeniedRow[]>
  readonly clock: Clock
  /** Called after each read. */
  readonly onRead: () => void
  /** Called once whenever a problem begins. */
  readonly onProblem: (message: string) => void
}

/** The revoked tokens of a table, read periodically. */
export class RevokedTokens implements Denylist {
  readonly #parts: DenylistParts
  #jtis: ReadonlySet<string> = new Set()
  /** Tokens of a subject that were issued before this time, in seconds, are revoked. */
  #bySubject: ReadonlyMap<string, number> = new Map()
  /** Tokens of all subjects that were issued before this time are revoked. */
  #before = Number.NEGATIVE_INFINITY
  #version = 0
  #problem: string | null = null
  #isClosed = false
  #cancel: () => void = () => {}

  private constructor(parts: DenylistParts) {
    this.#parts = parts
  }

  /** Reads the table. Rejects if that fails: without the list no token can be accepted. */
  static async open(parts: DenylistParts): Promise<RevokedTokens> {
    const list = new RevokedTokens(parts)
    list.#take(await parts.read())
    list.#readLater()
    return list
  }

  denies({ jti, sub, iat }: TokenFacts): boolean {
    if (jti !== null && this.#jtis.has(jti)) return true
    const threshold = Math.max(this.#before, (sub === null ? undefined : this.#bySubject.get(sub)) ?? this.#before)
    // A token without an issue time may have been issued before the threshold.
    return threshold > (iat ?? Number.NEGATIVE_INFINITY)
  }

  version(): number {
    return this.#version
  }

  /** Reads the table now, because it is known to have changed. */
  refresh(): void {
    if (this.#isClosed) return
    this.#cancel()
    void this.#readAgain()
  }

  close(): void {
    this.#isClosed = true
    this.#cancel()
  }

  #take(rows: readonly DeniedRow[]): void {
    const inForce = rows.slice(0, DENIED_ROWS_MAX)
    const subjects = new Map<string, number>()
    let before = Number.NEGATIVE_INFINITY
    for (const { jti, sub, iat } of inForce) {
      if (jti !== null) continue
      // Without a time, all tokens of the subject are revoked.
      const threshold = iat === null ? Number.POSITIVE_INFINITY : Number(iat)
      if (sub !== null) subjects.set(sub, Math.max(threshold, subjects.get(sub) ?? threshold))
      else if (iat !== null) before = Math.max(before, threshold)
    }
    const jtis = new Set(inForce.flatMap(({ jti }) => jti ?? []))
    const isSame = isEqualSet(jtis, this.#jtis) && isEqualMap(subjects, this.#bySubject) && before === this.#before
    if (!isSame) this.#version += 1
    this.#jtis = jtis
    this.#bySubject = subjects
    this.#before = before
    const isTooLong = rows.length > DENIED_ROWS_MAX
    this.#is(isTooLong ? `it has more than ${DENIED_ROWS_MAX} rows, and only the newest rows are in force` : null)
  }

  #readLater(): void {
    if (this.#isClosed) return
    this.#cancel()
    this.#cancel = this.#parts.clock.after(READ_INTERVAL_MS, () => void this.#readAgain())
  }

  /** Never rejects: the last list stays in force. */
  async #readAgain(): Promise<void> {
    try {
      const rows = await this.#parts.read()
      if (this.#isClosed) return
      this.#take(rows)
      this.#parts.onRead()
    } catch (error) {
      this.#is(`it cannot be read, and the previous list stays in force: ${(error as Error).message}`)
    }
    this.#readLater()
  }

  #is(problem: string | null): void {
    if (problem !== null && problem !== this.#problem) this.#parts.onProblem(problem)
    this.#problem = problem
  }
}

function isEqualSet(one: ReadonlySet<string>, other: ReadonlySet<string>): boolean {
  return one.size === other.size && [...one].every(member => other.has(member))
}

function isEqualMap(one: ReadonlyMap<string, number>, other: ReadonlyMap<string, number>): boolean {
  return one.size === other.size && [...one].every(([key, value]) => other.get(key) === value)
}

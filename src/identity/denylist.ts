/**
 * Revoked tokens, as the table `jwt_denylist_table` lists them (docs/guides/authentication.md#revoke-tokens): read at the start and
 * then every few seconds, so that a revocation holds at every gateway within ten.
 */
import type { Clock } from '../clock.ts'

/** What a token can be revoked by. */
export interface TokenFacts {
  readonly jti: string | null
  readonly sub: string | null
  /** Seconds since the epoch. */
  readonly iat: number | null
}

/** A row of the table, as text. */
export interface DeniedRow {
  readonly jti: string | null
  readonly sub: string | null
  /** Seconds since the epoch. */
  readonly iat: string | null
}

export interface Denylist {
  denies(facts: TokenFacts): boolean
  /** Another number whenever the list has changed: whatever was asked before has to be asked again. */
  version(): number
}

export const NOTHING_DENIED: Denylist = { denies: () => false, version: () => 0 }

/** More rows than these are not in force; the newest are. */
export const DENIED_ROWS_MAX = 20_000

const READ_INTERVAL_MS = 3_000

export interface DenylistParts {
  /** The newest rows first, one more than `DENIED_ROWS_MAX` at most. */
  readonly read: () => Promise<readonly DeniedRow[]>
  readonly clock: Clock
  /** After each read. */
  readonly onRead: () => void
  /** Once for each time that something becomes wrong. */
  readonly onProblem: (message: string) => void
}

export class RevokedTokens implements Denylist {
  readonly #parts: DenylistParts
  #jtis: ReadonlySet<string> = new Set()
  /** Tokens of a subject that were issued before this are revoked; in seconds. */
  #bySubject: ReadonlyMap<string, number> = new Map()
  /** Of everybody. */
  #before = Number.NEGATIVE_INFINITY
  #version = 0
  #problem: string | null = null
  #isClosed = false
  #cancel: () => void = () => {}

  private constructor(parts: DenylistParts) {
    this.#parts = parts
  }

  /** Rejects when the table cannot be read: nobody can be let in while it is not known who is revoked. */
  static async open(parts: DenylistParts): Promise<RevokedTokens> {
    const list = new RevokedTokens(parts)
    list.#take(await parts.read())
    list.#readLater()
    return list
  }

  denies({ jti, sub, iat }: TokenFacts): boolean {
    if (jti !== null && this.#jtis.has(jti)) return true
    const threshold = Math.max(this.#before, (sub === null ? undefined : this.#bySubject.get(sub)) ?? this.#before)
    // A token that does not say when it was issued may have been issued before.
    return threshold > (iat ?? Number.NEGATIVE_INFINITY)
  }

  version(): number {
    return this.#version
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
      // Without a time, all tokens of the subject are.
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
    this.#is(isTooLong ? `it has more than ${DENIED_ROWS_MAX} rows, and only the newest of them are in force` : null)
  }

  #readLater(): void {
    if (this.#isClosed) return
    this.#cancel = this.#parts.clock.after(READ_INTERVAL_MS, () => void this.#readAgain())
  }

  /** Never rejects: what was read last stays in force. */
  async #readAgain(): Promise<void> {
    try {
      const rows = await this.#parts.read()
      if (this.#isClosed) return
      this.#take(rows)
      this.#parts.onRead()
    } catch (error) {
      this.#is(`it cannot be read, and what was read before stays in force: ${(error as Error).message}`)
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

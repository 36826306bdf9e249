/**
 * The result cache (docs/guides/caching.md, decision 0016): answers of reads are kept until they are too old, something they were read from changes, or others are
 * wanted more.
 *
 * It stands between the tenant's gate and the cost guard. So a tenant at its limit is refused whether or not somebody has asked the same before. And
 * what is kept has passed the guard, so it is not judged again.
 */
import type { Catalog } from '../../catalog/model.ts'
import type { BoundStatement, Readable } from '../../compile/statement.ts'
import { hasClockWord } from '../../compile/steady.ts'
import { GatewayError } from '../../errors.ts'
import type { Identity } from '../../identity/identity.ts'
import { DatabaseError, UnavailableError } from '../../postgres/errors.ts'
import type { Reading, Runner } from '../run.ts'
import type { SettingsSource } from '../settings.ts'
import { type Answers, createAnswers, WEIGHT_MAX } from './answers.ts'
import { type Changes, createChanges } from './changes.ts'
import { withParts } from './footprint.ts'
import { createCallerDigests, measureValues, printValues } from './key.ts'
import { createStatementPlans, type StatementPlans } from './plans.ts'

/** Values of more characters are not looked up: it would take long, and hardly anybody sends them twice. */
export const VALUE_CHARACTERS_MAX = 8_192

export interface CacheStats {
  readonly hits: number
  /** Reads that were executed while the cache was on. */
  readonly misses: number
  /** Misses although the answer was cached, because the gateway was too far behind the change log. */
  readonly bypassed: number
  /** Age of the last read of the change log; null when no table is captured. */
  readonly knownAgeMs: number | null
  readonly entries: number
  readonly entriesMax: number
  /** Bytes, roughly: answers with their keys and what is around them. */
  readonly weight: number
  readonly weightMax: number
}

export interface ResultCacheParts {
  readonly catalog: () => Catalog
  readonly settings: SettingsSource
  readonly entriesMax: number
  readonly ttlMs: number
  /** The moment, on the clock of `now`, before which all changes of captured tables are known; null when no table is captured. */
  readonly knownUntil: () => number | null
  /** Limit on how far `knownUntil` may lie in the past while cached answers are served. */
  readonly stalenessMsMax: number
  /** How long a statement may run on when nobody is there to hear of its end. */
  readonly statementTimeoutMs: number
  /** Milliseconds, monotonic. */
  readonly now: () => number
  /** Calls back once, without keeping the process alive. */
  readonly after: (delayMs: number, call: () => void) => void
}

interface Found {
  /** Null: what is asked for is not to be kept. */
  readonly key: string | null
  /** Null: it is not kept. */
  readonly reading: Reading | null
}

export class ResultCache {
  readonly #parts: ResultCacheParts
  readonly #changes: Changes = createChanges()
  readonly #answers: Answers
  readonly #callerDigest: (identity: Identity) => string
  #catalog: Catalog
  #plans: StatementPlans
  /** Of statements whose answer was found: for whom it was asked last, and under which key. What asks again (rest/read) brings the same statement. */
  #lastFound = new WeakMap<BoundStatement<Readable>, { readonly caller: string; readonly key: string }>()
  #hits = 0
  #misses = 0
  #bypassed = 0

  constructor(parts: ResultCacheParts) {
    this.#parts = parts
    this.#answers = createAnswers(parts.entriesMax)
    this.#callerDigest = createCallerDigests(identity => parts.settings.for(identity, 'read only'))
    this.#catalog = parts.catalog()
    this.#plans = createStatementPlans(this.#catalog, this.#changes)
  }

  /** The runner, with every change that goes through it known here. Nothing else may write. */
  watching(runner: Runner): Runner {
    return {
      ...runner,
      write: (identity, statements, worked) => {
        const relations = this.#currentPlans().writing(statements.map(({ statement }) => statement))
        return this.#during(relations, statements.length, () => runner.write(identity, statements, worked))
      },
      call: (identity, statement, how, worked) => {
        const start = () => runner.call(identity, statement, how, worked)
        return how.access === 'read only' ? start() : this.#during(null, 1, start)
      },
    }
  }

  /** The runner, with reads served from the cache where they can be. */
  serving(runner: Runner): Runner {
    return {
      ...runner,
      read: (identity, statements, worked) => {
        const { key, reading } = this.#findFor(identity, statements)
        if (reading !== null) {
          this.#hits++
          return reading
        }
        this.#misses++
        const start = () => runner.read(identity, statements, worked)
        return key === null ? start() : this.#fill(key, statements, start)
      },
    }
  }

  /** Invalidates answers from these tables (OIDs), which another process has changed; null invalidates all answers. */
  changed(relations: readonly number[] | null): void {
    this.#currentPlans()
    this.#changes.begin(relations === null ? null : withParts(this.#catalog, relations))()
  }

  /** Forgets all answers, also those that are on their way. */
  clear(): void {
    this.#answers.clear()
    this.#changes.begin(null)()
  }

  stats(): CacheStats {
    const { entriesMax, knownUntil } = this.#parts
    return {
      hits: this.#hits,
      misses: this.#misses,
      bypassed: this.#bypassed,
      knownAgeMs: this.#ageOf(knownUntil()),
      entries: this.#answers.entries,
      entriesMax,
      weight: this.#answers.weight,
      weightMax: WEIGHT_MAX,
    }
  }

  /** The statements' plans of the catalogue in force; with another one everything begins anew. */
  #currentPlans(): StatementPlans {
    const current = this.#parts.catalog()
    if (current !== this.#catalog) {
      this.#catalog = current
      this.clear()
      this.#changes.forget()
      this.#plans = createStatementPlans(current, this.#changes)
      this.#lastFound = new WeakMap()
    }
    return this.#plans
  }

  /** An answer that is kept, under its key; one statement by itself has it at hand where the same caller found it before. */
  #findFor(identity: Identity, statements: readonly BoundStatement<Readable>[]): Found {
    this.#currentPlans()
    const caller = this.#callerDigest(identity)
    const [only] = statements.length === 1 ? statements : []
    const last = only === undefined ? undefined : this.#lastFound.get(only)
    if (last?.caller === caller) return { key: last.key, reading: this.#find(last.key) }
    const key = this.#keyOf(caller, statements)
    const reading = key === null ? null : this.#find(key)
    if (only !== undefined && key !== null && reading !== null) this.#lastFound.set(only, { caller, key })
    return { key, reading }
  }

  /** Null: the answer is not to be kept, whatever the values are. */
  #keyOf(caller: string, statements: readonly BoundStatement<Readable>[]): string | null {
    let key = caller
    let left = VALUE_CHARACTERS_MAX
    for (const { statement, values } of statements) {
      const plan = this.#plans.reading(statement)
      left -= measureValues(values)
      if (plan === null || left < 0) return null
      key += plan.digest + printValues(values)
    }
    return key
  }

  #find(key: string): Reading | null {
    const kept = this.#answers.get(key)
    if (kept === undefined) return null
    const { now, knownUntil, stalenessMsMax } = this.#parts
    const at = now()
    const known = knownUntil()
    if (known !== null && at - known > stalenessMsMax) {
      this.#bypassed++
      return null
    }
    if (kept.until > at && this.#changes.areQuietSince(kept.moment, kept.changes)) return kept.reading
    this.#answers.remove(key)
    return null
  }

  #ageOf(known: number | null): number | null {
    return known === null ? null : Math.max(0, this.#parts.now() - known)
  }

  /** Runs the read and keeps its answer, unless something changed on the way. */
  #fill(key: string, statements: readonly BoundStatement<Readable>[], start: () => Reading): Reading {
    const { now, ttlMs } = this.#parts
    const moment = this.#changes.now()
    const until = now() + ttlMs
    const changes = statements.flatMap(({ statement }) => this.#plans.reading(statement)?.changes ?? [])
    const isSteady = !statements.some(({ values }) => values.some(hasClockWord))
    const reading = start()
    if (!isSteady || !this.#changes.areQuietSince(moment, changes)) return reading
    const result = reading.result.then(results => {
      if (this.#changes.areQuietSince(moment, changes)) this.#answers.keep(key, results, { moment, changes, until })
      return results
    })
    return { result, cancel: () => reading.cancel() }
  }

  /** `relations` null: of what cannot be told. */
  #during<T extends { readonly result: Promise<unknown> }>(
    relations: ReadonlySet<number> | null,
    count: number,
    start: () => T,
  ): T {
    const { statementTimeoutMs, after } = this.#parts
    const end = this.#changes.begin(relations)
    try {
      const running = start()
      running.result.then(end, error => {
        if (isOver(error)) end()
        // Its statements may go on for as long as each of them is let.
        else after(Math.min(statementTimeoutMs * count, DELAY_MS_MAX), end)
      })
      return running
    } catch (error) {
      end()
      throw error
    }
  }
}

/** Node fires a timer of more at once. */
const DELAY_MS_MAX = 2 ** 31 - 1

/** Whether a change that failed has come to an end in the database, well or not; else it may still be made. */
function isOver(error: unknown): boolean {
  const cause = error instanceof GatewayError ? error.cause : error
  if (cause instanceof UnavailableError) return !cause.sent
  return cause instanceof DatabaseError
}

/**
 * The result cache (docs/guides/caching.md, decision 0016): results of reads are cached until they expire,
 * something they were read from changes, or they are displaced.
 * It is placed between the tenant's limit and the cost guard. So a tenant at its limit is refused even if the
 * result is cached, and cached results have passed the guard already.
 */
import type { Catalog } from '../../catalog/model.ts'
import { hasClockWord } from '../../compile/determinism.ts'
import type { BoundStatement, ReadableStatement } from '../../compile/statement.ts'
import { GatewayError } from '../../errors.ts'
import type { Identity } from '../../identity/identity.ts'
import { DatabaseError, UnavailableError } from '../../postgres/errors.ts'
import { seesSince } from '../replicas/sees-since.ts'
import type { Runner, RunningRead, Work } from '../run.ts'
import type { SettingsSource } from '../settings.ts'
import { type CachePlans, createCachePlans } from './cache-plans.ts'
import { type CachedResults, createCachedResults } from './cached-results.ts'
import { type ChangeClock, createChangeClock } from './change-clock.ts'
import { withPartitions } from './dependencies.ts'
import { createCallerDigests, measureValues, printValues } from './key.ts'

/**
 * Reads with more characters of values are not looked up: that would take long, and they are rarely repeated.
 */
export const VALUE_CHARACTERS_MAX = 8_192

/** Figures of the cache. */
export interface CacheStats {
  readonly hits: number
  /** Reads executed while the cache was enabled. */
  readonly misses: number
  /** Misses although the result was cached, because the gateway was too far behind the change log. */
  readonly bypassed: number
  /** Age of the last read of the change log; null if no table is captured. */
  readonly knownAgeMs: number | null
  readonly entries: number
  readonly entriesMax: number
  /** Approximate bytes of the results with keys and overhead. */
  readonly weight: number
  readonly weightMax: number
}

/** The dependencies of the cache. */
export interface ResultCacheParts {
  readonly catalog: () => Catalog
  readonly settings: SettingsSource
  readonly entriesMax: number
  /** Limit on the approximate bytes of all results. */
  readonly weightMax: number
  readonly ttlMs: number
  /**
   * The time, on the clock of `now`, before which all changes of captured tables are known; null if no table
   * is captured.
   */
  readonly knownUntil: () => number | null
  /** Limit on the age of `knownUntil` while cached results are served. */
  readonly stalenessMsMax: number
  /**
   * Invalidates results of these relations in the other workers, null for all; resolves when none is served
   * any more. Null if there is only this process.
   */
  readonly changedElsewhere: ((relations: readonly number[] | null) => Promise<void>) | null
  /** How long a statement may continue after its client has disconnected. */
  readonly statementTimeoutMs: number
  /** Monotonic milliseconds. */
  readonly now: () => number
  /** Calls `call` once, without keeping the process alive. */
  readonly after: (delayMs: number, call: () => void) => void
}

interface CacheLookup {
  /** Null if the result cannot be cached. */
  readonly key: string | null
  /** Null if the result is not cached. */
  readonly reading: RunningRead | null
}

/** The result cache. */
export class ResultCache {
  readonly #parts: ResultCacheParts
  readonly #changes: ChangeClock = createChangeClock()
  readonly #answers: CachedResults
  readonly #callerDigest: (identity: Identity) => string
  #catalog: Catalog
  #plans: CachePlans
  /**
   * For statements whose result was found: the last caller and key. A repeated request (rest/read) uses the
   * same statement object.
   */
  #lastFound = new WeakMap<BoundStatement<ReadableStatement>, { readonly caller: string; readonly key: string }>()
  #hits = 0
  #misses = 0
  #bypassed = 0
  /** When the last change became known. */
  #changedAt = Number.NEGATIVE_INFINITY

  constructor(parts: ResultCacheParts) {
    this.#parts = parts
    this.#answers = createCachedResults(parts.entriesMax, parts.weightMax)
    this.#callerDigest = createCallerDigests(identity => parts.settings.for(identity, 'read only'))
    this.#catalog = parts.catalog()
    this.#plans = createCachePlans(this.#catalog, this.#changes)
  }

  /** Wraps a runner so that the cache sees all writes through it. All writes must use it. */
  watching(runner: Runner): Runner {
    return {
      ...runner,
      write: (identity, statements, worked) => {
        const relations = this.#currentPlans().writing(statements.map(({ statement }) => statement))
        return this.#during(relations, statements.length, worked, () => runner.write(identity, statements, worked))
      },
      call: (identity, statement, how, worked) => {
        const start = () => runner.call(identity, statement, how, worked)
        return how.access === 'read only' ? start() : this.#during(null, 1, worked, start)
      },
    }
  }

  /** Wraps a runner so that reads are served from the cache where possible. */
  serving(runner: Runner): Runner {
    return {
      ...runner,
      read: (identity, statements, worked) => {
        // A read in the transaction must see what the transaction has written.
        if (worked.within !== undefined) return runner.read(identity, statements, worked)
        const { key, reading } = this.#findFor(identity, statements)
        if (reading !== null && !isBeyondCache(worked)) {
          this.#hits++
          return reading
        }
        this.#misses++
        if (key === null) return runner.read(identity, statements, worked)
        // A replica that lacks a known change would be read after its invalidation.
        const start = () => runner.read(identity, statements, seesSince(worked, this.#changedAt))
        return this.#readAndCache(key, statements, start)
      },
    }
  }

  /**
   * Invalidates results of these tables (OIDs), which another process has changed; null invalidates all
   * results.
   */
  changed(relations: readonly number[] | null): void {
    this.#changedAt = this.#parts.now()
    this.#currentPlans()
    this.#changes.begin(relations === null ? null : withPartitions(this.#catalog, relations))()
  }

  /** Drops all results, including those being read. */
  clear(): void {
    this.#changedAt = this.#parts.now()
    this.#answers.clear()
    this.#changes.begin(null)()
  }

  stats(): CacheStats {
    const { entriesMax, weightMax, knownUntil } = this.#parts
    return {
      hits: this.#hits,
      misses: this.#misses,
      bypassed: this.#bypassed,
      knownAgeMs: this.#ageOf(knownUntil()),
      entries: this.#answers.entries,
      entriesMax,
      weight: this.#answers.weight,
      weightMax,
    }
  }

  /** The plans of statements for the current catalog; a new catalog starts from scratch. */
  #currentPlans(): CachePlans {
    const current = this.#parts.catalog()
    if (current !== this.#catalog) {
      this.#catalog = current
      this.clear()
      this.#changes.forget()
      this.#plans = createCachePlans(current, this.#changes)
      this.#lastFound = new WeakMap()
    }
    return this.#plans
  }

  /** Finds a cached result and its key. A single statement remembers the key of its last caller. */
  #findFor(identity: Identity, statements: readonly BoundStatement<ReadableStatement>[]): CacheLookup {
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

  /** Null if the result must not be cached, whatever the values. */
  #keyOf(caller: string, statements: readonly BoundStatement<ReadableStatement>[]): string | null {
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

  #find(key: string): RunningRead | null {
    const kept = this.#answers.get(key)
    if (kept === undefined) return null
    const { now, knownUntil, stalenessMsMax } = this.#parts
    const at = now()
    const known = knownUntil()
    if (known !== null && at - known > stalenessMsMax) {
      this.#bypassed++
      return null
    }
    if (kept.until > at && this.#changes.areUnchangedSince(kept.moment, kept.changes)) return kept.reading
    this.#answers.remove(key)
    return null
  }

  #ageOf(known: number | null): number | null {
    return known === null ? null : Math.max(0, this.#parts.now() - known)
  }

  /** Runs the read and caches its result unless something has changed since it began. */
  #readAndCache(
    key: string,
    statements: readonly BoundStatement<ReadableStatement>[],
    start: () => RunningRead,
  ): RunningRead {
    const { now, ttlMs } = this.#parts
    const moment = this.#changes.now()
    const until = now() + ttlMs
    const changes = statements.flatMap(({ statement }) => this.#plans.reading(statement)?.changes ?? [])
    const isSteady = !statements.some(({ values }) => values.some(hasClockWord))
    const reading = start()
    if (!isSteady || !this.#changes.areUnchangedSince(moment, changes)) return reading
    const result = reading.result.then(results => {
      if (this.#changes.areUnchangedSince(moment, changes)) this.#answers.keep(key, results, { moment, changes, until })
      return results
    })
    return { result, cancel: () => reading.cancel() }
  }

  /** Marks the relations as being changed while `start` runs; `relations` is null if they are unknown. */
  #during<T extends { readonly result: Promise<unknown> }>(
    relations: ReadonlySet<number> | null,
    count: number,
    { within }: Work,
    start: () => T,
  ): T {
    const { statementTimeoutMs, after, changedElsewhere } = this.#parts
    const endChange = this.#changes.begin(relations)
    const end = () => {
      this.#changedAt = this.#parts.now()
      endChange()
    }
    const tell = async () => changedElsewhere?.(relations === null ? null : [...relations])
    try {
      const running = start()
      const settled: Promise<unknown> = within?.settled ?? running.result
      settled.then(end, error => {
        if (isOver(error)) {
          end()
          return
        }
        const ended = () => {
          end()
          void tell()
        }
        // Its statements may continue for as long as each is allowed to.
        after(Math.min(statementTimeoutMs * count, DELAY_MS_MAX), ended)
      })
      if (changedElsewhere === null) return running
      if (within !== undefined) {
        within.onCommit(tell)
        return running
      }
      // The write is answered when no worker serves an older result.
      return { ...running, result: running.result.then(result => tell().then(() => result)) }
    } catch (error) {
      end()
      throw error
    }
  }
}

/** A caller can require what another gateway has written, of which this one need not know. */
function isBeyondCache({ consistency }: Work): boolean {
  return consistency !== undefined && (consistency.isStrong || consistency.after > 0n)
}

/** Node fires longer timers immediately. */
const DELAY_MS_MAX = 2 ** 31 - 1

/** Reports whether a failed write has ended in the database; otherwise it may still take effect. */
function isOver(error: unknown): boolean {
  const cause = error instanceof GatewayError ? error.cause : error
  if (cause instanceof UnavailableError) return !cause.sent
  return cause instanceof DatabaseError
}

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
import { createAnswers, WEIGHT_MAX } from './answers.ts'
import { createChanges } from './changes.ts'
import { withParts } from './footprint.ts'
import { createCallerDigests, measureValues, printValues } from './key.ts'
import { createStatementPlans } from './plans.ts'

/** Values of more characters are not looked up: it would take long, and hardly anybody sends them twice. */
export const VALUE_CHARACTERS_MAX = 8_192

export interface ResultCache {
  /** The runner, with every change that goes through it known here. Nothing else may write. */
  watching(runner: Runner): Runner
  /** The runner, with reads served from the cache where they can be. */
  serving(runner: Runner): Runner
  /** Invalidates answers from these tables (OIDs), which another process has changed; null invalidates all answers. */
  changed(relations: readonly number[] | null): void
  /** Forgets all answers, also those that are on their way. */
  clear(): void
  stats(): CacheStats
}

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

export function createResultCache(parts: ResultCacheParts): ResultCache {
  const { entriesMax, ttlMs, knownUntil, stalenessMsMax, statementTimeoutMs, now, after } = parts
  const changes = createChanges()
  const answers = createAnswers(entriesMax)
  const callerDigest = createCallerDigests(identity => parts.settings.for(identity, 'read only'))
  let catalog = parts.catalog()
  let plans = createStatementPlans(catalog, changes)
  /** Of statements whose answer was found: for whom it was asked last, and under which key. What asks again (rest/read) brings the same statement. */
  let lastFound = new WeakMap<BoundStatement<Readable>, { readonly caller: string; readonly key: string }>()
  let hits = 0
  let misses = 0
  let bypassed = 0

  function clear(): void {
    answers.clear()
    changes.begin(null)()
  }

  /** The statements' plans of the catalogue in force; with another one everything begins anew. */
  function currentPlans(): typeof plans {
    const current = parts.catalog()
    if (current !== catalog) {
      catalog = current
      clear()
      changes.forget()
      plans = createStatementPlans(catalog, changes)
      lastFound = new WeakMap()
    }
    return plans
  }

  /** Null: the answer is not to be kept, whatever the values are. */
  function keyOf(caller: string, statements: readonly BoundStatement<Readable>[]): string | null {
    let key = caller
    let left = VALUE_CHARACTERS_MAX
    for (const { statement, values } of statements) {
      const plan = plans.reading(statement)
      left -= measureValues(values)
      if (plan === null || left < 0) return null
      key += plan.digest + printValues(values)
    }
    return key
  }

  /** An answer that is kept, under its key; one statement by itself has it at hand where the same caller found it before. */
  function findFor(identity: Identity, statements: readonly BoundStatement<Readable>[]): Found {
    currentPlans()
    const caller = callerDigest(identity)
    const [only] = statements.length === 1 ? statements : []
    const last = only === undefined ? undefined : lastFound.get(only)
    if (last?.caller === caller) return { key: last.key, reading: find(last.key) }
    const key = keyOf(caller, statements)
    const reading = key === null ? null : find(key)
    if (only !== undefined && key !== null && reading !== null) lastFound.set(only, { caller, key })
    return { key, reading }
  }

  function find(key: string): Reading | null {
    const kept = answers.get(key)
    if (kept === undefined) return null
    const at = now()
    const known = knownUntil()
    if (known !== null && at - known > stalenessMsMax) {
      bypassed++
      return null
    }
    if (kept.until > at && changes.areQuietSince(kept.moment, kept.changes)) return kept.reading
    answers.remove(key)
    return null
  }

  function ageOf(known: number | null): number | null {
    return known === null ? null : Math.max(0, now() - known)
  }

  /** Runs the read and keeps its answer, unless something changed on the way. */
  function fill(key: string, statements: readonly BoundStatement<Readable>[], start: () => Reading): Reading {
    const moment = changes.now()
    const until = now() + ttlMs
    const concerned = statements.flatMap(({ statement }) => plans.reading(statement)?.changes ?? [])
    const isSteady = !statements.some(({ values }) => values.some(hasClockWord))
    const reading = start()
    if (!isSteady || !changes.areQuietSince(moment, concerned)) return reading
    const result = reading.result.then(results => {
      if (changes.areQuietSince(moment, concerned)) answers.keep(key, results, { moment, changes: concerned, until })
      return results
    })
    return { result, cancel: () => reading.cancel() }
  }

  /** `relations` null: of what cannot be told. */
  function during<T extends { readonly result: Promise<unknown> }>(
    relations: ReadonlySet<number> | null,
    count: number,
    start: () => T,
  ): T {
    const end = changes.begin(relations)
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

  return {
    watching: runner => ({
      ...runner,
      write: (identity, statements, worked) =>
        during(currentPlans().writing(statements.map(({ statement }) => statement)), statements.length, () =>
          runner.write(identity, statements, worked),
        ),
      call: (identity, statement, how, worked) =>
        how.access === 'read only'
          ? runner.call(identity, statement, how, worked)
          : during(null, 1, () => runner.call(identity, statement, how, worked)),
    }),
    serving: runner => ({
      ...runner,
      read(identity, statements, worked) {
        const { key, reading } = findFor(identity, statements)
        if (reading !== null) {
          hits++
          return reading
        }
        misses++
        const start = () => runner.read(identity, statements, worked)
        return key === null ? start() : fill(key, statements, start)
      },
    }),
    changed(relations) {
      currentPlans()
      changes.begin(relations === null ? null : withParts(catalog, relations))()
    },
    clear,
    stats: () => ({
      hits,
      misses,
      bypassed,
      knownAgeMs: ageOf(knownUntil()),
      entries: answers.entries,
      entriesMax,
      weight: answers.weight,
      weightMax: WEIGHT_MAX,
    }),
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

/**
 * Looks at rows that changed with the eyes of one context (docs/reference/realtime.md#what-is-told): a transaction under the settings of one of its callers, that reads the rows as they
 * are and judges them as they were. Never several contexts in one: a policy's `(select current_setting(…))` is evaluated once for a statement, and would
 * hand one tenant's rows to another.
 */

import { catalogueStatement } from '../compile/derive.ts'
import type { BoundStatement, PagedStatement, ReadStatement } from '../compile/statement.ts'
import type { Identity } from '../identity/identity.ts'
import { tableName } from '../language/tree/build.ts'
import type { Row, Runner, ServerTime } from '../run/run.ts'
import { type Change, type Step, stepsOf, transitionsOf } from './change.ts'
import { parseSnapshot, type Snapshot } from './snapshot.ts'
import { conditionStatement, FINGERPRINT, type TableRules } from './table-rules.ts'
import type { Variant, Watch } from './watch.ts'

export interface Seen {
  /** What each transaction did to it, in order; empty: nothing that this context notices. Null: the row is not visible, and it is unknown whether it was. */
  readonly steps: readonly Step[] | null
  /** The last one. */
  readonly change: Change
  /** As the context's own reads print it. */
  readonly key: string
  /** The row as the context may read it now, as JSON text; null where it is not seen. */
  readonly row: string | null
}

/** Variants that one statement evaluates. */
const VARIANTS_MAX = 500

/**
 * For each variant what it notices, in the order of the last changes of the rows. Null: the policies are not those of `rules` any more, so nothing that was read
 * may be used.
 */
export async function look(
  runner: Pick<Runner, 'read'>,
  identity: Identity,
  { watch, rules, variants }: Audience,
  changes: readonly Change[],
): Promise<readonly (readonly Seen[])[] | null> {
  const transitions = transitionsOf(changes)
  const chunks = chunksOf(variants)
  const rowsBefore =
    rules.condition === null
      ? []
      : transitions.flatMap(({ found }) => found.flatMap(({ before }) => (before === null ? [] : [before])))
  const keys = transitions.map(({ last }) => last.key)
  const worked = { ms: 0 }
  const statements: BoundStatement<ReadStatement | PagedStatement>[] = chunks.map(chunk => watch.rowsOf(keys, chunk))
  if (rowsBefore.length > 0) {
    const condition = conditionStatement(watch.table, rules.condition ?? 'false')
    statements.push(catalogueStatement(condition, [`[${rowsBefore.join(',')}]`], [tableName(watch.table)]))
  }
  // Last, so that a policy that changed before any of the others is noticed.
  statements.push(catalogueStatement(FINGERPRINT, [String(watch.table.oid)]))
  const results = await runner.read(identity, statements, worked).result
  if (results.at(-1)?.[0]?.[0]?.toString() !== rules.fingerprint) return null
  const judgements = results[chunks.length] ?? []
  const allowed = rowsBefore.map((_, index) => judgements[index]?.[0]?.toString() === 't')
  const matched = await matching(runner, identity, watch, chunks, rowsBefore, allowed, worked)

  const decisive = rules.columns === null ? null : new Set([...rules.columns, ...watch.filtered])
  const all = new Set(variants.keys())
  const seen = variants.map((): Seen[] => [])
  let judged = 0
  for (const [index, transition] of transitions.entries()) {
    const [row, , key, isThere] = results[0]?.[index] ?? []
    const now = new Set<number>()
    if (isThere?.toString() === 't') {
      for (let at = 0; at < chunks.length; at++) addPlaces(now, results[at]?.[index]?.[4], at * VARIANTS_MAX)
    }
    const before = transition.found.map(change =>
      change.before === null || rules.condition === null ? null : (matched[judged++] ?? null),
    )
    const isUnknown = before.some((places, at) => places === null && transition.found[at]?.operation !== 'INSERT')
    const base = { change: transition.last, key: key?.toString() ?? '' }
    for (const place of isUnknown ? all : union(now, before)) {
      const isSeen = now.has(place)
      const sight = { now: isSeen, before: before.map(places => (places === null ? null : places.has(place))) }
      const steps = stepsOf(transition, sight, decisive)
      if (steps?.length === 0) continue
      seen[place]?.push({ ...base, steps, row: isSeen ? (row?.toString() ?? null) : null })
    }
  }
  return seen
}

/** Those who see the same but for the values of their filters. */
export interface Audience {
  readonly watch: Watch
  readonly rules: TableRules
  readonly variants: readonly Variant[]
}

function chunksOf(variants: readonly Variant[]): readonly (readonly Variant[])[] {
  const chunks: (readonly Variant[])[] = []
  for (let from = 0; from < variants.length; from += VARIANTS_MAX)
    chunks.push(variants.slice(from, from + VARIANTS_MAX))
  return chunks
}

function addPlaces(to: Set<number>, places: Row[number] | undefined, first: number): void {
  if (places == null) return
  for (const place of places.toString().split(',')) to.add(first + Number(place))
}

function union(now: ReadonlySet<number>, before: readonly (ReadonlySet<number> | null)[]): ReadonlySet<number> {
  const places = new Set(now)
  for (const some of before) for (const place of some ?? []) places.add(place)
  return places
}

const SNAPSHOT = catalogueStatement('SELECT pg_catalog.pg_current_snapshot()', [])

/** Tries the reads of a subscription; answers what it could see by then. Null: as for `look`. */
export async function tryLook(
  runner: Pick<Runner, 'read'>,
  identity: Identity,
  watch: Watch,
  rules: TableRules,
): Promise<Snapshot | null> {
  const fingerprint = catalogueStatement(FINGERPRINT, [String(watch.table.oid)])
  const statements = [watch.trial, SNAPSHOT, fingerprint]
  const [, snapshot, current] = await runner.read(identity, statements, { ms: 0 }).result
  if (current?.[0]?.[0]?.toString() !== rules.fingerprint) return null
  return parseSnapshot(snapshot?.[0]?.[0]?.toString() ?? '')
}

/**
 * The variants that each of them met. That is computed of nothing else than rows which the policies show them: an expression that fails tells of what it
 * failed for.
 */
async function matching(
  runner: Pick<Runner, 'read'>,
  identity: Identity,
  { matches }: Watch,
  chunks: readonly (readonly Variant[])[],
  rowsBefore: readonly string[],
  allowed: readonly boolean[],
  worked: ServerTime,
): Promise<readonly ReadonlySet<number>[]> {
  const shown = rowsBefore.filter((_, index) => allowed[index] === true)
  if (matches === null || shown.length === 0) return allowed.map(isAllowed => (isAllowed ? ONLY : NONE))
  const results = await runner.read(
    identity,
    chunks.map(chunk => matches(shown, chunk)),
    worked,
  ).result
  const places = shown.map(() => new Set<number>())
  for (const [at, answers] of results.entries()) {
    const width = chunks[at]?.length ?? 1
    for (const [index, [answer]] of answers.entries()) {
      if (answer?.toString() === 'true') places[Math.floor(index / width)]?.add(at * VARIANTS_MAX + (index % width))
    }
  }
  let next = 0
  return allowed.map(isAllowed => (isAllowed ? (places[next++] ?? NONE) : NONE))
}

const NONE: ReadonlySet<number> = new Set()
const ONLY: ReadonlySet<number> = new Set([0])

export interface Told extends Seen {
  readonly steps: readonly Step[]
  /** Whoever has been told this, and nothing after it, goes on from here. */
  readonly token: string
}

/**
 * What of it a subscriber is told. Only the last of them leads to the end of these changes: before it, a row may still be untold that changed early among them.
 */
export function toldOf(seen: readonly Seen[], changes: readonly Change[]): readonly Told[] {
  const told = seen.flatMap(({ steps, ...item }) => (steps === null || steps.length === 0 ? [] : [{ ...item, steps }]))
  const [from, to] = [changes[0]?.from ?? '', changes.at(-1)?.to ?? '']
  return told.map((item, index) => ({ ...item, token: index === told.length - 1 ? to : from }))
}

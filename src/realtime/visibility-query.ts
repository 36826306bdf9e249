/**
 * Reads changed rows under the session settings of one visibility group
 * (docs/reference/realtime.md#delivered-changes), in one transaction that reads the current rows and
 * evaluates the old ones. A transaction never serves several groups: `(select current_setting(…))` in a
 * policy is evaluated once per statement and would pass rows of one tenant to another.
 */
import type { Table } from '../catalog/model.ts'
import { catalogueStatement } from '../compile/derive.ts'
import type { BoundStatement, PagedStatement, ReadStatement } from '../compile/statement.ts'
import type { Identity } from '../identity/identity.ts'
import { tableName } from '../language/tree/build.ts'
import type { Runner, ServerTime } from '../run/run.ts'
import { type ChangeEvent, type Step, stepsOf, transitionsOf } from './change-event.ts'
import type { Evaluation, Variant } from './evaluation.ts'
import { type RouteValue, routeStatement, routeValueOf, type VisibilityRoute } from './route.ts'
import { parseSnapshot, type Snapshot } from './snapshot.ts'
import type { SubscriptionPlan } from './subscription-plan.ts'
import { conditionStatement, FINGERPRINT, type TableRules } from './table-rules.ts'
import { isTransient } from './transient-errors.ts'

/** A change as a visibility group sees it. */
export interface VisibleChange {
  /**
   * The steps that are visible, in order; empty for none. Null if the row is not visible and it is
   * unknown whether it was.
   */
  readonly steps: readonly Step[] | null
  /** The last of the merged changes. */
  readonly change: ChangeEvent
  /** As the group's own reads print it. */
  readonly key: string
  /** The row as the group can read it now, as JSON text; null if it is not visible. */
  readonly row: string | null
  /**
   * The row before each transaction, if the evaluation returns old rows; null if it was not visible or is
   * unknown.
   */
  readonly old: readonly (OldRow | null)[]
}

/** The values of a row before a change, by column. */
export type OldRow = Readonly<Record<string, string | null>>

/** Limit on the variants of one filter that one statement evaluates. */
const VARIANTS_MAX = 500

/**
 * Runs the visibility query. Returns for each part of the audience what is visible to it, in the order of
 * each row's last change. Null if the policies no longer match `rules`; then nothing that was read may be
 * used.
 */
export async function queryVisibility(
  runner: Pick<Runner, 'read'>,
  identity: Identity,
  audience: VisibilityAudience,
  changes: readonly ChangeEvent[],
): Promise<readonly (readonly VisibleChange[])[] | null> {
  const { rules, table, parts } = audience
  const queries = variantQueries(audience)
  const transitions = transitionsOf(changes)
  const rowsBefore =
    rules.condition === null
      ? []
      : transitions.flatMap(({ found }) => found.flatMap(({ before }) => (before === null ? [] : [before])))
  const keys = transitions.map(({ last }) => last.key)
  const serverTime = { ms: 0 }
  const statements: BoundStatement<ReadStatement | PagedStatement>[] = queries.map(({ evaluation, variants }) =>
    evaluation.rowsOf(keys, variants.map(variantsOf)),
  )
  if (rowsBefore.length > 0) {
    const condition = conditionStatement(table, rules.condition ?? 'false')
    statements.push(catalogueStatement(condition, [`[${rowsBefore.join(',')}]`], [tableName(table)]))
  }
  // This statement is the last one, so that it detects a change of policies before any of the others.
  statements.push(catalogueStatement(FINGERPRINT, [String(table.oid)]))
  const results = await runner.read(identity, statements, serverTime).result
  if (results.at(-1)?.[0]?.[0]?.toString() !== rules.fingerprint) return null
  const conditionResults = results[queries.length] ?? []
  const allowed = rowsBefore.map((_, index) => conditionResults[index]?.[0]?.toString() === 't')
  const matched = await matching(runner, identity, queries, rowsBefore, allowed, serverTime)

  const decisive = new Map(parts.map(({ watch }) => [watch, decisiveColumns(rules, watch)]))
  const all = new Set(parts.keys())
  const queryOf = queryByPart(queries)
  const seen = parts.map((): VisibleChange[] => [])
  let next = 0
  for (const [index, transition] of transitions.entries()) {
    /** The visible row by part, as its columns show it. */
    const now = new Map<number, string>()
    /** The key by query, which may print it in different forms. */
    const keysHere: string[] = []
    for (const [at, { variants }] of queries.entries()) {
      const [row, , keyText, exists, ...places] = results[at]?.[index] ?? []
      keysHere[at] = keyText?.toString() ?? ''
      if (exists?.toString() !== 't') continue
      const text = row?.toString() ?? ''
      for (const place of matchingParts(
        variants,
        places.map(list => list?.toString() ?? null),
      ))
        now.set(place, text)
    }
    const before = transition.found.map(change =>
      change.before === null || rules.condition === null ? null : (matched[next++] ?? null),
    )
    const isUnknown = before.some((places, at) => places === null && transition.found[at]?.operation !== 'INSERT')
    for (const place of isUnknown ? all : union(now.keys(), before)) {
      const watch = parts[place]?.watch
      const row = now.get(place) ?? null
      const visibility = {
        now: row !== null,
        before: before.map(places => (places === null ? null : places.has(place))),
      }
      const steps = stepsOf(transition, visibility, (watch && decisive.get(watch)) ?? null)
      if (steps?.length === 0) continue
      const key = keysHere[queryOf.get(place) ?? 0] ?? ''
      seen[place]?.push({
        change: transition.last,
        key,
        steps,
        row,
        old: before.map(places => places?.get(place) ?? null),
      })
    }
  }
  return seen
}

/** Subscriptions that see the same rows apart from their columns and filters. */
export interface VisibilityAudience {
  readonly table: Table
  readonly rules: TableRules
  readonly parts: readonly AudiencePart[]
  /** The statements that evaluate them; each plan of the parts is in one of these. */
  readonly evaluated: readonly EvaluatedPlans[]
}

/** A filter variant of the audience. */
export interface AudiencePart {
  readonly watch: SubscriptionPlan
  readonly variant: Variant
}

/** Plans that one statement evaluates, by name. */
export interface EvaluatedPlans {
  readonly evaluation: Evaluation
  readonly names: readonly string[]
}

/** A statement, and for each of its filters the variants to evaluate with their positions in the audience. */
interface VariantQuery {
  readonly evaluation: Evaluation
  readonly variants: readonly (readonly RequestedVariant[])[]
}

/** A variant to evaluate. */
interface RequestedVariant {
  readonly variant: Variant
  readonly part: number
}

function variantQueries({ parts, evaluated }: VisibilityAudience): readonly VariantQuery[] {
  const byName = new Map<string, RequestedVariant[]>()
  for (const [part, { watch, variant }] of parts.entries()) {
    const of = byName.get(watch.name) ?? []
    byName.set(watch.name, of)
    of.push({ variant, part })
  }
  return evaluated.flatMap(({ evaluation, names }) => {
    const variants = names.map(name => byName.get(name) ?? [])
    const most = Math.max(...variants.map(of => of.length))
    const rounds = Array.from({ length: Math.ceil(most / VARIANTS_MAX) }, (_, round) => round * VARIANTS_MAX)
    return rounds.map(from => ({ evaluation, variants: variants.map(of => of.slice(from, from + VARIANTS_MAX)) }))
  })
}

function variantsOf(variants: readonly RequestedVariant[]): readonly Variant[] {
  return variants.map(({ variant }) => variant)
}

/**
 * The parts that match. `places`: for each filter the positions of its matching variants, separated by
 * commas.
 */
function* matchingParts(
  variants: readonly (readonly RequestedVariant[])[],
  places: readonly (string | null | undefined)[],
): Iterable<number> {
  for (const [index, of] of variants.entries()) {
    const matchingOldRows = places[index]
    if (matchingOldRows == null || matchingOldRows === '') continue
    for (const place of matchingOldRows.split(',')) {
      const found = of[Number(place)]
      if (found !== undefined) yield found.part
    }
  }
}

/** The columns that decide whether a row is visible; null if they are unknown. */
function decisiveColumns(rules: TableRules, { filtered }: SubscriptionPlan): ReadonlySet<string> | null {
  return rules.columns === null ? null : new Set([...rules.columns, ...filtered])
}

function union(now: Iterable<number>, before: readonly (MatchedParts | null)[]): ReadonlySet<number> {
  const places = new Set(now)
  for (const some of before) for (const place of some?.keys() ?? []) places.add(place)
  return places
}

/** The index of the query that evaluates each part. */
function queryByPart(queries: readonly VariantQuery[]): ReadonlyMap<number, number> {
  return new Map(
    queries.flatMap(({ variants }, at) => variants.flatMap(of => of.map(({ part }) => [part, at] as const))),
  )
}

const SNAPSHOT = catalogueStatement('SELECT pg_catalog.pg_current_snapshot()', [])

/** The result of trying the reads of a subscription. */
export interface TriedReads {
  /** The snapshot that they used. */
  readonly snapshot: Snapshot
  /** The caller's values in routing columns; empty if they could not be read. */
  readonly routes: readonly RouteValue[]
}

/**
 * Tries the reads of a subscription, and reads the caller's values of `routes` in the same round trip. Null
 * as for `queryVisibility`.
 */
export async function tryVisibilityQuery(
  runner: Pick<Runner, 'read'>,
  identity: Identity,
  { watch, rules, routes }: TrialReads,
): Promise<TriedReads | null> {
  const fingerprint = catalogueStatement(FINGERPRINT, [String(watch.table.oid)])
  const values = routes.map(route => catalogueStatement(routeStatement(route), []))
  const statements = [watch.trial, SNAPSHOT, ...values, fingerprint]
  let results: Awaited<ReturnType<Runner['read']>['result']>
  try {
    results = await runner.read(identity, statements, { ms: 0 }).result
  } catch (error) {
    if (routes.length === 0 || isTransient(error)) throw error
    // A setting that the routing column cannot hold fails here, and in the policy only if there are rows.
    return tryVisibilityQuery(runner, identity, { watch, rules, routes: [] })
  }
  const [, snapshot, ...others] = results
  if (others.at(-1)?.[0]?.[0]?.toString() !== rules.fingerprint) return null
  return {
    snapshot: parseSnapshot(snapshot?.[0]?.[0]?.toString() ?? ''),
    routes: routes.map((route, index) => routeValueOf(route, others[index]?.[0] ?? [])),
  }
}

/** The reads of a subscription, and the routes whose values are read with them. */
interface TrialReads {
  readonly watch: SubscriptionPlan
  readonly rules: TableRules
  readonly routes: readonly VisibilityRoute[]
}

/** The parts whose filters an old row matched, each with the row if its evaluation returns it. */
type MatchedParts = ReadonlyMap<number, OldRow | null>

/**
 * The parts whose filters each old row matched. Filters are evaluated only on rows that the policies show,
 * because an expression that fails reveals the value it failed on.
 */
async function matching(
  runner: Pick<Runner, 'read'>,
  identity: Identity,
  questions: readonly VariantQuery[],
  rowsBefore: readonly string[],
  allowed: readonly boolean[],
  worked: ServerTime,
): Promise<readonly MatchedParts[]> {
  const visibleRows = rowsBefore.filter((_, index) => allowed[index] === true)
  const unfiltered = questions.filter(({ evaluation }) => evaluation.matches === null)
  const filtered = questions.filter(({ evaluation }) => evaluation.matches !== null)
  const always = unfiltered.flatMap(({ variants }) => variants.flatMap(of => of.map(({ part }) => part)))
  const places = visibleRows.map(() => new Map<number, OldRow | null>(always.map(part => [part, null])))
  if (visibleRows.length > 0 && filtered.length > 0) {
    const statements = filtered.flatMap(
      ({ evaluation, variants }) => evaluation.matches?.(visibleRows, variants.map(variantsOf)) ?? [],
    )
    const results = await runner.read(identity, statements, worked).result
    for (const [at, { variants, evaluation }] of filtered.entries()) {
      for (const [index, [answer]] of (results[at] ?? []).entries()) {
        const lists = JSON.parse(answer?.toString() ?? 'null') as readonly (string | null)[] | null
        const old = lists === null ? null : oldRowOf(evaluation, lists.slice(variants.length))
        for (const part of matchingParts(variants, lists ?? [])) places[index]?.set(part, old)
      }
    }
  }
  let next = 0
  return allowed.map(isAllowed => (isAllowed ? (places[next++] ?? NONE) : NONE))
}

const NONE: MatchedParts = new Map()

function oldRowOf({ oldColumns }: Evaluation, values: readonly (string | null)[]): OldRow | null {
  if (oldColumns.length === 0) return null
  return Object.fromEntries(oldColumns.map((name, index) => [name, values[index] ?? null]))
}

/** A change to notify subscribers of. */
export interface ChangeNotification extends VisibleChange {
  readonly steps: readonly Step[]
  /** A client that has received this notification, and none after it, resumes from this token. */
  readonly token: string
}

/**
 * The notifications of visible changes. Only the last one carries the token after all changes: until then, a
 * row that changed earlier may still be pending.
 */
export function notificationsOf(
  visible: readonly VisibleChange[],
  changes: readonly ChangeEvent[],
): readonly ChangeNotification[] {
  const notifications = visible.flatMap(({ steps, ...item }) =>
    steps === null || steps.length === 0 ? [] : [{ ...item, steps }],
  )
  const [from, to] = [changes[0]?.from ?? '', changes.at(-1)?.to ?? '']
  return notifications.map((item, index) => ({ ...item, token: index === notifications.length - 1 ? to : from }))
}

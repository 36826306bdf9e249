/**
 * Looks at rows that changed with the eyes of one context (docs/reference/realtime.md#delivered-changes): a transaction under the settings of one of its callers, that reads the rows as they
 * are and judges them as they were. Never several contexts in one: a policy's `(select current_setting(…))` is evaluated once for a statement, and would
 * hand one tenant's rows to another.
 */
import type { Table } from '../catalog/model.ts'
import { catalogueStatement } from '../compile/derive.ts'
import type { BoundStatement, PagedStatement, ReadStatement } from '../compile/statement.ts'
import type { Identity } from '../identity/identity.ts'
import { tableName } from '../language/tree/build.ts'
import type { Runner, ServerTime } from '../run/run.ts'
import { type Change, type Step, stepsOf, transitionsOf } from './change.ts'
import type { Evaluation, Variant } from './evaluation.ts'
import { parseSnapshot, type Snapshot } from './snapshot.ts'
import { conditionStatement, FINGERPRINT, type TableRules } from './table-rules.ts'
import type { Watch } from './watch.ts'

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

/** Variants of one filter that one statement evaluates. */
const VARIANTS_MAX = 500

/**
 * For each part of the audience what it notices, in the order of the last changes of the rows. Null: the policies are not those of `rules` any more, so nothing
 * that was read may be used.
 */
export async function look(
  runner: Pick<Runner, 'read'>,
  identity: Identity,
  audience: Audience,
  changes: readonly Change[],
): Promise<readonly (readonly Seen[])[] | null> {
  const { rules, table, parts } = audience
  const questions = questionsOf(audience)
  const transitions = transitionsOf(changes)
  const rowsBefore =
    rules.condition === null
      ? []
      : transitions.flatMap(({ found }) => found.flatMap(({ before }) => (before === null ? [] : [before])))
  const keys = transitions.map(({ last }) => last.key)
  const worked = { ms: 0 }
  const statements: BoundStatement<ReadStatement | PagedStatement>[] = questions.map(({ evaluation, asked }) =>
    evaluation.rowsOf(keys, asked.map(variantsOf)),
  )
  if (rowsBefore.length > 0) {
    const condition = conditionStatement(table, rules.condition ?? 'false')
    statements.push(catalogueStatement(condition, [`[${rowsBefore.join(',')}]`], [tableName(table)]))
  }
  // Last, so that a policy that changed before any of the others is noticed.
  statements.push(catalogueStatement(FINGERPRINT, [String(table.oid)]))
  const results = await runner.read(identity, statements, worked).result
  if (results.at(-1)?.[0]?.[0]?.toString() !== rules.fingerprint) return null
  const judgements = results[questions.length] ?? []
  const allowed = rowsBefore.map((_, index) => judgements[index]?.[0]?.toString() === 't')
  const matched = await matching(runner, identity, questions, rowsBefore, allowed, worked)

  const decisive = new Map(parts.map(({ watch }) => [watch, decisiveFor(rules, watch)]))
  const all = new Set(parts.keys())
  const seen = parts.map((): Seen[] => [])
  let judged = 0
  for (const [index, transition] of transitions.entries()) {
    /** With the row as its columns show it. */
    const now = new Map<number, string>()
    let key = ''
    for (const [at, { asked }] of questions.entries()) {
      const [row, , keyText, isThere, ...places] = results[at]?.[index] ?? []
      key = keyText?.toString() ?? key
      if (isThere?.toString() !== 't') continue
      const text = row?.toString() ?? ''
      for (const place of matchingParts(
        asked,
        places.map(list => list?.toString() ?? null),
      ))
        now.set(place, text)
    }
    const before = transition.found.map(change =>
      change.before === null || rules.condition === null ? null : (matched[judged++] ?? null),
    )
    const isUnknown = before.some((places, at) => places === null && transition.found[at]?.operation !== 'INSERT')
    for (const place of isUnknown ? all : union(now.keys(), before)) {
      const watch = parts[place]?.watch
      const row = now.get(place) ?? null
      const sight = { now: row !== null, before: before.map(places => (places === null ? null : places.has(place))) }
      const steps = stepsOf(transition, sight, (watch && decisive.get(watch)) ?? null)
      if (steps?.length === 0) continue
      seen[place]?.push({ change: transition.last, key, steps, row })
    }
  }
  return seen
}

/** Those who see the same but for their columns and filters. */
export interface Audience {
  readonly table: Table
  readonly rules: TableRules
  readonly parts: readonly Part[]
  /** How they are evaluated: each watch of the parts is in one of these. */
  readonly evaluated: readonly Evaluated[]
}

export interface Part {
  readonly watch: Watch
  readonly variant: Variant
}

/** Watches that one statement evaluates, by their names. */
export interface Evaluated {
  readonly evaluation: Evaluation
  readonly names: readonly string[]
}

/** A statement, and for each of its filters the variants that it is asked of, with their places among the parts. */
interface Question {
  readonly evaluation: Evaluation
  readonly asked: readonly (readonly Asked[])[]
}

interface Asked {
  readonly variant: Variant
  readonly part: number
}

function questionsOf({ parts, evaluated }: Audience): readonly Question[] {
  const byName = new Map<string, Asked[]>()
  for (const [part, { watch, variant }] of parts.entries()) {
    const of = byName.get(watch.name) ?? []
    byName.set(watch.name, of)
    of.push({ variant, part })
  }
  return evaluated.flatMap(({ evaluation, names }) => {
    const asked = names.map(name => byName.get(name) ?? [])
    const most = Math.max(...asked.map(of => of.length))
    const rounds = Array.from({ length: Math.ceil(most / VARIANTS_MAX) }, (_, round) => round * VARIANTS_MAX)
    return rounds.map(from => ({ evaluation, asked: asked.map(of => of.slice(from, from + VARIANTS_MAX)) }))
  })
}

function variantsOf(asked: readonly Asked[]): readonly Variant[] {
  return asked.map(({ variant }) => variant)
}

/** `places`: for each filter those of its variants that match, with commas between them. */
function* matchingParts(
  asked: readonly (readonly Asked[])[],
  places: readonly (string | null | undefined)[],
): Iterable<number> {
  for (const [index, of] of asked.entries()) {
    const matching = places[index]
    if (matching == null || matching === '') continue
    for (const place of matching.split(',')) {
      const found = of[Number(place)]
      if (found !== undefined) yield found.part
    }
  }
}

/** The columns by which it is decided whether a row is seen; null: nobody can tell. */
function decisiveFor(rules: TableRules, { filtered }: Watch): ReadonlySet<string> | null {
  return rules.columns === null ? null : new Set([...rules.columns, ...filtered])
}

function union(now: Iterable<number>, before: readonly (ReadonlySet<number> | null)[]): ReadonlySet<number> {
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
 * The parts whose filters each of them met. That is computed of nothing else than rows which the policies show them: an expression that fails tells of what it
 * failed for.
 */
async function matching(
  runner: Pick<Runner, 'read'>,
  identity: Identity,
  questions: readonly Question[],
  rowsBefore: readonly string[],
  allowed: readonly boolean[],
  worked: ServerTime,
): Promise<readonly ReadonlySet<number>[]> {
  const shown = rowsBefore.filter((_, index) => allowed[index] === true)
  const free = questions.filter(({ evaluation }) => evaluation.matches === null)
  const asking = questions.filter(({ evaluation }) => evaluation.matches !== null)
  const always = free.flatMap(({ asked }) => asked.flatMap(of => of.map(({ part }) => part)))
  const places = shown.map(() => new Set(always))
  if (shown.length > 0 && asking.length > 0) {
    const statements = asking.flatMap(
      ({ evaluation, asked }) => evaluation.matches?.(shown, asked.map(variantsOf)) ?? [],
    )
    const results = await runner.read(identity, statements, worked).result
    for (const [at, { asked }] of asking.entries()) {
      for (const [index, [answer]] of (results[at] ?? []).entries()) {
        const lists = JSON.parse(answer?.toString() ?? 'null') as readonly (string | null)[] | null
        for (const part of matchingParts(asked, lists ?? [])) places[index]?.add(part)
      }
    }
  }
  let next = 0
  return allowed.map(isAllowed => (isAllowed ? (places[next++] ?? NONE) : NONE))
}

const NONE: ReadonlySet<number> = new Set()

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

/**
 * Looks at rows that changed with the eyes of one context (decisions 9): a transaction under the settings of one of its callers, that reads the rows as they
 * are and judges them as they were. Never several contexts in one: a policy's `(select current_setting(…))` is evaluated once for a statement, and would
 * hand one tenant's rows to another.
 */
import type { Identity } from '../identity/identity.ts'
import { tableName } from '../language/build.ts'
import type { Runner } from '../run/run.ts'
import { type BoundStatement, catalogueStatement } from '../run/statement.ts'
import { type Change, type Step, stepsOf, transitionsOf } from './change.ts'
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

/** One for each row, in the order of their last changes. Null: the policies are not those of `rules` any more, so nothing that was read may be used. */
export async function look(
  runner: Pick<Runner, 'read'>,
  identity: Identity,
  watch: Watch,
  rules: TableRules,
  changes: readonly Change[],
): Promise<readonly Seen[] | null> {
  const transitions = transitionsOf(changes)
  const rowsBefore =
    rules.condition === null
      ? []
      : transitions.flatMap(({ found }) => found.flatMap(({ before }) => (before === null ? [] : [before])))
  const statements: BoundStatement[] = [watch.rowsOf(transitions.map(({ last }) => last.key))]
  if (rowsBefore.length > 0) {
    statements.push(
      catalogueStatement(
        conditionStatement(watch.table, rules.condition ?? 'false'),
        [listOf(rowsBefore)],
        [tableName(watch.table)],
      ),
    )
  }
  // Last, so that a policy that changed before any of the others is noticed.
  statements.push(catalogueStatement(FINGERPRINT, [String(watch.table.oid)]))
  const results = await runner.read(identity, statements).result
  const [rows = [], judgements = []] = results.slice(0, -1)
  if (results.at(-1)?.[0]?.[0]?.toString() !== rules.fingerprint) return null
  const allowed = rowsBefore.map((_, index) => judgements[index]?.[0]?.toString() === 't')
  const matched = await matching(runner, identity, watch, rowsBefore, allowed)

  const decisive = rules.columns === null ? null : new Set([...rules.columns, ...watch.filtered])
  let judged = 0
  const seenBefore = ({ before }: Change) =>
    before === null || rules.condition === null ? null : matched[judged++] === true
  return transitions.map((transition, index) => {
    const [row, , key, isThere] = rows[index] ?? []
    const now = isThere?.toString() === 't'
    const sight = { now, before: transition.found.map(seenBefore) }
    return {
      ...{ steps: stepsOf(transition, sight, decisive), change: transition.last },
      ...{ key: key?.toString() ?? '', row: now ? (row?.toString() ?? null) : null },
    }
  })
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
  const [, snapshot, current] = await runner.read(identity, [watch.rowsOf([]), SNAPSHOT, fingerprint]).result
  if (current?.[0]?.[0]?.toString() !== rules.fingerprint) return null
  return parseSnapshot(snapshot?.[0]?.[0]?.toString() ?? '')
}

/**
 * Which of them met the subscriber's own filter as well. It is computed of nothing else than rows which the policies show them: an expression that
 * fails tells of what it failed for.
 */
async function matching(
  runner: Pick<Runner, 'read'>,
  identity: Identity,
  watch: Watch,
  rowsBefore: readonly string[],
  allowed: readonly boolean[],
): Promise<readonly boolean[]> {
  const shown = rowsBefore.filter((_, index) => allowed[index] === true)
  if (watch.matches === null || shown.length === 0) return allowed
  const [matches = []] = await runner.read(identity, [watch.matches(listOf(shown))]).result
  let place = 0
  return allowed.map(isAllowed => isAllowed && matches[place++]?.[0]?.toString() === 'true')
}

function listOf(items: readonly string[]): string {
  return `[${items.join(',')}]`
}

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

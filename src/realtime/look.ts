/**
 * Looks at rows that changed with the eyes of one context (decisions 9): a transaction under the settings of one of its callers, that reads the rows as they
 * are and judges them as they were. Never several contexts in one: a policy's `(select current_setting(…))` is evaluated once for a statement, and would
 * hand one tenant's rows to another.
 */
import type { Identity } from '../identity/identity.ts'
import type { Runner } from '../run/run.ts'
import { type BoundStatement, catalogueStatement } from '../run/statement.ts'
import { type Change, type Outcome, outcomeOf, type Transition, transitionsOf } from './change.ts'
import { conditionStatement, FINGERPRINT, type TableRules } from './table-rules.ts'
import type { Watch } from './watch.ts'

export interface Seen {
  readonly outcome: Outcome
  readonly change: Change
  /** The row as the context may read it now, as JSON text; null where it is not seen. */
  readonly row: string | null
}

/** Null: the policies are not those of `rules` any more, so nothing that was read may be used. */
export async function look(
  runner: Pick<Runner, 'read'>,
  identity: Identity,
  watch: Watch,
  rules: TableRules,
  changes: readonly Change[],
): Promise<readonly Seen[] | null> {
  const transitions = transitionsOf(changes)
  const judged = rules.condition === null ? [] : [...transitions.values()].filter(({ first }) => first.before !== null)
  const keys = `[${[...transitions.keys()].join(',')}]`
  const rowsBefore = `[${judged.map(({ first }) => first.before).join(',')}]`
  const statements: BoundStatement[] = [watch.rowsOf(keys)]
  if (judged.length > 0) {
    statements.push(catalogueStatement(conditionStatement(watch.table, rules.condition ?? 'false'), [rowsBefore]))
  }
  // Last, so that a policy that changed before any of the others is noticed.
  statements.push(catalogueStatement(FINGERPRINT, [String(watch.table.oid)]))
  const results = await runner.read(identity, statements).result
  const [rows = [], judgements = []] = results.slice(0, -1)
  if (results.at(-1)?.[0]?.[0]?.toString() !== rules.fingerprint) return null
  const allowed = judged.filter((_, index) => judgements[index]?.[0]?.toString() === 't')
  const seenBefore = await matching(runner, identity, watch, allowed)

  const now = new Map(rows.map(([row, key]) => [key?.toString() ?? '', row?.toString() ?? '']))
  const before = new Map(judged.map(({ first }) => [first.key, seenBefore.has(first.key)]))
  const decisive = rules.columns === null ? null : new Set([...rules.columns, ...watch.filtered])
  return [...transitions].map(([key, transition]) => {
    const row = now.get(key) ?? null
    const sight = { now: row !== null, before: before.get(key) ?? null }
    return { outcome: outcomeOf(transition, sight, decisive), change: transition.last, row }
  })
}

/**
 * The keys of those that met the subscriber's own filter before. It is computed of nothing else than rows which the policies show them: an expression that
 * fails tells of what it failed for.
 */
async function matching(
  runner: Pick<Runner, 'read'>,
  identity: Identity,
  watch: Watch,
  allowed: readonly Transition[],
): Promise<ReadonlySet<string>> {
  const keys = allowed.map(({ first }) => first.key)
  if (watch.matches === null || allowed.length === 0) return new Set(keys)
  const rows = `[${allowed.map(({ first }) => first.before).join(',')}]`
  const [matches = []] = await runner.read(identity, [watch.matches(rows)]).result
  return new Set(keys.filter((_, index) => matches[index]?.[0]?.toString() === 'true'))
}

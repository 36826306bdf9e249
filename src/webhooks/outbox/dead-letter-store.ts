/**
 * Dead letters in the database, and the attempts of the last week: operators can list, redeliver and purge
 * them through any gateway.
 */
import type { RowOperation } from '../trigger.ts'
import type { RunInTransaction } from './transaction.ts'

/** A dead letter without its rows. */
export interface StoredDeadLetter {
  readonly id: string
  readonly trigger: string
  readonly schema: string
  readonly table: string
  readonly operation: RowOperation
  readonly tries: number
  readonly reason: string
  readonly createdAtMs: number
  readonly givenUpAtMs: number
}

/** A dead letter with its last response and its rows. */
export interface DeadLetterDetails extends StoredDeadLetter {
  readonly status: number | null
  readonly answer: string | null
  readonly message: string | null
  /** Rows as JSON; both null if they exceed the size limit. */
  readonly after: string | null
  readonly before: string | null
}

/** The position of a dead letter in the list: sorted by time, then by id. */
export interface DeadLetterCursor {
  readonly givenUpAtMs: number
  readonly id: string
}

/** An attempt as `svc webhooks` prints it. */
export interface StoredAttempt {
  readonly at: string
  readonly try: number
  readonly outcome: string
  readonly duration_ms: number
  readonly status: number | null
  readonly answer: string | null
  readonly message: string | null
}

/** Limit on the attempts shown of one webhook; the latest are shown. */
export const ATTEMPTS_SHOWN_MAX = 100

/** Dead letters moved or deleted by one statement. */
export const DEAD_LETTER_BATCH = 1_000

const ms = (column: string): string => `floor(extract(epoch FROM ${column}) * 1000)::bigint`

const COLUMNS = `d.id, d.trigger, d."schema", d."table", d.operation, d.tries, left(d.reason, 1000),
  ${ms('d.created_at')}, ${ms('d.given_up_at')}`

/** Lists dead letters, newest first, starting after `before`; null starts with the newest. */
export async function readDeadLetters(
  ask: RunInTransaction,
  before: DeadLetterCursor | null,
  limit: number,
): Promise<readonly StoredDeadLetter[]> {
  const behind =
    before === null ? '' : 'WHERE (d.given_up_at, d.id) < (to_timestamp($2::numeric / 1000)::timestamptz(3), $3)'
  const [rows = []] = await ask({
    text: `SELECT ${COLUMNS} FROM svc.webhook_dead AS d ${behind}
ORDER BY d.given_up_at DESC, d.id DESC LIMIT $1::integer`,
    parameters: [String(limit), ...(before === null ? [] : [String(before.givenUpAtMs), before.id])],
  })
  return rows.map(toDeadLetter)
}

/** Reads one dead letter. Its rows are omitted if they have more than `bytesMax` bytes. */
export async function readDeadLetter(
  ask: RunInTransaction,
  id: string,
  bytesMax: number,
): Promise<DeadLetterDetails | null> {
  const rows = `coalesce(octet_length(d.new::text), 0) + coalesce(octet_length(d.old::text), 0) <= ${bytesMax}`
  const [[row] = []] = await ask({
    text: `SELECT ${COLUMNS}, d.status, d.answer, d.message,
  CASE WHEN ${rows} THEN d.new END, CASE WHEN ${rows} THEN d.old END
FROM svc.webhook_dead AS d WHERE d.id = $1`,
    parameters: [id],
  })
  if (row === undefined) return null
  const [status, answer, message, after, before] = row.slice(9)
  return {
    ...toDeadLetter(row),
    ...{ status: status == null ? null : Number(status), answer: answer ?? null, message: message ?? null },
    ...{ after: after ?? null, before: before ?? null },
  }
}

function toDeadLetter(row: readonly (string | null)[]): StoredDeadLetter {
  const [id = '', trigger = '', schema = '', table = '', operation, tries, reason = '', createdAt, givenUpAt] = row.map(
    cell => cell ?? '',
  )
  return {
    ...{ id, trigger, schema, table, operation: operation as RowOperation, tries: Number(tries), reason },
    ...{ createdAtMs: Number(createdAt), givenUpAtMs: Number(givenUpAt) },
  }
}

/** Reads the attempts of a webhook, latest first. */
export async function readAttempts(ask: RunInTransaction, id: string): Promise<readonly StoredAttempt[]> {
  const [rows = []] = await ask({
    text: `SELECT ${ms('a.at')}, a.try, a.outcome, a.duration_ms, a.status, a.answer, a.message
FROM svc.webhook_attempt AS a
WHERE a.webhook = $1 ORDER BY a.at DESC LIMIT ${ATTEMPTS_SHOWN_MAX}`,
    parameters: [id],
  })
  return rows.map(([at, number, outcome, duration, status, answer, message]) => ({
    ...{ at: new Date(Number(at)).toISOString(), try: Number(number), outcome: outcome ?? '' },
    ...{ duration_ms: Number(duration), status: status == null ? null : Number(status) },
    ...{ answer: answer ?? null, message: message ?? null },
  }))
}

const SELECTED = `SELECT d.id FROM svc.webhook_dead AS d
  WHERE ($1::text IS NULL OR d.id = $1) AND d.given_up_at <= $3::timestamptz

  AND ($2::json IS NULL OR d.trigger IN (SELECT json_array_elements_text($2::json)))
  ORDER BY d.given_up_at LIMIT ${DEAD_LETTER_BATCH} FOR UPDATE SKIP LOCKED`

const REDELIVER = `WITH gone AS (DELETE FROM svc.webhook_dead AS d WHERE d.id = ANY (ARRAY(${SELECTED})) RETURNING d.*)
INSERT INTO svc.webhook (id, trigger, "schema", "table", operation, new, old, created_at, key, tenant)
SELECT id, trigger, "schema", "table", operation, new, old, created_at, key, tenant FROM gone
  ORDER BY created_at RETURNING id`

const PURGE = `DELETE FROM svc.webhook_dead AS d WHERE d.id = ANY (ARRAY(${SELECTED})) RETURNING d.id`

/**
 * Puts dead letters of `triggers` back into the queue as new webhooks, behind those already queued. `id` null
 * selects all. Returns how many.
 */
export function redeliverDeadLetters(
  ask: RunInTransaction,
  id: string | null,
  triggers: readonly string[],
): Promise<number> {
  return inBatches(ask, REDELIVER, [id, JSON.stringify(triggers)])
}

/** Deletes dead letters; `id` null selects all. Returns how many. */
export function purgeDeadLetters(ask: RunInTransaction, id: string | null): Promise<number> {
  return inBatches(ask, PURGE, [id, null])
}

/**
 * Runs the statement in batches, each in its own transaction, so that a million dead letters do not hold
 * locks for a minute. Dead letters added after the start are excluded: an earlier batch may have redelivered
 * them.
 */
async function inBatches(ask: RunInTransaction, text: string, parameters: readonly (string | null)[]): Promise<number> {
  const [[[began = null] = []] = []] = await ask({ text: 'SELECT clock_timestamp()::timestamptz(3)', parameters: [] })
  let count = 0
  for (;;) {
    const [rows = []] = await ask({ text, parameters: [...parameters, began] })
    count += rows.length
    if (rows.length < DEAD_LETTER_BATCH) return count
  }
}

/** Dead letters in the database, and the tries of the last week: what operators look at and deal with, by any gateway. */
import type { Happened } from '../trigger.ts'
import type { Ask } from './ask.ts'

export interface StoredLetter {
  readonly id: string
  readonly trigger: string
  readonly schema: string
  readonly table: string
  readonly happened: Happened
  readonly tries: number
  readonly reason: string
  readonly createdAtMs: number
  readonly givenUpAtMs: number
}

export interface WholeLetter extends StoredLetter {
  readonly status: number | null
  readonly answer: string | null
  readonly message: string | null
  /** JSON; both null if they are larger than is shown. */
  readonly after: string | null
  readonly before: string | null
}

/** A dead letter's place among all: those given up at the same millisecond are in the order of their ids. */
export interface LetterPlace {
  readonly givenUpAtMs: number
  readonly id: string
}

export interface StoredAttempt {
  readonly at: string
  readonly try: number
  readonly outcome: string
  readonly duration_ms: number
  readonly status: number | null
  readonly answer: string | null
  readonly message: string | null
}

/** Of a webhook that was sent again and again, the last. */
export const ATTEMPTS_SHOWN_MAX = 100

/** Moved or thrown away by one statement. */
export const LETTERS_AT_ONCE = 1_000

const ms = (column: string): string => `floor(extract(epoch FROM ${column}) * 1000)::bigint`

const COLUMNS = `d.id, d.trigger, d."schema", d."table", d.operation, d.tries, left(d.reason, 1000), ${ms('d.created_at')}, ${ms('d.given_up_at')}`

/** The newest first; `before` null: from the newest on. */
export async function readLetters(
  ask: Ask,
  before: LetterPlace | null,
  limit: number,
): Promise<readonly StoredLetter[]> {
  const behind =
    before === null ? '' : 'WHERE (d.given_up_at, d.id) < (to_timestamp($2::numeric / 1000)::timestamptz(3), $3)'
  const [rows = []] = await ask({
    text: `SELECT ${COLUMNS} FROM svc.webhook_dead AS d ${behind} ORDER BY d.given_up_at DESC, d.id DESC LIMIT $1::integer`,
    parameters: [String(limit), ...(before === null ? [] : [String(before.givenUpAtMs), before.id])],
  })
  return rows.map(toLetter)
}

/** `bytesMax`: of its rows. */
export async function readLetter(ask: Ask, id: string, bytesMax: number): Promise<WholeLetter | null> {
  const rows = `coalesce(octet_length(d.new::text), 0) + coalesce(octet_length(d.old::text), 0) <= ${bytesMax}`
  const [[row] = []] = await ask({
    text: `SELECT ${COLUMNS}, d.status, d.answer, d.message, CASE WHEN ${rows} THEN d.new END, CASE WHEN ${rows} THEN d.old END FROM svc.webhook_dead AS d WHERE d.id = $1`,
    parameters: [id],
  })
  if (row === undefined) return null
  const [status, answer, message, after, before] = row.slice(9)
  return {
    ...toLetter(row),
    ...{ status: status == null ? null : Number(status), answer: answer ?? null, message: message ?? null },
    ...{ after: after ?? null, before: before ?? null },
  }
}

function toLetter(row: readonly (string | null)[]): StoredLetter {
  const [id = '', trigger = '', schema = '', table = '', happened, tries, reason = '', createdAt, givenUpAt] = row.map(
    cell => cell ?? '',
  )
  return {
    ...{ id, trigger, schema, table, happened: happened as Happened, tries: Number(tries), reason },
    ...{ createdAtMs: Number(createdAt), givenUpAtMs: Number(givenUpAt) },
  }
}

/** The last first. */
export async function readAttempts(ask: Ask, id: string): Promise<readonly StoredAttempt[]> {
  const [rows = []] = await ask({
    text: `SELECT ${ms('a.at')}, a.try, a.outcome, a.duration_ms, a.status, a.answer, a.message FROM svc.webhook_attempt AS a
WHERE a.webhook = $1 ORDER BY a.at DESC LIMIT ${ATTEMPTS_SHOWN_MAX}`,
    parameters: [id],
  })
  return rows.map(([at, number, outcome, duration, status, answer, message]) => ({
    ...{ at: new Date(Number(at)).toISOString(), try: Number(number), outcome: outcome ?? '' },
    ...{ duration_ms: Number(duration), status: status == null ? null : Number(status) },
    ...{ answer: answer ?? null, message: message ?? null },
  }))
}

const CHOSEN = `SELECT d.id FROM svc.webhook_dead AS d WHERE ($1::text IS NULL OR d.id = $1) AND d.given_up_at <= $3::timestamptz
    AND ($2::json IS NULL OR d.trigger IN (SELECT json_array_elements_text($2::json))) ORDER BY d.given_up_at LIMIT ${LETTERS_AT_ONCE} FOR UPDATE SKIP LOCKED`

const REDELIVER = `WITH gone AS (DELETE FROM svc.webhook_dead AS d WHERE d.id = ANY (ARRAY(${CHOSEN})) RETURNING d.*)
INSERT INTO svc.webhook (id, trigger, "schema", "table", operation, new, old, created_at, key, tenant)
SELECT id, trigger, "schema", "table", operation, new, old, created_at, key, tenant FROM gone ORDER BY created_at RETURNING id`

const PURGE = `DELETE FROM svc.webhook_dead AS d WHERE d.id = ANY (ARRAY(${CHOSEN})) RETURNING d.id`

/** As if they were new, behind what waits; only of `triggers`. `id` null: all. Answers how many. */
export function redeliverLetters(ask: Ask, id: string | null, triggers: readonly string[]): Promise<number> {
  return inParts(ask, REDELIVER, [id, JSON.stringify(triggers)])
}

export function purgeLetters(ask: Ask, id: string | null): Promise<number> {
  return inParts(ask, PURGE, [id, null])
}

/**
 * Every part is a transaction: a million dead letters are no reason to hold locks for a minute. What has died since it began is left: it may have been sent again by
 * an earlier part.
 */
async function inParts(ask: Ask, text: string, parameters: readonly (string | null)[]): Promise<number> {
  const [[[began = null] = []] = []] = await ask({ text: 'SELECT clock_timestamp()::timestamptz(3)', parameters: [] })
  let count = 0
  for (;;) {
    const [rows = []] = await ask({ text, parameters: [...parameters, began] })
    count += rows.length
    if (rows.length < LETTERS_AT_ONCE) return count
  }
}

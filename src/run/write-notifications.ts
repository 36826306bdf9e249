/**
 * Gateway writes publish the changes of tables that are not captured (decision 0019): `NOTIFY
 * svc_table_<table>` with the keys of the rows, within the write's own statement and transaction, so that it
 * costs no round trip and is delivered exactly when the write is committed.
 * A transaction that notifies takes an instance-wide lock when it commits, so none does unless there is a
 * listener. A listener – any gateway on this database – holds one advisory lock per slot, shared; a write
 * tries to take the lock of its slot exclusively and holds it until its end. If it succeeds, there is no
 * listener, and a new listener must wait until the write has ended: every change is either notified or older
 * than the listener's first read. Writes take slots by process, so they rarely collide, and a collision only
 * causes an unnecessary notification.
 */
import { createHash } from 'node:crypto'
import type { Table } from '../catalog/model.ts'
import { type NotifiedRows, printNotifying } from '../compile/print-write.ts'
import type { NotificationPlan, WriteStatement } from '../compile/statement.ts'
import { quoteLiteral } from '../language/sql/quote.ts'
import type { Command } from '../postgres/types.ts'

/** The first key of the advisory locks: `svcr` in ASCII. */
const LOCK_CLASS = 0x73766372
const LOCK_SLOTS = 64

/**
 * Limit on the changes in one payload. PostgreSQL accepts less than 8000 bytes (PostgreSQL manual, NOTIFY),
 * including the head.
 */
const CHANGES_BYTES_MAX = 7_000

/** Beyond this many rows in one statement, only their number is sent. */
const CHANGES_MAX = 500

/** Beyond that, the limit on distinct values of the routing column that are sent. */
const ROUTING_VALUES_MAX = 100

const CHANNEL_BYTES_MAX = 63

/** The channel of a resource. A name that is too long is truncated and made unique by a digest. */
export function channelOf(resource: string): string {
  const channel = `svc_table_${resource}`
  if (Buffer.byteLength(channel) <= CHANNEL_BYTES_MAX) return channel
  return `svc_table_${createHash('sha256').update(resource).digest('hex').slice(0, 32)}`
}

/**
 * Takes the free locks for a listener; returns how many are still missing. Locks already held are taken
 * again.
 */
export const LISTEN_LOCKS: Command = {
  text: `SELECT count(*) FILTER (WHERE NOT pg_catalog.pg_try_advisory_lock_shared(${LOCK_CLASS}, slot))
    FROM generate_series(0, ${LOCK_SLOTS - 1}) AS slot`,
  parameters: [],
}

const NO_LISTENER = `pg_catalog.pg_try_advisory_xact_lock(${LOCK_CLASS}, pg_catalog.pg_backend_pid() % ${LOCK_SLOTS})`

/** Adds notifications to writes. */
export interface WriteNotifier {
  /**
   * The write with its notification. With `watched`, it also returns old rows if there can be any. `route`:
   * the routing column.
   */
  statementOf(write: WriteStatement, watched: boolean, route: string | null): WriteStatement
  /** Notifies that unspecified rows of a table have changed. */
  bulk(table: string): Command
}

/**
 * The hash of a routing value, given the SQL of its JSON. The payload reaches every listener, so it does not
 * contain the value itself; a collision only costs a visibility query without result.
 */
export function routeHash(json: string): string {
  return `pg_catalog.hashtextextended((${json})::text COLLATE "C", 0)`
}

/** Creates a notifier. `origin` identifies this process in every notification. */
export function createWriteNotifier(origin: string): WriteNotifier {
  const statements = new WeakMap<WriteStatement, Map<string, WriteStatement>>()

  function print(write: WriteStatement, watched: boolean, route: string | null): WriteStatement {
    const { table, notification } = notifiedRows(write)
    const head = headOf(origin, watched && notification.hasBefore, notification.assigned, route)
    const notify = (payload: string) => `pg_catalog.pg_notify(${quoteLiteral(channelOf(table.resource))}, ${payload})`
    return printNotifying(write, {
      before: watched ? 'with rows before' : 'keys alone',
      route: route === null ? null : { column: route, number: value => routeHash(`pg_catalog.to_json(${value})`) },
      notifyOne: change =>
        `CASE WHEN ${NO_LISTENER} THEN NULL ELSE ${notify(`${head} || '"rows":[' || ${change} || ']}'`)} END`,
      notifyAll: rows => notifyAll(rows, { head, notify }),
    })
  }

  return {
    statementOf(write, watched, route) {
      let known = statements.get(write)
      if (known === undefined) {
        known = new Map()
        statements.set(write, known)
      }
      const name = `${watched} ${route ?? ''}`
      const found = known.get(name)
      if (found !== undefined) return found
      const statement = print(write, watched, route)
      known.set(name, statement)
      return statement
    },
    bulk: table => ({
      text: `SELECT WHERE CASE WHEN ${NO_LISTENER} THEN true
  ELSE pg_catalog.pg_notify($1, ${headOf(origin, false, null, null)} || '"bulk":0}')::text IS NOT NULL END`,
      parameters: [channelOf(table)],
    }),
  }
}

/**
 * The condition that notifies of all rows of a statement. Nested queries compute the payload, and PostgreSQL
 * evaluates them only if they are reached: without a listener, a row costs nothing.
 */
function notifyAll(
  { from, change, route }: NotifiedRows,
  { head, notify }: { readonly head: string; readonly notify: (payload: string) => string },
): string {
  // For rows that are too many to list, the routing values are sent if they are few.
  const whom =
    route === null
      ? "'null'"
      : `CASE WHEN COUNT(DISTINCT r.route) <= ${ROUTING_VALUES_MAX} AND COUNT(r.route) = COUNT(*) THEN '[' || ` +
        `string_agg(DISTINCT r.route::text, ',') || ']' ELSE 'null' END`
  const bulk = `(SELECT ${notify(`${head} || '"whom":' || ${whom} || ',"bulk":' || COUNT(*) || '}'`)}::text IS NOT NULL
    FROM (SELECT ${route ?? 'NULL'} AS route FROM ${from}) AS r)`
  const listed = `(SELECT CASE WHEN SUM(octet_length(r.change) + 1) > ${CHANGES_BYTES_MAX} THEN ${bulk}
    ELSE ${notify(`${head} || '"rows":[' || string_agg(r.change, ',') || ']}'`)}::text IS NOT NULL END
    FROM (SELECT ${change} AS change FROM ${from}) AS r)`
  return `(SELECT CASE WHEN NOT EXISTS (SELECT FROM ${from}) THEN true WHEN ${NO_LISTENER} THEN true
  WHEN (SELECT COUNT(*) FROM ${from}) > ${CHANGES_MAX} THEN ${bulk} ELSE ${listed} END)`
}

function notifiedRows({ own }: WriteStatement): { readonly table: Table; readonly notification: NotificationPlan } {
  if (own?.notification == null) throw new Error('this write has no rows to notify of')
  return { table: own.table, notification: own.notification }
}

/**
 * The part that all changes of a statement share:
 * `{"txid":"771","origin":"…","before":true,"set":["status"],"by":"tenant_id","at":"…",`
 */
function headOf(origin: string, before: boolean, assigned: readonly string[] | null, route: string | null): string {
  const of = { origin, before, set: assigned, by: route }
  const rest = `",${JSON.stringify(of).slice(1, -1)},"at":`
  return (
    `'{"txid":"' || pg_catalog.pg_current_xact_id() || ${quoteLiteral(rest)} || ` +
    `pg_catalog.to_json(pg_catalog.now()) || ','`
  )
}

/**
 * Writes of a gateway publish their changes where no triggers do (decision 0019): `NOTIFY svc_table_<table>` with the keys of the rows, in the transaction of the
 * write and within its statement, so that it costs no round trip and is heard exactly when the write is committed.
 *
 * A transaction that notifies takes a lock of the whole instance when it commits, so none does unless somebody listens. Who listens – any gateway on this
 * database – holds one lock for each slot, shared; a write tries for the lock of its slot, exclusively, and keeps it to its end. If it gets it, nobody
 * listens, and whoever begins to has to wait until that write is over: there is no moment in which a change is neither told of nor older than the first
 * answer. Writes have slots by process, so that they rarely meet, and when they do they only notify without need.
 */
import { createHash } from 'node:crypto'
import type { Table } from '../catalog/model.ts'
import { printAnnounced } from '../compile/print-write.ts'
import type { Telling, WriteStatement } from '../compile/statement.ts'
import { quoteLiteral } from '../language/sql/quote.ts'
import type { Command } from '../postgres/types.ts'

/** `svcr` in ASCII: the first key of our advisory locks. */
const LOCK_CLASS = 0x73766372
const LOCK_SLOTS = 64

/** PostgreSQL takes less than 8000 bytes (PostgreSQL manual, NOTIFY); beside the changes there is a head. */
const CHANGES_BYTES_MAX = 7_000

/** More rows in one statement are told of as so many, without their keys. */
const CHANGES_MAX = 500

/** Of more rows than that, how many different values are told of the column that says whom they concern. */
const WHOM_MAX = 100

const CHANNEL_BYTES_MAX = 63

/** The channel of a resource; a name too long for one is cut and made unique by a digest. */
export function channelOf(resource: string): string {
  const channel = `svc_table_${resource}`
  if (Buffer.byteLength(channel) <= CHANNEL_BYTES_MAX) return channel
  return `svc_table_${createHash('sha256').update(resource).digest('hex').slice(0, 32)}`
}

/** For the connection that listens: takes the locks that are free; the answer is how many are still missing. Locks that it has already are counted again. */
export const LISTEN_LOCKS: Command = {
  text: `SELECT count(*) FILTER (WHERE NOT pg_catalog.pg_try_advisory_lock_shared(${LOCK_CLASS}, slot)) FROM generate_series(0, ${LOCK_SLOTS - 1}) AS slot`,
  parameters: [],
}

const NOBODY_LISTENS = `pg_catalog.pg_try_advisory_xact_lock(${LOCK_CLASS}, pg_catalog.pg_backend_pid() % ${LOCK_SLOTS})`

export interface Announcer {
  /** The write that tells; `watched`: rows before the change are answered too, if there can be any. `route`: the column that says whom a row concerns. */
  statementOf(write: WriteStatement, watched: boolean, route: string | null): WriteStatement
  /** Tells that rows of a table have changed, no matter which. */
  bulk(table: string): Command
}

/**
 * A number that stands for a value, the SQL of its JSON given. It reaches whoever listens, so it is not the value itself; two values with the same number cost
 * a look that finds nothing.
 */
export function routeHash(json: string): string {
  return `pg_catalog.hashtextextended((${json})::text COLLATE "C", 0)`
}

/** `origin`: tells this process from others, in every notification. */
export function createAnnouncer(origin: string): Announcer {
  const statements = new WeakMap<WriteStatement, Map<string, WriteStatement>>()

  function print(write: WriteStatement, watched: boolean, route: string | null): WriteStatement {
    const { table, telling } = toldOf(write)
    const head = headOf(origin, watched && telling.hasBefore, telling.assigned, route)
    const notify = (payload: string) => `pg_catalog.pg_notify(${quoteLiteral(channelOf(table.resource))}, ${payload})`
    // Of more rows than can be named it is said at least whom they concern, if those are few.
    const whom = (by: string | null) =>
      by === null
        ? "'null'"
        : `CASE WHEN COUNT(DISTINCT ${by}) <= ${WHOM_MAX} AND COUNT(${by}) = COUNT(*) THEN '[' || string_agg(DISTINCT ${by}::text, ',') || ']' ELSE 'null' END`
    return printAnnounced(write, {
      before: watched ? 'with rows before' : 'keys alone',
      route: route === null ? null : { column: route, number: value => routeHash(`pg_catalog.to_json(${value})`) },
      tellOne: change =>
        `CASE WHEN ${NOBODY_LISTENS} THEN NULL ELSE ${notify(`${head} || '"rows":[' || ${change} || ']}'`)} END`,
      tellAll: (from, change, by) =>
        `(SELECT CASE WHEN COUNT(*) = 0 THEN true WHEN ${NOBODY_LISTENS} THEN true WHEN COUNT(*) > ${CHANGES_MAX} OR SUM(octet_length(${change}) + 1) > ${CHANGES_BYTES_MAX} THEN ${notify(`${head} || '"whom":' || ${whom(by)} || ',"bulk":' || COUNT(*) || '}'`)}::text IS NOT NULL ELSE ${notify(`${head} || '"rows":[' || string_agg(${change}, ',') || ']}'`)}::text IS NOT NULL END FROM ${from})`,
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
      text: `SELECT WHERE CASE WHEN ${NOBODY_LISTENS} THEN true ELSE pg_catalog.pg_notify($1, ${headOf(origin, false, null, null)} || '"bulk":0}')::text IS NOT NULL END`,
      parameters: [channelOf(table)],
    }),
  }
}

function toldOf({ own }: WriteStatement): { readonly table: Table; readonly telling: Telling } {
  if (own?.telling == null) throw new Error('nobody can be told of the rows of this write')
  return { table: own.table, telling: own.telling }
}

/** `{"txid":"771","origin":"…","before":true,"set":["status"],"by":"tenant_id","at":"…",`: what all changes of a statement have in common. */
function headOf(origin: string, before: boolean, assigned: readonly string[] | null, route: string | null): string {
  const of = { origin, before, set: assigned, by: route }
  const rest = `",${JSON.stringify(of).slice(1, -1)},"at":`
  return `'{"txid":"' || pg_catalog.pg_current_xact_id() || ${quoteLiteral(rest)} || pg_catalog.to_json(pg_catalog.now()) || ','`
}

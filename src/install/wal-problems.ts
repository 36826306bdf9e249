/** Obstacles to the capture of changes from the write-ahead log, each with the statement that removes it. */
import type { Query } from '../catalog/introspect.ts'
import { MAY_REPLICATE, SLOT_NAME } from './wal-capture.ts'

/**
 * The server's settings, and how many slots and WAL senders others leave to the gateway. Any role can read
 * these columns.
 */
const SERVER = `SELECT current_setting('wal_level'),
  current_setting('max_replication_slots')::int - (SELECT count(*) FROM pg_catalog.pg_replication_slots
    WHERE slot_name <> ${SLOT_NAME}),
  current_setting('max_wal_senders')::int - (SELECT count(*) FROM pg_catalog.pg_stat_replication
    WHERE pid NOT IN (SELECT active_pid FROM pg_catalog.pg_replication_slots
      WHERE slot_name = ${SLOT_NAME} AND active_pid IS NOT NULL)),
  current_setting('server_version_num')::int / 10000, current_setting('max_replication_slots'),
  current_setting('max_wal_senders'), current_setting('max_slot_wal_keep_size') = '-1'`

/** The gateway's role and the feed role, each with its right to use slots. */
const REPLICATING = `SELECT r.rolname, ${MAY_REPLICATE} FROM pg_catalog.pg_roles AS r WHERE r.rolname IN ($1, $2)`

/** The roles of a capture. */
export interface WalRoles {
  /** The gateway's role, under which SQL of requests runs; null if it is not checked. */
  readonly role: string | null
  readonly feed: string
  /** True if a superuser is about to grant the right to the feed role. */
  readonly isGranted: boolean
}

/** The server, and what prevents the capture: one sentence each. */
export interface WalProblems {
  readonly major: number
  /** True if the server does not limit how much of the write-ahead log a slot keeps. */
  readonly keepsAll: boolean
  readonly problems: readonly string[]
}

/** Determines why changes cannot be captured from the write-ahead log. */
export async function readWalProblems(ask: Query, { role, feed, isGranted }: WalRoles): Promise<WalProblems> {
  const [[level, slots, senders, major, slotsMax, sendersMax, keepsAll] = []] = await ask(SERVER, [])
  const roles = await ask(REPLICATING, [role, feed])
  const may = (name: string | null) => roles.some(([found, allowed]) => found === name && allowed === 't')
  const restart = 'and restart PostgreSQL'
  const problems = [
    level === 'logical'
      ? null
      : `wal_level is "${level}": run ALTER SYSTEM SET wal_level = 'logical' ${restart} ` +
        '(managed services: docs/guides/capture.md).',
    Number(slots) > 0
      ? null
      : 'No replication slot is free: run ALTER SYSTEM SET max_replication_slots = ' +
        `${Number(slotsMax) + 1} ${restart}, or drop one that is not used.`,
    Number(senders) > 0
      ? null
      : `No WAL sender is free: run ALTER SYSTEM SET max_wal_senders = ${Number(sendersMax) + 1} ${restart}.`,
    may(role)
      ? `Role "${role}" of the gateway has REPLICATION: SQL of requests could read every change. ` +
        `Run ALTER ROLE "${role}" NOREPLICATION.`
      : null,
    isGranted || may(feed)
      ? null
      : `Role "${feed}", which reads the write-ahead log, does not have REPLICATION: ` +
        `run ALTER ROLE "${feed}" REPLICATION as a superuser (RDS: GRANT rds_replication TO "${feed}").`,
  ]
  const found = problems.filter(problem => problem !== null)
  return { major: Number(major), keepsAll: keepsAll === 't', problems: found }
}

/** The texts of replication commands (PostgreSQL manual, 54.4). */
import { type Lsn, printLsn } from './lsn.ts'

/** A slot to create. */
export interface SlotOptions {
  readonly name: string
  /** True if the slot is dropped when the session ends. */
  readonly temporary: boolean
}

/** A stream to start. */
export interface StreamOptions {
  readonly slot: string
  /** At least one. Their names must exist when the stream starts. */
  readonly publications: readonly string[]
  /**
   * Where to start: the position that the client has stored. 0 for the one that the server has on disk, which
   * after a crash can be before the last confirmed one. An earlier position than that has no effect.
   */
  readonly from: Lsn
  /** The version of `pgoutput`'s protocol: 2 streams, 3 has two-phase transactions, 4 is of PostgreSQL 16. */
  readonly protocol: 1 | 2 | 3 | 4
  /** Large transactions arrive in blocks before they commit; from protocol 2 on. */
  readonly streaming: boolean
  /** Prepared transactions arrive before they commit; from protocol 3 on. */
  readonly twoPhase: boolean
  /** The messages of `pg_logical_emit_message` arrive too. */
  readonly messages: boolean
  /** Interval between status updates; 10 s by default, a sixth of the server's default timeout. */
  readonly statusIntervalMs?: number
}

/** `CREATE_REPLICATION_SLOT`. The form of PostgreSQL 14, which later versions accept. */
export function createSlotCommand({ name, temporary }: SlotOptions): string {
  const kind = temporary ? ' TEMPORARY' : ''
  return `CREATE_REPLICATION_SLOT ${identifier(name)}${kind} LOGICAL pgoutput NOEXPORT_SNAPSHOT`
}

/** `START_REPLICATION`. Throws if the protocol has no such option. */
export function startCommand(options: StreamOptions): string {
  const { slot, publications, from, protocol, streaming, twoPhase, messages } = options
  if (publications.length === 0) throw new Error('a replication stream needs at least one publication')
  if (streaming && protocol < 2) throw new Error(`streaming needs protocol 2, not ${protocol}`)
  if (twoPhase && protocol < 3) throw new Error(`two-phase transactions need protocol 3, not ${protocol}`)
  const settings = [
    ['proto_version', String(protocol)],
    ['publication_names', publications.map(identifier).join(',')],
    ...(streaming ? [['streaming', 'on']] : []),
    ...(twoPhase ? [['two_phase', 'on']] : []),
    ...(messages ? [['messages', 'on']] : []),
  ]
  const printed = settings.map(([name, value = '']) => `${name} ${literal(value)}`).join(', ')
  return `START_REPLICATION SLOT ${identifier(slot)} LOGICAL ${printLsn(from)} (${printed})`
}

function identifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

/** Replication commands do not support escape strings. */
function literal(value: string): string {
  return `'${value.replaceAll("'", "''")}'`
}

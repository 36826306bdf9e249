/** The messages inside CopyData of a replication stream (PostgreSQL manual, 54.4, START_REPLICATION). */
import { ProtocolError } from '../protocol/error.ts'
import { Fields } from '../protocol/fields.ts'
import { beginCopyData } from '../protocol/frontend.ts'
import { describeType } from '../protocol/reader.ts'
import type { Writer } from '../protocol/writer.ts'
import type { Lsn } from './lsn.ts'

const WAL_DATA = 0x77
const KEEP_ALIVE = 0x6b
const STATUS_UPDATE = 0x72

/** PostgreSQL counts microseconds from the start of the year 2000. */
const POSTGRES_EPOCH_MS = Date.UTC(2000, 0, 1)

/** A message of the server while it streams. */
export type StreamMessage =
  | {
      readonly kind: 'walData'
      /** The position of the record; 0 for data that stands for no single record. */
      readonly at: Lsn
      /** One message of the output plugin. */
      readonly data: Buffer
    }
  | {
      readonly kind: 'keepAlive'
      /** The end of the write-ahead log that the server has read. */
      readonly walEnd: Lsn
      /** True if the server ends the session unless a status update follows soon. */
      readonly replyRequested: boolean
    }

/** Decodes the body of a CopyData message. */
export function decodeStreamMessage(bytes: Buffer, start: number, end: number): StreamMessage {
  const fields = new Fields(bytes, start, end)
  const type = fields.uint8()
  if (type === WAL_DATA) {
    const at = fields.uint64()
    // The server's position and clock, which keep-alives report as well.
    fields.take(16)
    return { kind: 'walData', at, data: fields.take(fields.rest) }
  }
  if (type !== KEEP_ALIVE) throw new ProtocolError(`a replication stream has ${describeType(type)}, which is not known`)
  const walEnd = fields.uint64()
  fields.take(8)
  return fields.finish({ kind: 'keepAlive', walEnd, replyRequested: fields.uint8() === 1 })
}

/** The report of a client. */
export interface StatusUpdate {
  /** Everything before this position has arrived. */
  readonly received: Lsn
  /** Everything before this position is stored; the server may discard it. */
  readonly confirmed: Lsn
  /** The client's clock. */
  readonly nowMs: number
  readonly replyRequested: boolean
}

/** Writes a standby status update. */
export function writeStatusUpdate(writer: Writer, update: StatusUpdate): void {
  const length = beginCopyData(writer)
  writer.uint8(STATUS_UPDATE)
  writer.int64(update.received)
  writer.int64(update.confirmed)
  writer.int64(update.confirmed)
  writer.int64(BigInt(Math.trunc(update.nowMs) - POSTGRES_EPOCH_MS) * 1000n)
  writer.uint8(update.replyRequested ? 1 : 0)
  writer.end(length)
}

/** Microseconds since 2000, as every message has them, to milliseconds since 1970. */
export function millisecondsOf(microseconds: bigint): number {
  return Number(microseconds / 1000n) + POSTGRES_EPOCH_MS
}

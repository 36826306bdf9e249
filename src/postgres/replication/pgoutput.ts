/**
 * Messages of PostgreSQL's output plugin `pgoutput`, protocol versions 1 to 4 (PostgreSQL manual, 54.9).
 * A change carries the relation that describes its columns, which the server sends before the first change of
 * a table and again after its definition has changed.
 */
import { ProtocolError } from '../protocol/error.ts'
import { Fields } from '../protocol/fields.ts'
import { describeType } from '../protocol/reader.ts'
import type { Lsn } from './lsn.ts'
import { millisecondsOf } from './stream-messages.ts'

/** Limit on the tables and partitions described in one session; far more than a publication should have. */
export const RELATIONS_MAX = 100_000

/** A value that an update left alone, stored outside of the row and therefore not sent (TOAST). */
export const UNCHANGED: unique symbol = Symbol('unchanged')

/** A value in text form; null for NULL. Values are views of the received bytes. */
export type TupleValue = Buffer | null | typeof UNCHANGED

/** The values of a row, in the order of the relation's columns. */
export type Tuple = readonly TupleValue[]

/** A column of a relation. */
export interface RelationColumn {
  readonly name: string
  /** True if it belongs to the replica identity. */
  readonly isKey: boolean
  readonly typeOid: number
  readonly typeModifier: number
}

/** The description of a table. */
export interface ReplicatedRelation {
  readonly oid: number
  readonly schema: string
  readonly name: string
  readonly identity: ReplicaIdentity
  readonly columns: readonly RelationColumn[]
}

const IDENTITIES = { 100: 'default', 110: 'nothing', 102: 'full', 105: 'index' } as const

/** `REPLICA IDENTITY` of a table: which old values its updates and deletions have. */
export type ReplicaIdentity = (typeof IDENTITIES)[keyof typeof IDENTITIES]

/** The end of a transaction. */
interface Ended {
  /** The position of the record that ended it. */
  readonly at: Lsn
  /** The position after it: what a client confirms once it has stored the transaction. */
  readonly end: Lsn
  /** Milliseconds since 1970. */
  readonly timeMs: number
}

/** A two-phase transaction. */
interface Prepared extends Ended {
  readonly xid: number
  readonly gid: string
}

/** Part of a transaction; `xid` only within a streamed block, where it names the (sub)transaction. */
interface Inside {
  readonly xid: number | null
}

export type PgoutputMessage =
  | { readonly kind: 'begin'; readonly commitAt: Lsn; readonly timeMs: number; readonly xid: number }
  | ({ readonly kind: 'commit' } & Ended)
  | { readonly kind: 'origin'; readonly at: Lsn; readonly name: string }
  | ({ readonly kind: 'relation'; readonly relation: ReplicatedRelation } & Inside)
  | ({ readonly kind: 'type'; readonly oid: number; readonly schema: string; readonly name: string } & Inside)
  | ({ readonly kind: 'insert'; readonly relation: ReplicatedRelation; readonly new: Tuple } & Inside)
  | ({
      readonly kind: 'update'
      readonly relation: ReplicatedRelation
      /** The old key if it has changed, with NULL for all other columns; null with `old`. */
      readonly key: Tuple | null
      /** The old row, with replica identity FULL. */
      readonly old: Tuple | null
      readonly new: Tuple
    } & Inside)
  | ({
      readonly kind: 'delete'
      readonly relation: ReplicatedRelation
      readonly key: Tuple | null
      readonly old: Tuple | null
    } & Inside)
  | ({
      readonly kind: 'truncate'
      readonly relations: readonly ReplicatedRelation[]
      readonly cascade: boolean
      readonly restartIdentity: boolean
    } & Inside)
  | ({
      readonly kind: 'message'
      readonly isTransactional: boolean
      readonly at: Lsn
      readonly prefix: string
      readonly content: Buffer
    } & Inside)
  | { readonly kind: 'streamStart'; readonly xid: number; readonly isFirst: boolean }
  | { readonly kind: 'streamStop' }
  | ({ readonly kind: 'streamCommit'; readonly xid: number } & Ended)
  | { readonly kind: 'streamAbort'; readonly xid: number; readonly subtransaction: number }
  | ({ readonly kind: 'beginPrepare' | 'prepare' | 'commitPrepared' | 'streamPrepare' } & Prepared)
  | {
      readonly kind: 'rollbackPrepared'
      readonly preparedEnd: Lsn
      readonly end: Lsn
      readonly timeMs: number
      readonly xid: number
      readonly gid: string
    }

/** Options that the stream was started with. Messages of options that are off are refused. */
export interface PgoutputOptions {
  /** True if large transactions arrive in blocks before they commit. */
  readonly streaming: boolean
  /** True if prepared transactions arrive before they commit. */
  readonly twoPhase: boolean
}

/** Decodes the messages of one session, in order. */
export class PgoutputDecoder {
  readonly #options: PgoutputOptions
  readonly #relations = new Map<number, ReplicatedRelation>()
  #isInStream = false

  constructor(options: PgoutputOptions) {
    this.#options = options
  }

  /** @throws ProtocolError if the bytes are not a message that can come next. */
  decode(data: Buffer): PgoutputMessage {
    const fields = new Fields(data, 0, data.length)
    const type = fields.uint8()
    const letter = String.fromCharCode(type)
    if (TWO_PHASE.has(letter) && !this.#options.twoPhase) throw notRequested(type, 'a two-phase transaction')
    if (STREAMED.has(letter) && !this.#options.streaming) throw notRequested(type, 'a streamed transaction')
    if (this.#isInStream !== INSIDE.has(letter) && BOUND.has(letter))
      throw new ProtocolError(`pgoutput sent ${describeType(type)} out of turn`)
    const message = this.#decode(letter, type, fields)
    if (message.kind === 'streamStart') this.#isInStream = true
    if (message.kind === 'streamStop') this.#isInStream = false
    return fields.finish(message)
  }

  #decode(letter: string, type: number, fields: Fields): PgoutputMessage {
    switch (letter) {
      case 'B':
        return { kind: 'begin', commitAt: fields.uint64(), timeMs: readTime(fields), xid: fields.uint32() }
      case 'C':
        fields.uint8()
        return { kind: 'commit', ...readEnded(fields) }
      case 'O':
        return { kind: 'origin', at: fields.uint64(), name: fields.cstring() }
      case 'R':
        return { kind: 'relation', xid: this.#readXid(fields), relation: this.#readRelation(fields) }
      case 'Y': {
        const xid = this.#readXid(fields)
        return { kind: 'type', xid, oid: fields.uint32(), schema: readSchema(fields), name: fields.cstring() }
      }
      case 'I': {
        const xid = this.#readXid(fields)
        const relation = this.#relation(fields.uint32())
        expectMark(fields.uint8(), 'N')
        return { kind: 'insert', xid, relation, new: readTuple(fields, relation) }
      }
      case 'U':
        return this.#readUpdate(fields)
      case 'D': {
        const xid = this.#readXid(fields)
        const relation = this.#relation(fields.uint32())
        return { kind: 'delete', xid, relation, ...readOld(fields.uint8(), fields, relation) }
      }
      case 'T':
        return this.#readTruncate(fields)
      case 'M': {
        const xid = this.#readXid(fields)
        const isTransactional = fields.uint8() === 1
        const at = fields.uint64()
        const prefix = fields.cstring()
        return { kind: 'message', xid, isTransactional, at, prefix, content: fields.take(fields.int32()) }
      }
      case 'S':
        return { kind: 'streamStart', xid: fields.uint32(), isFirst: fields.uint8() === 1 }
      case 'E':
        return { kind: 'streamStop' }
      case 'c': {
        const xid = fields.uint32()
        fields.uint8()
        return { kind: 'streamCommit', xid, ...readEnded(fields) }
      }
      case 'A': {
        const message = { kind: 'streamAbort', xid: fields.uint32(), subtransaction: fields.uint32() } as const
        // Protocol 4 adds the position and time of the abort if blocks may be applied in parallel.
        if (fields.rest > 0) fields.take(16)
        return message
      }
      case 'b':
        return { kind: 'beginPrepare', ...readPrepared(fields) }
      case 'P':
      case 'K':
      case 'p':
        fields.uint8()
        return { kind: PREPARED[letter], ...readPrepared(fields) }
      case 'r': {
        fields.uint8()
        const [preparedEnd, end] = [fields.uint64(), fields.uint64()]
        fields.take(8)
        const timeMs = readTime(fields)
        return { kind: 'rollbackPrepared', preparedEnd, end, timeMs, xid: fields.uint32(), gid: fields.cstring() }
      }
      default:
        throw new ProtocolError(`pgoutput sent ${describeType(type)}, which is not known`)
    }
  }

  #readUpdate(fields: Fields): PgoutputMessage {
    const xid = this.#readXid(fields)
    const relation = this.#relation(fields.uint32())
    const mark = fields.uint8()
    const isBare = mark === NEW_MARK
    const { key, old } = isBare ? { key: null, old: null } : readOld(mark, fields, relation)
    if (!isBare) expectMark(fields.uint8(), 'N')
    const sent = readTuple(fields, relation)
    // The old row has the values that the update left alone.
    const row = old === null ? sent : sent.map((value, index) => (value === UNCHANGED ? (old[index] ?? null) : value))
    return { kind: 'update', xid, relation, key, old, new: row }
  }

  #readTruncate(fields: Fields): PgoutputMessage {
    const xid = this.#readXid(fields)
    const count = fields.uint32()
    const options = fields.uint8()
    if (count * 4 !== fields.rest) throw new ProtocolError(`a truncation of ${count} tables has ${fields.rest} bytes`)
    const relations = Array.from({ length: count }, () => this.#relation(fields.uint32()))
    return { kind: 'truncate', xid, relations, cascade: (options & 1) !== 0, restartIdentity: (options & 2) !== 0 }
  }

  #readRelation(fields: Fields): ReplicatedRelation {
    const [oid, schema, name] = [fields.uint32(), readSchema(fields), fields.cstring()]
    const code = fields.uint8()
    const identity = IDENTITIES[code as keyof typeof IDENTITIES]
    if (identity === undefined) throw new ProtocolError(`a relation has replica identity ${describeType(code)}`)
    const count = fields.uint16()
    const columns: RelationColumn[] = []
    for (let index = 0; index < count; index++) {
      const isKey = (fields.uint8() & 1) !== 0
      columns.push({ isKey, name: fields.cstring(), typeOid: fields.uint32(), typeModifier: fields.int32() })
    }
    const relation = { oid, schema, name, identity, columns }
    if (!this.#relations.has(oid) && this.#relations.size >= RELATIONS_MAX)
      throw new ProtocolError(`the publication has more than ${RELATIONS_MAX} tables; publish fewer`)
    this.#relations.set(oid, relation)
    return relation
  }

  #relation(oid: number): ReplicatedRelation {
    const relation = this.#relations.get(oid)
    if (relation === undefined) throw new ProtocolError(`pgoutput sent a change of table ${oid} before its description`)
    return relation
  }

  #readXid(fields: Fields): number | null {
    return this.#isInStream ? fields.uint32() : null
  }
}

const NEW_MARK = 0x4e
const STREAMED: ReadonlySet<string> = new Set('SEcAp')
const TWO_PHASE: ReadonlySet<string> = new Set('bPKrp')
/** Messages that may occur only inside a streamed block, or only outside of one. Others may occur in both. */
const BOUND: ReadonlySet<string> = new Set('BCSEcAbPKrp')
const INSIDE: ReadonlySet<string> = new Set('E')
const PREPARED = { P: 'prepare', K: 'commitPrepared', p: 'streamPrepare' } as const

function notRequested(type: number, what: string): ProtocolError {
  return new ProtocolError(`pgoutput sent ${describeType(type)}: ${what}, which was not requested`)
}

function expectMark(code: number, mark: string): void {
  if (code !== mark.charCodeAt(0)) throw new ProtocolError(`a row is marked with ${describeType(code)}, not ${mark}`)
}

/** The old key (`K`) or the whole old row (`O`). */
function readOld(code: number, fields: Fields, relation: ReplicatedRelation): { key: Tuple | null; old: Tuple | null } {
  const isKey = code === 'K'.charCodeAt(0)
  if (!isKey) expectMark(code, 'O')
  const tuple = readTuple(fields, relation)
  return isKey ? { key: tuple, old: null } : { key: null, old: tuple }
}

function readTuple(fields: Fields, { schema, name, columns }: ReplicatedRelation): Tuple {
  const count = fields.uint16()
  if (count !== columns.length)
    throw new ProtocolError(
      `a row of ${schema}.${name} has ${count} columns; its table was described with ${columns.length}`,
    )
  const values: TupleValue[] = []
  for (let index = 0; index < count; index++) values.push(readValue(fields))
  return values
}

function readValue(fields: Fields): TupleValue {
  const code = fields.uint8()
  switch (String.fromCharCode(code)) {
    case 'n':
      return null
    case 'u':
      return UNCHANGED
    case 't':
      return fields.take(fields.int32())
    default:
      throw new ProtocolError(`a value has format ${describeType(code)}; only text was requested`)
  }
}

/** PostgreSQL sends an empty name for its own schema. */
function readSchema(fields: Fields): string {
  return fields.cstring() || 'pg_catalog'
}

function readTime(fields: Fields): number {
  return millisecondsOf(fields.int64())
}

function readEnded(fields: Fields): Ended {
  return { at: fields.uint64(), end: fields.uint64(), timeMs: readTime(fields) }
}

function readPrepared(fields: Fields): Prepared {
  return { ...readEnded(fields), xid: fields.uint32(), gid: fields.cstring() }
}

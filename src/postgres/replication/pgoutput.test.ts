/** The decoder of `pgoutput`: messages of protocols 1 to 4 are read back, and invalid bytes are rejected. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ProtocolError } from '../protocol/error.ts'
import { Writer } from '../protocol/writer.ts'
import { parseLsn, printLsn } from './lsn.ts'
import { PgoutputDecoder, type PgoutputMessage, type ReplicatedRelation, type Tuple, UNCHANGED } from './pgoutput.ts'

const ALL = { streaming: true, twoPhase: true }
const Y2K_MS = Date.UTC(2000, 0, 1)
const IDENTITY = { default: 'd', nothing: 'n', full: 'f', index: 'i' } as const

/**
 * One message, written as PostgreSQL's manual describes it. Within a streamed block, changes name their
 * transaction.
 */
function encode(message: PgoutputMessage): Buffer {
  const writer = new Writer(64)
  const letter = (text: string) => writer.uint8(text.charCodeAt(0))
  const time = (timeMs: number) => writer.int64(BigInt(timeMs - Y2K_MS) * 1000n)
  const xidOf = (xid: number | null) => {
    if (xid !== null) writer.int32(xid)
  }
  const ended = (at: bigint, end: bigint, timeMs: number) => {
    writer.int64(at)
    writer.int64(end)
    time(timeMs)
  }
  const tuple = (mark: string, values: Tuple) => {
    letter(mark)
    writer.int16(values.length)
    for (const value of values) {
      letter(value === null ? 'n' : value === UNCHANGED ? 'u' : 't')
      if (value === null || value === UNCHANGED) continue
      writer.int32(value.length)
      writer.bytes(value)
    }
  }
  letter(LETTERS[message.kind])
  switch (message.kind) {
    case 'begin':
      writer.int64(message.commitAt)
      time(message.timeMs)
      writer.int32(message.xid)
      break
    case 'commit':
      writer.uint8(0)
      ended(message.at, message.end, message.timeMs)
      break
    case 'origin':
      writer.int64(message.at)
      writer.cstring(message.name)
      break
    case 'relation':
      xidOf(message.xid)
      writer.int32(message.relation.oid)
      writer.cstring(message.relation.schema)
      writer.cstring(message.relation.name)
      letter(IDENTITY[message.relation.identity])
      writer.int16(message.relation.columns.length)
      for (const column of message.relation.columns) {
        writer.uint8(column.isKey ? 1 : 0)
        writer.cstring(column.name)
        writer.int32(column.typeOid)
        writer.int32(column.typeModifier)
      }
      break
    case 'type':
      xidOf(message.xid)
      writer.int32(message.oid)
      writer.cstring(message.schema)
      writer.cstring(message.name)
      break
    case 'insert':
      xidOf(message.xid)
      writer.int32(message.relation.oid)
      tuple('N', message.new)
      break
    case 'update':
      xidOf(message.xid)
      writer.int32(message.relation.oid)
      if (message.key !== null) tuple('K', message.key)
      if (message.old !== null) tuple('O', message.old)
      tuple('N', message.new)
      break
    case 'delete':
      xidOf(message.xid)
      writer.int32(message.relation.oid)
      if (message.key !== null) tuple('K', message.key)
      if (message.old !== null) tuple('O', message.old)
      break
    case 'truncate':
      xidOf(message.xid)
      writer.int32(message.relations.length)
      writer.uint8((message.cascade ? 1 : 0) | (message.restartIdentity ? 2 : 0))
      for (const { oid } of message.relations) writer.int32(oid)
      break
    case 'message':
      xidOf(message.xid)
      writer.uint8(message.isTransactional ? 1 : 0)
      writer.int64(message.at)
      writer.cstring(message.prefix)
      writer.int32(message.content.length)
      writer.bytes(message.content)
      break
    case 'streamStart':
      writer.int32(message.xid)
      writer.uint8(message.isFirst ? 1 : 0)
      break
    case 'streamStop':
      break
    case 'streamCommit':
      writer.int32(message.xid)
      writer.uint8(0)
      ended(message.at, message.end, message.timeMs)
      break
    case 'streamAbort':
      writer.int32(message.xid)
      writer.int32(message.subtransaction)
      break
    case 'beginPrepare':
    case 'prepare':
    case 'commitPrepared':
    case 'streamPrepare':
      if (message.kind !== 'beginPrepare') writer.uint8(0)
      ended(message.at, message.end, message.timeMs)
      writer.int32(message.xid)
      writer.cstring(message.gid)
      break
    case 'rollbackPrepared':
      writer.uint8(0)
      writer.int64(message.preparedEnd)
      writer.int64(message.end)
      writer.int64(0n)
      time(message.timeMs)
      writer.int32(message.xid)
      writer.cstring(message.gid)
      break
    default:
      message satisfies never
  }
  return Buffer.from(writer.take())
}

const LETTERS: Readonly<Record<PgoutputMessage['kind'], string>> = {
  ...{ begin: 'B', commit: 'C', origin: 'O', relation: 'R', type: 'Y', insert: 'I', update: 'U', delete: 'D' },
  ...{ truncate: 'T', message: 'M', streamStart: 'S', streamStop: 'E', streamCommit: 'c', streamAbort: 'A' },
  ...{ beginPrepare: 'b', prepare: 'P', commitPrepared: 'K', rollbackPrepared: 'r', streamPrepare: 'p' },
}

const ORDERS: ReplicatedRelation = {
  ...{ oid: 16_384, schema: 'public', name: 'orders', identity: 'default' },
  columns: [
    { name: 'id', isKey: true, typeOid: 20, typeModifier: -1 },
    { name: 'note', isKey: false, typeOid: 25, typeModifier: -1 },
  ],
}

function decoderOf(...relations: readonly ReplicatedRelation[]): PgoutputDecoder {
  const decoder = new PgoutputDecoder(ALL)
  for (const relation of relations) decoder.decode(encode({ kind: 'relation', xid: null, relation }))
  return decoder
}

const text = fc.string({ unit: 'grapheme', maxLength: 20 }).map(value => value.replaceAll('\0', ''))
const named = text.filter(value => value !== '')
const oid = fc.integer({ min: 0, max: 2 ** 32 - 1 })
const lsn = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n })
const timeMs = fc.integer({ min: 0, max: 4_000_000_000_000 })
const buffer = fc.uint8Array({ maxLength: 40 }).map(bytes => Buffer.from(bytes))
const bit = fc.boolean()
const relation: fc.Arbitrary<ReplicatedRelation> = fc.record({
  ...{ oid, schema: named, name: named, identity: fc.constantFrom('default', 'nothing', 'full', 'index') },
  columns: fc.array(
    fc.record({ name: named, isKey: bit, typeOid: oid, typeModifier: fc.integer({ min: -1, max: 1000 }) }),
    { maxLength: 5 },
  ),
})

function tupleOf({ columns }: ReplicatedRelation, isWhole = false): fc.Arbitrary<Tuple> {
  const value = fc.oneof(buffer, fc.constant(null), ...(isWhole ? [] : [fc.constant(UNCHANGED)]))
  return fc.tuple(...columns.map(() => value))
}

/** Any message about `about` that may occur inside and outside of a streamed block. */
function changeOf(about: ReplicatedRelation, xid: number | null): fc.Arbitrary<PgoutputMessage> {
  const [some, whole] = [tupleOf(about), tupleOf(about, true)]
  const base = { xid: fc.constant(xid), relation: fc.constant(about) }
  const none = fc.constant(null)
  const is = <K extends string>(kind: K) => fc.constant(kind)
  return fc.oneof(
    fc.record({ kind: is('insert'), ...base, new: some }),
    fc.record({ kind: is('update'), ...base, key: fc.option(whole), old: none, new: some }),
    fc.record({ kind: is('update'), ...base, key: none, old: whole, new: whole }),
    fc.record({ kind: is('delete'), ...base, key: whole, old: none }),
    fc.record({ kind: is('delete'), ...base, key: none, old: whole }),
    fc.record({
      ...{ kind: is('truncate'), xid: fc.constant(xid), cascade: bit, restartIdentity: bit },
      relations: fc.constantFrom([], [about], [about, about]),
    }),
    fc.record({ kind: is('type'), xid: fc.constant(xid), oid, schema: named, name: named }),
    fc.record({
      ...{ kind: is('message'), xid: fc.constant(xid), isTransactional: bit, at: lsn, prefix: text, content: buffer },
    }),
  )
}

const ended = { at: lsn, end: lsn, timeMs }
const outside: fc.Arbitrary<PgoutputMessage> = fc.oneof(
  fc.record({ kind: fc.constant('begin' as const), commitAt: lsn, timeMs, xid: oid }),
  fc.record({ kind: fc.constant('commit' as const), ...ended }),
  fc.record({ kind: fc.constant('origin' as const), at: lsn, name: text }),
  fc.record({ kind: fc.constant('streamCommit' as const), xid: oid, ...ended }),
  fc.record({ kind: fc.constant('streamAbort' as const), xid: oid, subtransaction: oid }),
  fc.record({
    kind: fc.constantFrom('beginPrepare' as const, 'prepare', 'commitPrepared', 'streamPrepare'),
    ...{ ...ended, xid: oid, gid: text },
  }),
  fc.record({
    ...{ kind: fc.constant('rollbackPrepared' as const), preparedEnd: lsn, end: lsn, timeMs, xid: oid, gid: text },
  }),
)

test('every message is read back, outside and inside of a streamed block', () => {
  const session = relation.chain(about =>
    fc.tuple(fc.constant(about), oid, fc.array(fc.oneof(outside, changeOf(about, null)), { maxLength: 8 })),
  )
  const run = fc
    .tuple(session, fc.boolean())
    .chain(([[about, xid, before], isFirst]) =>
      fc.tuple(fc.constant({ about, xid, before, isFirst }), fc.array(changeOf(about, xid), { maxLength: 8 })),
    )
  fc.assert(
    fc.property(run, ([{ about, xid, before, isFirst }, inside]) => {
      const messages: readonly PgoutputMessage[] = [
        { kind: 'relation', xid: null, relation: about },
        ...before,
        { kind: 'streamStart', xid, isFirst },
        { kind: 'relation', xid, relation: about },
        ...inside,
        { kind: 'streamStop' },
        ...before,
      ]
      const decoder = new PgoutputDecoder(ALL)
      expect(messages.map(message => decoder.decode(encode(message)))).toEqual(messages)
    }),
  )
})

test('a message that is cut, or has one byte more, is rejected', () => {
  const some = changeOf(ORDERS, null)
  fc.assert(
    fc.property(fc.oneof(outside, some), fc.nat(), (message, at) => {
      const bytes = encode(message)
      const decoder = decoderOf(ORDERS)
      // An abort may end with a position and a time, which protocol 4 adds.
      expect(() => decoder.decode(Buffer.concat([bytes, Buffer.of(0)]))).toThrow(ProtocolError)
      expect(() => decoder.decode(bytes.subarray(0, at % bytes.length))).toThrow(ProtocolError)
    }),
  )
})

test('any bytes are a message or a ProtocolError', () => {
  const letter = fc.constantFrom(...'BCORYIUDTMSEcAbPKrp').map(of => Buffer.from(of))
  fc.assert(
    fc.property(letter, fc.uint8Array({ maxLength: 60 }), (first, rest) => {
      try {
        decoderOf(ORDERS).decode(Buffer.concat([first, rest]))
      } catch (error) {
        expect(error).toBeInstanceOf(ProtocolError)
      }
    }),
    { numRuns: 2000 },
  )
})

test('an update takes the values it left alone from the old row', () => {
  const [one, long, changed] = [Buffer.from('1'), Buffer.from('long'), Buffer.from('2')]
  const update = (old: Tuple | null, row: Tuple): PgoutputMessage => ({
    ...{ kind: 'update', xid: null, relation: ORDERS, key: null, old, new: row },
  })
  const decoder = decoderOf(ORDERS)
  expect(decoder.decode(encode(update([one, long], [changed, UNCHANGED])))).toMatchObject({ new: [changed, long] })
  expect(decoder.decode(encode(update(null, [changed, UNCHANGED])))).toMatchObject({ new: [changed, UNCHANGED] })
})

test('a changed table is described again, and rows must have its columns', () => {
  const wider: ReplicatedRelation = { ...ORDERS, columns: [...ORDERS.columns, ...ORDERS.columns.slice(1)] }
  const insert: PgoutputMessage = { kind: 'insert', xid: null, relation: wider, new: [null, null, null] }
  const decoder = decoderOf(ORDERS)
  expect(() => decoder.decode(encode(insert))).toThrow(
    'a row of public.orders has 3 columns; its table was described with 2',
  )
  decoder.decode(encode({ kind: 'relation', xid: null, relation: wider }))
  expect(decoder.decode(encode(insert))).toEqual(insert)
})

test('a message that is out of order is rejected', () => {
  const insert: PgoutputMessage = { kind: 'insert', xid: null, relation: ORDERS, new: [null, null] }
  const start: PgoutputMessage = { kind: 'streamStart', xid: 7, isFirst: true }
  const commit: PgoutputMessage = { kind: 'commit', at: 1n, end: 2n, timeMs: Y2K_MS }
  const prepare: PgoutputMessage = { ...commit, kind: 'prepare', xid: 7, gid: 'one' }
  const plain = { streaming: false, twoPhase: false }
  expect(() => decoderOf().decode(encode(insert))).toThrow('a change of table 16384 before its description')
  expect(() => new PgoutputDecoder(plain).decode(encode(start))).toThrow(
    'a streamed transaction, which was not requested',
  )
  expect(() => new PgoutputDecoder(plain).decode(encode(prepare))).toThrow('a two-phase transaction, which was not')
  const decoder = decoderOf()
  expect(() => decoder.decode(encode({ kind: 'streamStop' }))).toThrow('out of turn')
  decoder.decode(encode(start))
  for (const next of [start, commit]) expect(() => decoder.decode(encode(next))).toThrow('out of turn')
})

test('a position is printed as PostgreSQL prints it, and read back', () => {
  expect(printLsn(0x16_b374_d848n)).toBe('16/B374D848')
  expect(printLsn(0n)).toBe('0/0')
  expect(() => parseLsn('16-B3')).toThrow('"16-B3" is not a log position such as 16/B374D848')
  fc.assert(
    fc.property(lsn, position => {
      expect(parseLsn(printLsn(position))).toBe(position)
    }),
  )
})

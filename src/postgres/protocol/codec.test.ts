/** The codec in both directions: every written message is read back, and invalid bytes are rejected. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { BACKEND, type BackendMessage, decodeBackend, encodeBackend } from './backend.ts'
import { ProtocolError } from './error.ts'
import {
  decodeFirstPacket,
  decodeFrontend,
  encodeFrontend,
  type FrontendMessage,
  writeBind,
  writeExecute,
  writeParameters,
  writeParse,
  writeSync,
} from './frontend.ts'
import { LONG_BYTES, MESSAGE_BYTES_MAX, Reader } from './reader.ts'
import { Writer } from './writer.ts'

// Characters of every UTF-8 length, without the zero byte that ends a string of the protocol and without
// lone surrogates.
const text = fc.string({ unit: 'grapheme', maxLength: 30 }).map(value => value.replaceAll('\0', ''))
const nonEmpty = text.filter(value => value !== '')
const buffer = fc.uint8Array({ maxLength: 40 }).map(bytes => Buffer.from(bytes))
const value = fc.option(buffer, { nil: null })
const int16 = fc.integer({ min: -32768, max: 32767 })
const int32 = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 })
const oid = fc.integer({ min: 0, max: 2 ** 32 - 1 })
const target = fc.constantFrom('statement' as const, 'portal' as const)
const list = <T>(item: fc.Arbitrary<T>): fc.Arbitrary<T[]> => fc.array(item, { maxLength: 5 })

const later: fc.Arbitrary<FrontendMessage> = fc.oneof(
  fc.record({ kind: fc.constant('answer' as const), body: buffer }),
  fc.record({ kind: fc.constant('query' as const), text }),
  fc.record({ kind: fc.constant('parse' as const), statement: text, text, typeOids: list(oid) }),
  fc.record({
    kind: fc.constant('bind' as const),
    portal: text,
    statement: text,
    formats: list(int16),
    parameters: list(value),
    resultFormats: list(int16),
  }),
  fc.record({ kind: fc.constant('describe' as const), target, name: text }),
  fc.record({ kind: fc.constant('close' as const), target, name: text }),
  fc.record({ kind: fc.constant('execute' as const), portal: text, rowsMax: int32 }),
  fc.record({ kind: fc.constant('copyFail' as const), reason: text }),
  fc.record({ kind: fc.constant('copyData' as const), data: buffer }),
  fc.record({ kind: fc.constantFrom('copyDone' as const, 'flush' as const, 'sync' as const, 'terminate' as const) }),
)

const first: fc.Arbitrary<FrontendMessage> = fc.oneof(
  fc.record({
    kind: fc.constant('startup' as const),
    version: fc.constant(196608),
    parameters: list(fc.tuple(nonEmpty, text)),
  }),
  fc.record({ kind: fc.constant('cancelRequest' as const), processId: int32, secret: buffer }),
  fc.record({ kind: fc.constantFrom('sslRequest' as const, 'gssEncryptionRequest' as const) }),
)

const letter = fc.constantFrom('S', 'V', 'C', 'M', 'D', 'H', 'P')
const fields = fc.array(fc.tuple(letter, text), { maxLength: 5 }).map(entries => new Map(entries))
const backend: fc.Arbitrary<BackendMessage> = fc.oneof(
  fc.record({
    kind: fc.constant('authentication' as const),
    authentication: fc.oneof(
      fc.record({
        method: fc.constantFrom(
          'ok' as const,
          'kerberos' as const,
          'cleartext' as const,
          'gss' as const,
          'sspi' as const,
        ),
      }),
      fc.record({
        method: fc.constant('md5' as const),
        salt: fc.uint8Array({ minLength: 4, maxLength: 4 }).map(b => Buffer.from(b)),
      }),
      fc.record({ method: fc.constant('sasl' as const), mechanisms: list(nonEmpty) }),
      fc.record({
        method: fc.constantFrom('saslContinue' as const, 'saslFinal' as const, 'gssContinue' as const),
        data: buffer,
      }),
    ),
  }),
  fc.record({ kind: fc.constant('backendKeyData' as const), processId: int32, secret: buffer }),
  fc.record({
    kind: fc.constant('commandComplete' as const),
    tag: fc.stringMatching(/^((SELECT|INSERT 0) \d{1,3}|[A-Z ]{0,40})$/),
  }),
  fc.record({ kind: fc.constant('copyData' as const), data: buffer }),
  fc.record({ kind: fc.constant('dataRow' as const), columns: list(value) }),
  fc.record({ kind: fc.constantFrom('error' as const, 'notice' as const), fields }),
  fc.record({
    kind: fc.constantFrom('copyIn' as const, 'copyOut' as const, 'copyBoth' as const),
    format: fc.constantFrom(0, 1),
    columnFormats: list(int16),
  }),
  fc.record({ kind: fc.constant('negotiateProtocolVersion' as const), minor: int32, unknown: list(text) }),
  fc.record({ kind: fc.constant('notification' as const), processId: int32, channel: text, payload: text }),
  fc.record({ kind: fc.constant('parameterDescription' as const), typeOids: list(oid) }),
  fc.record({ kind: fc.constant('parameterStatus' as const), name: text, value: text }),
  fc.record({
    kind: fc.constant('readyForQuery' as const),
    status: fc.constantFrom('idle' as const, 'transaction' as const, 'failed' as const),
  }),
  fc.record({
    kind: fc.constant('rowDescription' as const),
    fields: list(
      fc.record({
        name: text,
        tableOid: oid,
        column: int16,
        typeOid: oid,
        typeSize: int16,
        typeModifier: int32,
        format: int16,
      }),
    ),
  }),
  fc.record({
    kind: fc.constantFrom(
      'bindComplete' as const,
      'closeComplete' as const,
      'copyDone' as const,
      'emptyQuery' as const,
      'noData' as const,
      'parseComplete' as const,
      'portalSuspended' as const,
    ),
  }),
)

/** Reads a stream of server messages that arrives in the given pieces. */
function readBackend(pieces: readonly Buffer[], bytesMax?: number): BackendMessage[] {
  const messages: BackendMessage[] = []
  const reader = new Reader(
    {
      message: (type, bytes, start, end) => messages.push(decodeBackend(type, bytes, start, end)),
      tooLong: (_type, bodyBytes) => {
        throw new ProtocolError(`${bodyBytes} bytes are too many`)
      },
    },
    bytesMax,
  )
  for (const piece of pieces) reader.push(piece)
  return messages
}

function encode(messages: readonly BackendMessage[]): Buffer {
  const writer = new Writer(64)
  for (const message of messages) encodeBackend(writer, message)
  return Buffer.from(writer.take())
}

/** Cuts at every position in `cuts`. */
function cut(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const at = [...new Set(cuts.map(position => position % (bytes.length + 1)))].sort((a, b) => a - b)
  return [0, ...at].map((start, index) => bytes.subarray(start, at[index] ?? bytes.length))
}

test('a Bind message has the expected bytes', () => {
  const writer = new Writer()
  writeBind(writer, 's1', ['é', null, Buffer.from([1, 2])], 'text')
  expect(writer.take().toString('hex')).toBe(
    [
      '42', // B
      '0000001e', // 30 bytes with these four
      '00', // the unnamed portal
      '733100', // s1
      '0000', // every parameter is text
      '0003', // three of them
      '00000002c3a9',
      'ffffffff',
      '000000020102',
      '0000', // every result is text
    ].join(''),
  )
})

test('parameters encoded beforehand make the same message as parameters given as values', () => {
  const parameters = ['app.tenant', 'a value longer than any short string is: 0123456789', null, Buffer.from('é')]
  const beforehand = new Writer()
  writeParameters(beforehand, parameters)
  const encoded = beforehand.take()
  for (const format of ['text', 'binary'] as const) {
    const [one, other] = [new Writer(), new Writer()]
    writeBind(one, 's7', parameters, format)
    writeBind(other, 's7', encoded, format)
    expect(other.take()).toEqual(one.take())
  }
})

test('binary results are requested with one code for all columns', () => {
  const writer = new Writer()
  writeBind(writer, '', [], 'binary')
  expect(writer.take().toString('hex')).toBe(['42', '0000000e', '00', '00', '0000', '0000', '00010001'].join(''))
})

test('what the pool writes is what the server reads', () => {
  const writer = new Writer()
  writeParse(writer, 's1', 'select $1')
  writeBind(writer, 's1', ['x'], 'text')
  writeExecute(writer, 25)
  writeSync(writer)
  const messages: FrontendMessage[] = []
  const reader = new Reader({
    message: (type, bytes, start, end) => messages.push(decodeFrontend(type, bytes, start, end)),
    tooLong() {},
  })
  reader.push(writer.take())
  expect(messages).toEqual([
    { kind: 'parse', statement: 's1', text: 'select $1', typeOids: [] },
    { kind: 'bind', portal: '', statement: 's1', formats: [], parameters: [Buffer.from('x')], resultFormats: [] },
    { kind: 'execute', portal: '', rowsMax: 25 },
    { kind: 'sync' },
  ])
})

test('every client message is read back', () => {
  fc.assert(
    fc.property(later, message => {
      const writer = new Writer(8)
      encodeFrontend(writer, message)
      const bytes = writer.take()
      expect(decodeFrontend(bytes[0] as number, bytes, 5, bytes.length)).toEqual(message)
    }),
  )
})

test('every first packet is read back', () => {
  fc.assert(
    fc.property(first, message => {
      const writer = new Writer(8)
      encodeFrontend(writer, message)
      const bytes = writer.take()
      expect(bytes.readInt32BE(0)).toBe(bytes.length)
      expect(decodeFirstPacket(bytes, 4, bytes.length)).toEqual(message)
    }),
  )
})

test('server messages are read back, however the network splits them', () => {
  fc.assert(
    fc.property(fc.array(backend, { maxLength: 8 }), fc.array(fc.nat(500), { maxLength: 12 }), (messages, cuts) => {
      expect(readBackend(cut(encode(messages), cuts))).toEqual(messages)
    }),
  )
})

test('messages that arrive byte by byte are read back', () => {
  const messages: BackendMessage[] = [
    { kind: 'dataRow', columns: [Buffer.from('a'), null, Buffer.alloc(0)] },
    { kind: 'commandComplete', tag: 'SELECT 1' },
    { kind: 'readyForQuery', status: 'idle' },
  ]
  const bytes = encode(messages)
  expect(readBackend([...bytes].map(byte => Buffer.from([byte])))).toEqual(messages)
})

test('a message that straddles many chunks is copied once into a buffer that grows', () => {
  const column = Buffer.alloc(300_000, 'x')
  const bytes = encode([{ kind: 'dataRow', columns: [column] }, { kind: 'noData' }])
  const pieces = []
  for (let at = 0; at < bytes.length; at += 1000) pieces.push(bytes.subarray(at, at + 1000))
  const [message, last] = readBackend(pieces)
  expect(message?.kind === 'dataRow' && message.columns[0]?.equals(column)).toBe(true)
  expect(last).toEqual({ kind: 'noData' })
})

test('columns are views of the received bytes, not copies', () => {
  const chunk = encode([{ kind: 'dataRow', columns: [Buffer.from('abc')] }])
  const [message] = readBackend([chunk])
  const column = message?.kind === 'dataRow' ? message.columns[0] : null
  expect(column?.buffer).toBe(chunk.buffer)
})

test.each([
  [0, 'message "D" (0x44) declares a length of 0; the length counts itself, so it is at least 4'],
  [3, 'message "D" (0x44) declares a length of 3; the length counts itself, so it is at least 4'],
  [-1, 'message "D" (0x44) declares a length of -1; the length counts itself, so it is at least 4'],
  [-(2 ** 31), 'message "D" (0x44) declares a length of -2147483648; the length counts itself, so it is at least 4'],
])('an impossible length of %i is an error, whole and in pieces', (length, message) => {
  const bytes = Buffer.alloc(5)
  bytes[0] = BACKEND.dataRow
  bytes.writeInt32BE(length, 1)
  expect(() => readBackend([bytes])).toThrow(new ProtocolError(message))
  expect(() => readBackend([bytes.subarray(0, 2), bytes.subarray(2)])).toThrow(new ProtocolError(message))
})

test('a giant length is rejected when the header arrives and uses no memory', () => {
  const bytes = Buffer.from('447fffffff', 'hex')
  expect(() => readBackend([bytes])).toThrow('2147483643 bytes are too many')
  expect(() => readBackend([bytes.subarray(0, 3), bytes.subarray(3)])).toThrow('2147483643 bytes are too many')
})

test('a length just within the limit uses memory only for bytes that have arrived', () => {
  const before = process.memoryUsage().arrayBuffers
  const readers = Array.from({ length: 100 }, () => new Reader({ message() {}, tooLong() {} }))
  const header = Buffer.from('4400000000', 'hex')
  header.writeInt32BE(MESSAGE_BYTES_MAX, 1)
  for (const reader of readers) reader.push(header)
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(32 * 1024 * 1024)
})

test('a message above the limit can be skipped, and the next one is read', () => {
  const kinds: number[] = []
  const skipped: number[] = []
  const reader = new Reader({ message: type => kinds.push(type), tooLong: (_type, bytes) => skipped.push(bytes) }, 10)
  const bytes = encode([{ kind: 'dataRow', columns: [Buffer.alloc(50)] }, { kind: 'noData' }])
  for (const piece of cut(bytes, [3, 7, 20, 59, 61])) reader.push(piece)
  expect(skipped).toEqual([56])
  expect(kinds).toEqual([BACKEND.noData])
})

test('a long message that the sink rejects is skipped however its bytes arrive, and the next one is read', () => {
  const size = 2 * LONG_BYTES
  const bytes = encode([{ kind: 'noData' }, { kind: 'dataRow', columns: [Buffer.alloc(size)] }, { kind: 'noData' }])
  for (const wanted of [false, true]) {
    for (const cuts of [[1], [5, 6], [5, 9], [7, 8], [5, 10, 20], [11, size], [size + 10, size + 16, size + 18]]) {
      const asked: number[] = []
      const kinds: number[] = []
      const reader = new Reader({
        message: type => kinds.push(type),
        tooLong() {},
        begins(_type, bodyBytes) {
          asked.push(bodyBytes)
          return wanted
        },
      })
      for (const piece of cut(bytes, cuts)) reader.push(piece)
      const isWhole = cuts.length === 1
      expect(asked).toEqual(isWhole ? [] : [size + 6])
      const row = wanted || isWhole ? [BACKEND.dataRow] : []
      expect(kinds).toEqual([BACKEND.noData, ...row, BACKEND.noData])
    }
  }
})

test('random bytes give a ProtocolError or messages', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 200 }), { maxLength: 5 }), pieces => {
      try {
        readBackend(
          pieces.map(piece => Buffer.from(piece)),
          100_000,
        )
      } catch (error) {
        expect(error).toBeInstanceOf(ProtocolError)
      }
    }),
    { numRuns: 2000 },
  )
})

test('random bodies of every known type give a ProtocolError or a message', () => {
  const type = fc.constantFrom(...Object.values(BACKEND))
  fc.assert(
    fc.property(type, fc.uint8Array({ maxLength: 60 }), (code, body) => {
      const bytes = Buffer.from(body)
      try {
        decodeBackend(code, bytes, 0, bytes.length)
      } catch (error) {
        expect(error).toBeInstanceOf(ProtocolError)
      }
    }),
    { numRuns: 5000 },
  )
})

test('a truncated message of any type is rejected', () => {
  fc.assert(
    fc.property(backend, fc.integer({ min: 1, max: 8 }), (message, missing) => {
      const bytes = encode([message])
      const end = Math.max(5, bytes.length - missing)
      // A field of "all the rest" has no length of its own to check.
      const open = ['backendKeyData', 'authentication', 'copyData'].includes(message.kind)
      fc.pre(end < bytes.length && !open)
      // An error without its terminator or a row without its column must not look like another message of
      // the same type.
      expect(() => decodeBackend(bytes[0] as number, bytes, 5, end)).toThrow(ProtocolError)
    }),
  )
})

test('a zero byte in a name or a text is rejected, because the rest would become another field', () => {
  const writer = new Writer()
  expect(() => writeParse(writer, '', 'select 1\0drop')).toThrow(ProtocolError)
})

test('more parameters than a message can count are rejected', () => {
  const parameters = new Array<null>(65_536).fill(null)
  expect(() => writeBind(new Writer(), 's1', parameters, 'text')).toThrow(
    '65536 parameters; PostgreSQL takes at most 65535',
  )
  const writer = new Writer()
  writeBind(writer, 's1', parameters.slice(1), 'text')
  const bytes = writer.take()
  const message = decodeFrontend(bytes[0] as number, bytes, 5, bytes.length)
  expect(message.kind === 'bind' && message.parameters.length).toBe(65_535)
})

test('the buffer of unsent bytes is bounded', () => {
  expect(() => new Writer().bytes({ length: 257 * 1024 * 1024 } as Uint8Array)).toThrow('sent is 268435456')
})

test('a taken buffer is not changed while the next one is filled', () => {
  const writer = new Writer(16)
  writer.string('first')
  const taken = writer.take()
  writer.string('other, and longer than the capacity')
  expect(taken.toString()).toBe('first')
  writer.recycle()
  expect(writer.take().toString()).toBe('other, and longer than the capacity')
})

test('nothing is delivered after stop, not even the rest of the chunk', () => {
  const kinds: number[] = []
  const reader = new Reader({
    message: type => {
      kinds.push(type)
      reader.stop()
    },
    tooLong() {},
  })
  reader.push(encode([{ kind: 'noData' }, { kind: 'bindComplete' }]))
  reader.push(encode([{ kind: 'noData' }]))
  expect(kinds).toEqual([BACKEND.noData])
})

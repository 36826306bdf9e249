/**
 * Messages of the client, encoded by the pool and decoded by the scripted server of the tests. PostgreSQL
 * manual, 54.7 "Message Formats".
 */
import { ProtocolError } from './error.ts'
import { Fields } from './fields.ts'
import { describeType } from './reader.ts'
import type { Writer } from './writer.ts'

export const PROTOCOL_3_0 = 0x0003_0000
const CANCEL_REQUEST = 80877102
const SSL_REQUEST = 80877103
const GSS_ENCRYPTION_REQUEST = 80877104

/** The count of parameters is an unsigned 16-bit integer. */
export const PARAMETERS_MAX = 65_535

/**
 * Type bytes of the client's messages. Several messages have the type `p`; the server's request determines
 * which one it is.
 */
const FRONTEND = {
  bind: 0x42,
  close: 0x43,
  copyData: 0x64,
  copyDone: 0x63,
  copyFail: 0x66,
  describe: 0x44,
  execute: 0x45,
  flush: 0x48,
  parse: 0x50,
  answer: 0x70,
  query: 0x51,
  sync: 0x53,
  terminate: 0x58,
} as const

const STATEMENT = 0x53
const PORTAL = 0x50

/** The format code of Bind. */
const BINARY = 1

export type Target = 'statement' | 'portal'
export type Format = 'text' | 'binary'

export type FrontendMessage =
  | { readonly kind: 'startup'; readonly version: number; readonly parameters: readonly (readonly [string, string])[] }
  | { readonly kind: 'cancelRequest'; readonly processId: number; readonly secret: Buffer }
  | { readonly kind: 'sslRequest' }
  | { readonly kind: 'gssEncryptionRequest' }
  /**
   * PasswordMessage, SASLInitialResponse or SASLResponse, undecoded: the content depends on the
   * authentication method.
   */
  | { readonly kind: 'answer'; readonly body: Buffer }
  | { readonly kind: 'query'; readonly text: string }
  | { readonly kind: 'parse'; readonly statement: string; readonly text: string; readonly typeOids: readonly number[] }
  | {
      readonly kind: 'bind'
      readonly portal: string
      readonly statement: string
      readonly formats: readonly number[]
      readonly parameters: readonly (Buffer | null)[]
      readonly resultFormats: readonly number[]
    }
  | { readonly kind: 'describe'; readonly target: Target; readonly name: string }
  | { readonly kind: 'close'; readonly target: Target; readonly name: string }
  | { readonly kind: 'execute'; readonly portal: string; readonly rowsMax: number }
  | { readonly kind: 'copyData'; readonly data: Buffer }
  | { readonly kind: 'copyDone' }
  | { readonly kind: 'copyFail'; readonly reason: string }
  | { readonly kind: 'flush' }
  | { readonly kind: 'sync' }
  | { readonly kind: 'terminate' }

export function writeStartup(
  writer: Writer,
  parameters: readonly (readonly [string, string])[],
  version: number = PROTOCOL_3_0,
): void {
  const length = writer.beginUntyped()
  writer.int32(version)
  for (const [name, value] of parameters) {
    writer.cstring(name)
    writer.cstring(value)
  }
  writer.uint8(0)
  writer.end(length)
}

export function writeSslRequest(writer: Writer): void {
  writer.int32(8)
  writer.int32(SSL_REQUEST)
}

export function writeCancelRequest(writer: Writer, processId: number, secret: Uint8Array): void {
  const length = writer.beginUntyped()
  writer.int32(CANCEL_REQUEST)
  writer.int32(processId)
  writer.bytes(secret)
  writer.end(length)
}

/** SASLResponse, which consists of the mechanism's bytes. */
export function writeAnswer(writer: Writer, body: Uint8Array): void {
  const length = writer.begin(FRONTEND.answer)
  writer.bytes(body)
  writer.end(length)
}

/** PasswordMessage with the cleartext password or its MD5 digest. */
export function writePassword(writer: Writer, password: string): void {
  const length = writer.begin(FRONTEND.answer)
  writer.cstring(password)
  writer.end(length)
}

export function writeSaslInitialResponse(writer: Writer, mechanism: string, data: Uint8Array): void {
  const length = writer.begin(FRONTEND.answer)
  writer.cstring(mechanism)
  writer.int32(data.length)
  writer.bytes(data)
  writer.end(length)
}

export function writeParse(writer: Writer, statement: string, text: string): void {
  const length = writer.begin(FRONTEND.parse)
  writer.cstring(statement)
  writer.cstring(text)
  writer.int16(0)
  writer.end(length)
}

/**
 * The part of a Bind message between the two names and the result formats: parameters in text format. It
 * depends only on the values, so it can be encoded once and sent on any connection.
 */
export function writeParameters(writer: Writer, parameters: readonly (string | Uint8Array | null)[]): void {
  if (parameters.length > PARAMETERS_MAX) {
    throw new ProtocolError(
      `a statement has ${parameters.length} parameters; PostgreSQL takes at most ${PARAMETERS_MAX}`,
    )
  }
  writer.int16(0)
  writer.int16(parameters.length)
  for (const parameter of parameters) {
    if (parameter === null) {
      writer.int32(-1)
    } else if (typeof parameter === 'string') {
      const length = writer.beginField()
      writer.string(parameter)
      writer.endField(length)
    } else {
      writer.int32(parameter.length)
      writer.bytes(parameter)
    }
  }
}

/**
 * Binds the unnamed portal. `parameters` are values, or the output of `writeParameters`; all columns have the
 * same format.
 */
export function writeBind(
  writer: Writer,
  statement: string,
  parameters: readonly (string | Uint8Array | null)[] | Uint8Array,
  resultFormat: Format,
): void {
  const length = writer.begin(FRONTEND.bind)
  writer.uint8(0)
  writer.cstring(statement)
  if (parameters instanceof Uint8Array) writer.bytes(parameters)
  else writeParameters(writer, parameters)
  // Without a format code all columns are text; a single code applies to all columns.
  if (resultFormat === 'binary') writer.int16(1)
  writer.int16(resultFormat === 'binary' ? BINARY : 0)
  writer.end(length)
}

/** Executes the unnamed portal; `rowsMax` 0 returns all rows. */
export function writeExecute(writer: Writer, rowsMax: number): void {
  writer.uint8(FRONTEND.execute)
  writer.int32(9)
  writer.uint8(0)
  writer.int32(rowsMax)
}

export function writeDescribe(writer: Writer, target: Target, name: string): void {
  writeNamed(writer, FRONTEND.describe, target, name)
}

export function writeClose(writer: Writer, target: Target, name: string): void {
  writeNamed(writer, FRONTEND.close, target, name)
}

function writeNamed(writer: Writer, type: number, target: Target, name: string): void {
  const length = writer.begin(type)
  writer.uint8(target === 'statement' ? STATEMENT : PORTAL)
  writer.cstring(name)
  writer.end(length)
}

export function writeFlush(writer: Writer): void {
  writer.uint8(FRONTEND.flush)
  writer.int32(4)
}

export function writeSync(writer: Writer): void {
  writer.uint8(FRONTEND.sync)
  writer.int32(4)
}

export function writeTerminate(writer: Writer): void {
  writer.uint8(FRONTEND.terminate)
  writer.int32(4)
}

/** A statement in the simple query protocol; replication commands have no other (PostgreSQL manual, 54.4). */
export function writeQuery(writer: Writer, text: string): void {
  const length = writer.begin(FRONTEND.query)
  writer.cstring(text)
  writer.end(length)
}

/** Starts CopyData; `writer.end` ends it. */
export function beginCopyData(writer: Writer): number {
  return writer.begin(FRONTEND.copyData)
}

export function writeCopyDone(writer: Writer): void {
  writer.uint8(FRONTEND.copyDone)
  writer.int32(4)
}

/** The whole input of a COPY. */
export function writeInput(writer: Writer, input: Buffer): void {
  const length = beginCopyData(writer)
  writer.bytes(input)
  writer.end(length)
  writeCopyDone(writer)
}

/** Encodes any message. The functions above encode the messages that the pool sends. */
export function encodeFrontend(writer: Writer, message: FrontendMessage): void {
  switch (message.kind) {
    case 'startup':
      writeStartup(writer, message.parameters, message.version)
      break
    case 'cancelRequest':
      writeCancelRequest(writer, message.processId, message.secret)
      break
    case 'sslRequest':
      writeSslRequest(writer)
      break
    case 'gssEncryptionRequest':
      writer.int32(8)
      writer.int32(GSS_ENCRYPTION_REQUEST)
      break
    case 'answer':
      writeAnswer(writer, message.body)
      break
    case 'flush':
      writeFlush(writer)
      break
    case 'sync':
      writeSync(writer)
      break
    case 'terminate':
      writeTerminate(writer)
      break
    case 'describe':
      writeDescribe(writer, message.target, message.name)
      break
    case 'close':
      writeClose(writer, message.target, message.name)
      break
    case 'query':
      writeQuery(writer, message.text)
      break
    case 'copyData': {
      const length = beginCopyData(writer)
      writer.bytes(message.data)
      writer.end(length)
      break
    }
    case 'copyDone':
      writeCopyDone(writer)
      break
    case 'copyFail': {
      const length = writer.begin(FRONTEND.copyFail)
      writer.cstring(message.reason)
      writer.end(length)
      break
    }
    case 'parse': {
      const length = writer.begin(FRONTEND.parse)
      writer.cstring(message.statement)
      writer.cstring(message.text)
      writer.int16(message.typeOids.length)
      for (const oid of message.typeOids) writer.int32(oid)
      writer.end(length)
      break
    }
    case 'bind': {
      const length = writer.begin(FRONTEND.bind)
      writer.cstring(message.portal)
      writer.cstring(message.statement)
      writeFormats(writer, message.formats)
      writer.int16(message.parameters.length)
      for (const parameter of message.parameters) {
        writer.int32(parameter === null ? -1 : parameter.length)
        if (parameter !== null) writer.bytes(parameter)
      }
      writeFormats(writer, message.resultFormats)
      writer.end(length)
      break
    }
    case 'execute': {
      const length = writer.begin(FRONTEND.execute)
      writer.cstring(message.portal)
      writer.int32(message.rowsMax)
      writer.end(length)
      break
    }
    default:
      message satisfies never
  }
}

function writeFormats(writer: Writer, formats: readonly number[]): void {
  writer.int16(formats.length)
  for (const format of formats) writer.int16(format)
}

/** Decodes the first packet of a connection, which has no type byte. */
export function decodeFirstPacket(bytes: Buffer, start: number, end: number): FrontendMessage {
  const fields = new Fields(bytes, start, end)
  const code = fields.int32()
  if (code === SSL_REQUEST) return fields.finish({ kind: 'sslRequest' })
  if (code === GSS_ENCRYPTION_REQUEST) return fields.finish({ kind: 'gssEncryptionRequest' })
  if (code === CANCEL_REQUEST) {
    return fields.finish({ kind: 'cancelRequest', processId: fields.int32(), secret: fields.take(fields.rest) })
  }
  const parameters: (readonly [string, string])[] = []
  while (fields.rest > 1) parameters.push([fields.cstring(), fields.cstring()])
  if (fields.uint8() !== 0) throw new ProtocolError('a start-up packet does not end with a zero byte')
  return fields.finish({ kind: 'startup', version: code, parameters })
}

/** Decodes a later message of a client. */
export function decodeFrontend(type: number, bytes: Buffer, start: number, end: number): FrontendMessage {
  const fields = new Fields(bytes, start, end)
  switch (type) {
    case FRONTEND.answer:
      return fields.finish({ kind: 'answer', body: fields.take(fields.rest) })
    case FRONTEND.query:
      return fields.finish({ kind: 'query', text: fields.cstring() })
    case FRONTEND.copyData:
      return fields.finish({ kind: 'copyData', data: fields.take(fields.rest) })
    case FRONTEND.copyDone:
      return fields.finish({ kind: 'copyDone' })
    case FRONTEND.copyFail:
      return fields.finish({ kind: 'copyFail', reason: fields.cstring() })
    case FRONTEND.flush:
      return fields.finish({ kind: 'flush' })
    case FRONTEND.sync:
      return fields.finish({ kind: 'sync' })
    case FRONTEND.terminate:
      return fields.finish({ kind: 'terminate' })
    case FRONTEND.describe:
      return fields.finish({ kind: 'describe', target: readTarget(fields), name: fields.cstring() })
    case FRONTEND.close:
      return fields.finish({ kind: 'close', target: readTarget(fields), name: fields.cstring() })
    case FRONTEND.execute:
      return fields.finish({ kind: 'execute', portal: fields.cstring(), rowsMax: fields.int32() })
    case FRONTEND.parse:
      return fields.finish({
        kind: 'parse',
        statement: fields.cstring(),
        text: fields.cstring(),
        typeOids: readList(fields, () => fields.uint32()),
      })
    case FRONTEND.bind:
      return fields.finish({
        kind: 'bind',
        portal: fields.cstring(),
        statement: fields.cstring(),
        formats: readList(fields, () => fields.int16()),
        parameters: readList(fields, () => fields.value()),
        resultFormats: readList(fields, () => fields.int16()),
      })
    default:
      throw new ProtocolError(`a client sent ${describeType(type)}, which is not known`)
  }
}

function readTarget(fields: Fields): Target {
  const code = fields.uint8()
  if (code === STATEMENT) return 'statement'
  if (code === PORTAL) return 'portal'
  throw new ProtocolError(`Describe and Close name a statement (S) or a portal (P), not ${describeType(code)}`)
}

function readList<T>(fields: Fields, read: () => T): T[] {
  const count = fields.uint16()
  const list: T[] = []
  for (let index = 0; index < count; index++) list.push(read())
  return list
}

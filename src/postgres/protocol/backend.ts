/**
 * Messages of the server, decoded by the pool and encoded by the scripted server of the tests. PostgreSQL
 * manual, 54.7 "Message Formats"; error fields 54.8.
 */
import { ProtocolError } from './error.ts'
import { Fields } from './fields.ts'
import { describeType } from './reader.ts'
import type { Writer } from './writer.ts'

export const BACKEND = {
  authentication: 0x52,
  backendKeyData: 0x4b,
  bindComplete: 0x32,
  closeComplete: 0x33,
  commandComplete: 0x43,
  copyBoth: 0x57,
  copyData: 0x64,
  copyDone: 0x63,
  copyIn: 0x47,
  copyOut: 0x48,
  dataRow: 0x44,
  emptyQuery: 0x49,
  error: 0x45,
  negotiateProtocolVersion: 0x76,
  noData: 0x6e,
  notice: 0x4e,
  notification: 0x41,
  parameterDescription: 0x74,
  parameterStatus: 0x53,
  parseComplete: 0x31,
  portalSuspended: 0x73,
  readyForQuery: 0x5a,
  rowDescription: 0x54,
} as const

/** ReadyForQuery's status byte: outside a transaction, inside one, inside a failed one. */
const STATUS_IDLE = 0x49
const STATUS_TRANSACTION = 0x54
const STATUS_FAILED = 0x45

export type TransactionStatus = 'idle' | 'transaction' | 'failed'

/** AuthenticationXXX codes (PostgreSQL manual, 54.7). Obsolete ones are not included. */
const AUTHENTICATION = {
  ok: 0,
  kerberos: 2,
  cleartext: 3,
  md5: 5,
  gss: 7,
  gssContinue: 8,
  sspi: 9,
  sasl: 10,
  saslContinue: 11,
  saslFinal: 12,
} as const

export type Authentication =
  | { readonly method: 'ok' | 'kerberos' | 'cleartext' | 'gss' | 'sspi' }
  | { readonly method: 'md5'; readonly salt: Buffer }
  | { readonly method: 'sasl'; readonly mechanisms: readonly string[] }
  | { readonly method: 'saslContinue' | 'saslFinal' | 'gssContinue'; readonly data: Buffer }

export interface ColumnDescription {
  readonly name: string
  readonly tableOid: number
  readonly column: number
  readonly typeOid: number
  readonly typeSize: number
  readonly typeModifier: number
  readonly format: number
}

/**
 * Fields of an ErrorResponse or NoticeResponse by their letter; `S` severity, `C` SQLSTATE, `M` message …
 * (PostgreSQL manual, 54.8).
 */
export type ErrorFields = ReadonlyMap<string, string>

export type BackendMessage =
  | { readonly kind: 'authentication'; readonly authentication: Authentication }
  | { readonly kind: 'backendKeyData'; readonly processId: number; readonly secret: Buffer }
  | { readonly kind: 'commandComplete'; readonly tag: string }
  | { readonly kind: 'copyData'; readonly data: Buffer }
  | { readonly kind: 'dataRow'; readonly columns: readonly (Buffer | null)[] }
  | { readonly kind: 'error' | 'notice'; readonly fields: ErrorFields }
  | {
      readonly kind: 'copyIn' | 'copyOut' | 'copyBoth'
      readonly format: number
      readonly columnFormats: readonly number[]
    }
  | { readonly kind: 'negotiateProtocolVersion'; readonly minor: number; readonly unknown: readonly string[] }
  | { readonly kind: 'notification'; readonly processId: number; readonly channel: string; readonly payload: string }
  | { readonly kind: 'parameterDescription'; readonly typeOids: readonly number[] }
  | { readonly kind: 'parameterStatus'; readonly name: string; readonly value: string }
  | { readonly kind: 'readyForQuery'; readonly status: TransactionStatus }
  | { readonly kind: 'rowDescription'; readonly fields: readonly ColumnDescription[] }
  | {
      readonly kind:
        | 'bindComplete'
        | 'closeComplete'
        | 'copyDone'
        | 'emptyQuery'
        | 'noData'
        | 'parseComplete'
        | 'portalSuspended'
    }

/**
 * Decodes a data row; the most frequently called function of the client. Columns are views of the received
 * bytes, neither strings nor copies. To keep a row for long, copy it: otherwise its chunk stays in memory (at
 * most 64 KiB, or the size of the row).
 */
export function decodeDataRow(bytes: Buffer, start: number, end: number): (Buffer | null)[] {
  if (end - start < 2) throw new ProtocolError('a data row is too short to hold its column count')
  const count = ((bytes[start] as number) << 8) | (bytes[start + 1] as number)
  const columns: (Buffer | null)[] = []
  let at = start + 2
  for (let index = 0; index < count; index++) {
    if (end - at < 4) throw new ProtocolError(`a data row ends before column ${index + 1} of ${count}`)
    const length =
      ((bytes[at] as number) << 24) |
      ((bytes[at + 1] as number) << 16) |
      ((bytes[at + 2] as number) << 8) |
      (bytes[at + 3] as number)
    at += 4
    if (length === -1) {
      columns.push(null)
      continue
    }
    if (length < 0 || length > end - at) {
      throw new ProtocolError(`column ${index + 1} of a data row declares ${length} bytes; ${end - at} are left`)
    }
    columns.push(bytes.subarray(at, at + length))
    at += length
  }
  if (at !== end) throw new ProtocolError(`a data row has ${end - at} bytes more than its columns`)
  return columns
}

/**
 * The most recent tags, by first byte and length. There are only a few, and comparing one is cheaper than
 * decoding it.
 */
const recentTags: string[] = new Array(64).fill('')

/** `SELECT 25`. Latin-1 is enough and cheaper: a tag is ASCII. */
export function decodeCommandTag(bytes: Buffer, start: number, end: number): string {
  if (end <= start || bytes[end - 1] !== 0) throw new ProtocolError('a command tag does not end with a zero byte')
  const slot = ((bytes[start] as number) * 7 + end - start) % recentTags.length
  const recent = recentTags[slot] as string
  if (isLatin1(recent, bytes, start, end - 1)) return recent
  const tag = bytes.toString('latin1', start, end - 1)
  if (tag.length <= TAG_KEPT_MAX) recentTags[slot] = tag
  return tag
}

const TAG_KEPT_MAX = 32

function isLatin1(text: string, bytes: Buffer, start: number, end: number): boolean {
  if (text.length !== end - start) return false
  for (let index = 0; index < text.length; index++) {
    if (text.charCodeAt(index) !== bytes[start + index]) return false
  }
  return true
}

export function decodeErrorFields(bytes: Buffer, start: number, end: number): ErrorFields {
  const fields = new Fields(bytes, start, end)
  const found = new Map<string, string>()
  for (let code = fields.uint8(); code !== 0; code = fields.uint8())
    found.set(String.fromCharCode(code), fields.cstring())
  return fields.finish(found)
}

export function decodeRowDescription(bytes: Buffer, start: number, end: number): ColumnDescription[] {
  const fields = new Fields(bytes, start, end)
  const count = fields.uint16()
  const list: ColumnDescription[] = []
  for (let index = 0; index < count; index++) {
    list.push({
      name: fields.cstring(),
      tableOid: fields.uint32(),
      column: fields.int16(),
      typeOid: fields.uint32(),
      typeSize: fields.int16(),
      typeModifier: fields.int32(),
      format: fields.int16(),
    })
  }
  return fields.finish(list)
}

export function decodeParameterDescription(bytes: Buffer, start: number, end: number): number[] {
  const fields = new Fields(bytes, start, end)
  const count = fields.uint16()
  const typeOids: number[] = []
  for (let index = 0; index < count; index++) typeOids.push(fields.uint32())
  return fields.finish(typeOids)
}

export function decodeStatus(bytes: Buffer, start: number, end: number): TransactionStatus {
  const status = new Fields(bytes, start, end)
  const code = status.uint8()
  if (code === STATUS_IDLE) return status.finish('idle')
  if (code === STATUS_TRANSACTION) return status.finish('transaction')
  if (code === STATUS_FAILED) return status.finish('failed')
  throw new ProtocolError(`ReadyForQuery has status ${describeType(code)}; expected I, T or E`)
}

function decodeAuthentication(bytes: Buffer, start: number, end: number): Authentication {
  const fields = new Fields(bytes, start, end)
  const code = fields.int32()
  switch (code) {
    case AUTHENTICATION.ok:
      return fields.finish({ method: 'ok' })
    case AUTHENTICATION.kerberos:
      return fields.finish({ method: 'kerberos' })
    case AUTHENTICATION.cleartext:
      return fields.finish({ method: 'cleartext' })
    case AUTHENTICATION.md5:
      return fields.finish({ method: 'md5', salt: fields.take(4) })
    case AUTHENTICATION.gss:
      return fields.finish({ method: 'gss' })
    case AUTHENTICATION.sspi:
      return fields.finish({ method: 'sspi' })
    case AUTHENTICATION.gssContinue:
      return fields.finish({ method: 'gssContinue', data: fields.take(fields.rest) })
    case AUTHENTICATION.saslContinue:
      return fields.finish({ method: 'saslContinue', data: fields.take(fields.rest) })
    case AUTHENTICATION.saslFinal:
      return fields.finish({ method: 'saslFinal', data: fields.take(fields.rest) })
    case AUTHENTICATION.sasl: {
      const mechanisms: string[] = []
      for (let name = fields.cstring(); name !== ''; name = fields.cstring()) mechanisms.push(name)
      return fields.finish({ method: 'sasl', mechanisms })
    }
    default:
      throw new ProtocolError(`the server requests authentication method ${code}, which is not supported`)
  }
}

/** Decodes any message. */
export function decodeBackend(type: number, bytes: Buffer, start: number, end: number): BackendMessage {
  const fields = new Fields(bytes, start, end)
  switch (type) {
    case BACKEND.authentication:
      return { kind: 'authentication', authentication: decodeAuthentication(bytes, start, end) }
    case BACKEND.backendKeyData:
      return fields.finish({ kind: 'backendKeyData', processId: fields.int32(), secret: fields.take(fields.rest) })
    case BACKEND.commandComplete:
      return { kind: 'commandComplete', tag: decodeCommandTag(bytes, start, end) }
    case BACKEND.dataRow:
      return { kind: 'dataRow', columns: decodeDataRow(bytes, start, end) }
    case BACKEND.error:
      return { kind: 'error', fields: decodeErrorFields(bytes, start, end) }
    case BACKEND.notice:
      return { kind: 'notice', fields: decodeErrorFields(bytes, start, end) }
    case BACKEND.copyIn:
      return decodeCopy('copyIn', fields)
    case BACKEND.copyOut:
      return decodeCopy('copyOut', fields)
    case BACKEND.copyBoth:
      return decodeCopy('copyBoth', fields)
    case BACKEND.copyData:
      return fields.finish({ kind: 'copyData', data: fields.take(fields.rest) })
    case BACKEND.copyDone:
      return fields.finish({ kind: 'copyDone' })
    case BACKEND.negotiateProtocolVersion: {
      const minor = fields.int32()
      const count = fields.int32()
      const unknown: string[] = []
      for (let index = 0; index < count; index++) unknown.push(fields.cstring())
      return fields.finish({ kind: 'negotiateProtocolVersion', minor, unknown })
    }
    case BACKEND.notification:
      return fields.finish({
        kind: 'notification',
        processId: fields.int32(),
        channel: fields.cstring(),
        payload: fields.cstring(),
      })
    case BACKEND.parameterDescription:
      return { kind: 'parameterDescription', typeOids: decodeParameterDescription(bytes, start, end) }
    case BACKEND.parameterStatus:
      return fields.finish({ kind: 'parameterStatus', name: fields.cstring(), value: fields.cstring() })
    case BACKEND.readyForQuery:
      return { kind: 'readyForQuery', status: decodeStatus(bytes, start, end) }
    case BACKEND.rowDescription:
      return { kind: 'rowDescription', fields: decodeRowDescription(bytes, start, end) }
    case BACKEND.bindComplete:
      return fields.finish({ kind: 'bindComplete' })
    case BACKEND.closeComplete:
      return fields.finish({ kind: 'closeComplete' })
    case BACKEND.emptyQuery:
      return fields.finish({ kind: 'emptyQuery' })
    case BACKEND.noData:
      return fields.finish({ kind: 'noData' })
    case BACKEND.parseComplete:
      return fields.finish({ kind: 'parseComplete' })
    case BACKEND.portalSuspended:
      return fields.finish({ kind: 'portalSuspended' })
    default:
      throw new ProtocolError(`the server sent ${describeType(type)}, which is not known`)
  }
}

function decodeCopy(kind: 'copyIn' | 'copyOut' | 'copyBoth', fields: Fields): BackendMessage {
  const format = fields.uint8()
  const count = fields.uint16()
  const columnFormats: number[] = []
  for (let index = 0; index < count; index++) columnFormats.push(fields.int16())
  return fields.finish({ kind, format, columnFormats })
}

/** Encodes a message of the server, for scripted servers. */
export function encodeBackend(writer: Writer, message: BackendMessage): void {
  const length = writer.begin(BACKEND[message.kind])
  switch (message.kind) {
    case 'authentication':
      writeAuthentication(writer, message.authentication)
      break
    case 'backendKeyData':
      writer.int32(message.processId)
      writer.bytes(message.secret)
      break
    case 'commandComplete':
      writer.cstring(message.tag)
      break
    case 'copyData':
      writer.bytes(message.data)
      break
    case 'dataRow':
      writer.int16(message.columns.length)
      for (const column of message.columns) {
        writer.int32(column === null ? -1 : column.length)
        if (column !== null) writer.bytes(column)
      }
      break
    case 'error':
    case 'notice':
      for (const [code, value] of message.fields) {
        writer.uint8(code.charCodeAt(0))
        writer.cstring(value)
      }
      writer.uint8(0)
      break
    case 'copyIn':
    case 'copyOut':
    case 'copyBoth':
      writer.uint8(message.format)
      writer.int16(message.columnFormats.length)
      for (const format of message.columnFormats) writer.int16(format)
      break
    case 'negotiateProtocolVersion':
      writer.int32(message.minor)
      writer.int32(message.unknown.length)
      for (const name of message.unknown) writer.cstring(name)
      break
    case 'notification':
      writer.int32(message.processId)
      writer.cstring(message.channel)
      writer.cstring(message.payload)
      break
    case 'parameterDescription':
      writer.int16(message.typeOids.length)
      for (const oid of message.typeOids) writer.int32(oid)
      break
    case 'parameterStatus':
      writer.cstring(message.name)
      writer.cstring(message.value)
      break
    case 'readyForQuery':
      writer.uint8(
        message.status === 'idle' ? STATUS_IDLE : message.status === 'transaction' ? STATUS_TRANSACTION : STATUS_FAILED,
      )
      break
    case 'rowDescription':
      writer.int16(message.fields.length)
      for (const field of message.fields) {
        writer.cstring(field.name)
        writer.int32(field.tableOid)
        writer.int16(field.column)
        writer.int32(field.typeOid)
        writer.int16(field.typeSize)
        writer.int32(field.typeModifier)
        writer.int16(field.format)
      }
      break
    case 'bindComplete':
    case 'closeComplete':
    case 'copyDone':
    case 'emptyQuery':
    case 'noData':
    case 'parseComplete':
    case 'portalSuspended':
      break
    default:
      message satisfies never
  }
  writer.end(length)
}

function writeAuthentication(writer: Writer, authentication: Authentication): void {
  writer.int32(AUTHENTICATION[authentication.method])
  switch (authentication.method) {
    case 'md5':
      writer.bytes(authentication.salt)
      break
    case 'sasl':
      for (const mechanism of authentication.mechanisms) writer.cstring(mechanism)
      writer.uint8(0)
      break
    case 'saslContinue':
    case 'saslFinal':
    case 'gssContinue':
      writer.bytes(authentication.data)
      break
    default:
  }
}

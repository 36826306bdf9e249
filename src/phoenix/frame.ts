/**
 * Messages of the channel protocol of Phoenix: JSON objects in version 1.0.0, arrays and binary frames in
 * version 2.0.0 of its serializer.
 */
import { GatewayError } from '../errors.ts'

/** The version of the serializer. */
export type SerializerVersion = '1.0.0' | '2.0.0'

/** A message of a client. */
export interface ClientFrame {
  readonly joinRef: string | null
  readonly ref: string | null
  readonly topic: string
  readonly event: string
  readonly payload: Readonly<Record<string, unknown>>
}

/** A message to a client. */
export interface ServerFrame {
  readonly joinRef: string | null
  readonly ref: string | null
  readonly topic: string
  readonly event: string
  /** JSON text. */
  readonly payload: string
}

/** Limit on the characters of a topic and of an event, which answers repeat. */
export const NAME_CHARACTERS_MAX = 255

/** Begins the topic of every channel. */
export const TOPIC_PREFIX = 'realtime:'

/** Limit on the characters of a reference. */
const REF_CHARACTERS_MAX = 64

/** Prints a message. */
export function printFrame({ joinRef, ref, topic, event, payload }: ServerFrame, version: SerializerVersion): string {
  const [head, join, of, name] = [ref, joinRef, topic, event].map(value => JSON.stringify(value))
  return version === '2.0.0'
    ? `[${join},${head},${of},${name},${payload}]`
    : `{"topic":${of},"event":${name},"payload":${payload},"ref":${head},"join_ref":${join}}`
}

/**
 * Parses a message.
 * @throws {GatewayError} `PARSE_ERROR`
 */
export function parseFrame(bytes: Buffer, form: 'text' | 'binary', version: SerializerVersion): ClientFrame {
  if (form === 'binary') {
    if (version === '2.0.0') return parseBinary(bytes)
    throw malformed('a binary message requires vsn=2.0.0')
  }
  const value = parseJson(bytes.toString())
  if (version === '2.0.0') {
    if (!Array.isArray(value) || value.length !== 5)
      throw malformed('a message must be [join_ref, ref, topic, event, payload]')
    const [joinRef, ref, topic, event, payload] = value as unknown[]
    return frameOf({ joinRef, ref, topic, event, payload })
  }
  if (!isRecord(value)) throw malformed('a message must be an object with topic, event, payload and ref')
  const { join_ref: joinRef, ref, topic, event, payload } = value
  return frameOf({ joinRef, ref, topic, event, payload })
}

function frameOf(parts: Readonly<Record<keyof ClientFrame, unknown>>): ClientFrame {
  const { topic, event, payload = {} } = parts
  if (!isName(topic)) throw malformed('topic must be a string of at most 255 characters')
  if (!isName(event)) throw malformed('event must be a string of at most 255 characters')
  if (!isRecord(payload)) throw malformed('payload must be an object')
  return { joinRef: refOf(parts.joinRef, 'join_ref'), ref: refOf(parts.ref, 'ref'), topic, event, payload }
}

/** The kind of a binary message: a broadcast of a client. */
const BROADCAST_PUSH = 3

/** The encoding of the payload of a broadcast. */
const JSON_ENCODING = 1

const HEADER_BYTES = 7

/** A broadcast: the lengths of its names, the names, and the payload. */
function parseBinary(bytes: Buffer): ClientFrame {
  if (bytes.length < HEADER_BYTES || bytes[0] !== BROADCAST_PUSH) throw malformed('unknown kind of binary message')
  const [, ...lengths] = bytes.subarray(0, HEADER_BYTES - 1)
  const encoding = bytes[HEADER_BYTES - 1]
  let at = HEADER_BYTES
  const texts = lengths.map(length => {
    const text = bytes.toString('utf8', at, at + length)
    at += length
    return text
  })
  if (at > bytes.length) throw malformed('a binary message is shorter than its lengths')
  if (encoding !== JSON_ENCODING)
    throw malformed('the payload of a broadcast must be JSON; binary payloads are not supported')
  const [joinRef = '', ref = '', topic = '', event = ''] = texts
  const payload = { type: 'broadcast', event, payload: parseJson(bytes.toString('utf8', at)) }
  return frameOf({ joinRef: joinRef || null, ref: ref || null, topic, event: 'broadcast', payload })
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw malformed('a message must be JSON')
  }
}

function refOf(value: unknown, name: string): string | null {
  if (value === undefined || value === null) return null
  if (typeof value === 'string' && value.length <= REF_CHARACTERS_MAX) return value
  throw malformed(`${name} must be a string of at most ${REF_CHARACTERS_MAX} characters, or null`)
}

function isName(value: unknown): value is string {
  return typeof value === 'string' && value.length <= NAME_CHARACTERS_MAX
}

/** Reports whether a value is a JSON object. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function malformed(message: string): GatewayError {
  return new GatewayError('PARSE_ERROR', message)
}

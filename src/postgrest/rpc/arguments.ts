/** Reads the arguments of a call from the query string or the body. */
import type { Incoming } from '../../exchange.ts'
import { mediaTypeOf } from '../../rest/body/body.ts'
import { parseListItems } from '../../rest/parameters/list-values.ts'
import { toArrayLiteral } from '../../text/array-text.ts'
import { decodeLenient } from '../decode.ts'
import { invalidBody } from '../errors.ts'
import { assertJson, keysOf, readPayload, rowsOf } from '../payload.ts'
import type { RawDoorRequest } from '../request.ts'
import { isOnlyArgument } from './resolve.ts'

/** The arguments of a call. */
export type GivenArguments =
  /** Strings by name. A name can occur several times. */
  | { readonly kind: 'texts'; readonly texts: ReadonlyMap<string, readonly string[]> }
  /** A JSON object. `whole`: the body, of which it can be the first object. */
  | { readonly kind: 'json'; readonly keys: readonly string[]; readonly bytes: Buffer; readonly whole: Buffer }
  /** A body that is the only argument. */
  | { readonly kind: 'whole'; readonly bytes: Buffer; readonly type: string }

/** The arguments of a request, and the media type of its body; null for a request without one. */
export interface ReadArguments {
  readonly given: GivenArguments
  readonly bodyType: string | null
}

const JSON_TYPE = 'application/json'
const FORM_TYPE = 'application/x-www-form-urlencoded'

/**
 * Reads the arguments.
 * @throws {PostgrestError} `PGRST102` for a body that does not parse or has another type.
 */
export function readCallArguments({ incoming, parameters }: RawDoorRequest): ReadArguments {
  if (incoming.method !== 'POST') return { given: texts(parameters.shared.arguments), bodyType: null }
  const bodyType = mediaTypeOf(incoming.headers).type || JSON_TYPE
  const { body } = incoming
  if (isOnlyArgument(bodyType)) return { given: { kind: 'whole', bytes: body, type: bodyType }, bodyType }
  if (bodyType === FORM_TYPE) return { given: texts(formPairs(body.toString())), bodyType }
  if (isBlank(body)) return { given: { kind: 'json', keys: [], bytes: EMPTY, whole: EMPTY }, bodyType }
  return { given: jsonOf(incoming, parameters.shared.columns), bodyType }
}

const EMPTY = Buffer.from('{}')

/** The first of several objects has the arguments. */
function jsonOf(incoming: Incoming, columns: readonly string[] | null): GivenArguments {
  const { type } = mediaTypeOf(incoming.headers)
  const first = firstCharacter(incoming.body)
  const isJson = type === '' || type === JSON_TYPE
  // Only a function with one unnamed argument takes a body that is not an object.
  if (isJson && first !== '{' && first !== '[') {
    assertJson(incoming.body)
    return { kind: 'whole', bytes: incoming.body, type: JSON_TYPE }
  }
  const payload = readPayload(incoming, Number.POSITIVE_INFINITY)
  const [row] = rowsOf(payload, 1)
  const isObject = payload.kind === 'object' || payload.items[0]?.type === 'object'
  if (row === undefined || !isObject) return { kind: 'whole', bytes: incoming.body, type: JSON_TYPE }
  const keys = payload.kind === 'object' ? keysOf(payload) : (payload.items[0]?.keys ?? [])
  return { kind: 'json', keys: columns ?? keys, bytes: row, whole: incoming.body }
}

/** The first character that is not a blank, among the first 64. */
function firstCharacter(body: Buffer): string | undefined {
  const [first] = body
  if (first === OPEN_BRACE) return '{'
  return body.toString('latin1', 0, 64).trimStart()[0]
}

const OPEN_BRACE = 0x7b

function isBlank(body: Buffer): boolean {
  const [first] = body
  // Mostly "{" or another character of ASCII, and then the body need not be decoded.
  if (first !== undefined && first > 0x20 && first < 0x7f) return false
  return body.toString().trim() === ''
}

function texts(pairs: readonly (readonly [name: string, value: string])[]): GivenArguments {
  const byName = new Map<string, readonly string[]>()
  for (const [name, value] of pairs) byName.set(name, [...(byName.get(name) ?? []), value])
  return { kind: 'texts', texts: byName }
}

function formPairs(text: string): readonly (readonly [string, string])[] {
  return text
    .split('&')
    .filter(pair => pair !== '')
    .map(pair => {
      const equals = pair.indexOf('=')
      return equals < 0
        ? [decodeLenient(pair), '']
        : [decodeLenient(pair.slice(0, equals)), decodeLenient(pair.slice(equals + 1))]
    })
}

/** The keys of the arguments. */
export function givenKeys(given: GivenArguments): readonly string[] {
  if (given.kind === 'whole') return []
  return given.kind === 'json' ? given.keys : [...given.texts.keys()]
}

/** The text of an argument that was given several times: the last one, or an array for a variadic input. */
export function argumentText(values: readonly string[], isVariadic: boolean): string {
  const last = values.at(-1) ?? ''
  if (!isVariadic) return last
  if (values.length === 1 && last.startsWith('{') && last.endsWith('}')) return last
  return toArrayLiteral(values.length === 1 && last.startsWith('(') ? parseListItems(last, refuseList) : values)
}

function refuseList(message: string): never {
  throw invalidBody(`a list ${message}`)
}

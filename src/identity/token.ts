/**
 * The parts of a token, parsed strictly, before anything in it is trusted (RFC 7515, 3.1). Of the header
 * only `alg`, `kid` and `typ` are used: keys are never taken from a token (`jku`, `x5u`, `jwk`, `x5c`).
 */
import { isArray, isObject, type Json, JsonError, type JsonObject, parseJson } from '../json/text/values.ts'
import { refusedToken } from './refused-token.ts'

/** A parsed but unverified token. */
export interface ParsedToken {
  readonly compact: string
  readonly alg: string
  readonly kid: string | null
  readonly typ: string | null
  /** The issuer, not verified: it selects who verifies the token. Null if it is missing or not a text. */
  readonly iss: string | null
  /** The claims, not verified. Throws UNAUTHORIZED if the payload is not an object. */
  claims(): JsonObject
}

/** Longer than real tokens, and shorter than the headers that Node accepts. */
export const TOKEN_CHARACTERS_MAX = 8_192

const COMPACT = /^([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.[A-Za-z0-9_-]+$/

/** Parses a compact token. Throws UNAUTHORIZED. */
export function parseToken(compact: string): ParsedToken {
  const [, headerPart, payloadPart] = COMPACT.exec(compact) ?? []
  if (headerPart === undefined || payloadPart === undefined) {
    throw refusedToken('it does not consist of three base64url parts separated by dots')
  }
  const header = decode(headerPart, 'header')
  if (!isObject(header)) throw refusedToken('it is malformed: its header is not a JSON object')
  // `crit` lists extensions that a verifier must understand; the gateway supports none (RFC 7515, 4.1.11;
  // RFC 7797, 7).
  if (header.has('crit')) throw refusedToken('its header has critical extensions (crit)')
  const alg = header.get('alg')
  if (typeof alg !== 'string') throw refusedToken('it is malformed: its header has no algorithm (alg)')
  const payload = attempt(() => decode(payloadPart, 'payload'))
  const iss = 'value' in payload && isObject(payload.value) ? payload.value.get('iss') : undefined
  return {
    ...{ compact, alg, kid: headerText(header, 'kid'), typ: headerText(header, 'typ') },
    iss: typeof iss === 'string' ? iss : null,
    claims() {
      if ('error' in payload) throw payload.error
      if (!isObject(payload.value)) throw refusedToken('its payload is not a JSON object')
      return payload.value
    },
  }
}

function headerText(header: JsonObject, name: string): string | null {
  const value = header.get(name)
  if (value === undefined) return null
  if (typeof value !== 'string') throw refusedToken(`it is malformed: ${name} in its header is not a string`)
  return value
}

function decode(part: string, name: 'header' | 'payload'): Json {
  const bytes = Buffer.from(part, 'base64url')
  try {
    return parseJson(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes))
  } catch (error) {
    throw refusedToken(error instanceof JsonError ? `its ${name} ${error.message}` : `its ${name} is not UTF-8`)
  }
}

type Attempt = { readonly value: Json } | { readonly error: unknown }

function attempt(read: () => Json): Attempt {
  try {
    return { value: read() }
  } catch (error) {
    return { error }
  }
}

/** The values of `aud`, which is one text or an array of them (RFC 7519, 4.1.3). */
export function audiencesOf(claims: JsonObject): readonly (Json | undefined)[] {
  const audience = claims.get('aud')
  return isArray(audience) ? audience : [audience]
}

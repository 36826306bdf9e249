/** Content negotiation: the media type of a response from the `Accept` header (RFC 9110, 12.5.1). */
import { noMediaType } from './errors.ts'

/** The form of a response. */
export interface ResponseMediaType {
  /** `object` is a single JSON object instead of an array. */
  readonly form: 'array' | 'object' | 'csv'
  /** True if fields that are null are left out. */
  readonly stripsNulls: boolean
  /** The value of `Content-Type`. */
  readonly contentType: string
}

const UTF_8 = '; charset=utf-8'
const OBJECT = 'application/vnd.pgrst.object+json'
const ARRAY = 'application/vnd.pgrst.array+json'
const STRIPPED = ';nulls=stripped'

const JSON_ARRAY: ResponseMediaType = { form: 'array', stripsNulls: false, contentType: `application/json${UTF_8}` }
const CSV: ResponseMediaType = { form: 'csv', stripsNulls: false, contentType: `text/csv${UTF_8}` }

/** Limit on the media types of one header. */
const TYPES_MAX = 64

/**
 * The first acceptable media type.
 * @throws {PostgrestError} `PGRST107` if there is none.
 */
export function negotiateMediaType(accept: string | undefined): ResponseMediaType {
  return acceptable(accept, mediaTypeOf) ?? JSON_ARRAY
}

/**
 * The first acceptable type of those that `find` knows; null without a header.
 * @throws {PostgrestError} `PGRST107` if there is none.
 */
export function acceptable<T>(accept: string | undefined, find: (type: AcceptedType) => T | null): T | null {
  if (accept === undefined || accept.trim() === '') return null
  const accepted = parseAccept(accept)
  for (const type of accepted) {
    const found = find(type)
    if (found !== null) return found
  }
  throw noMediaType(accepted.map(printType))
}

/** A media type of the header. */
export interface AcceptedType {
  readonly name: string
  readonly parameters: readonly (readonly [name: string, value: string])[]
}

/** The media types of the header, the most wanted first. */
function parseAccept(accept: string): readonly AcceptedType[] {
  return accept
    .split(',')
    .slice(0, TYPES_MAX)
    .map(item => {
      const [name = '', ...rest] = item.split(';').map(part => part.trim())
      const parameters = rest.map(part => {
        const [key = '', value = ''] = part.split('=', 2)
        return [key.trim().toLowerCase(), value.trim().replace(/^"(.*)"$/, '$1')] as const
      })
      const quality = Number(parameters.find(([key]) => key === 'q')?.[1] ?? '1')
      return { name: name.toLowerCase(), parameters: parameters.filter(([key]) => key !== 'q'), quality }
    })
    .filter(({ name }) => name !== '')
    .toSorted((a, b) => (b.quality || 0) - (a.quality || 0))
}

function mediaTypeOf({ name, parameters }: AcceptedType): ResponseMediaType | null {
  const stripsNulls = parameters.some(([key, value]) => key === 'nulls' && value === 'stripped')
  switch (name) {
    case '*/*':
    case 'application/json':
      return JSON_ARRAY
    case 'text/csv':
      return CSV
    case OBJECT:
    case 'application/vnd.pgrst.object':
      return { form: 'object', stripsNulls, contentType: `${OBJECT}${stripsNulls ? STRIPPED : ''}${UTF_8}` }
    case ARRAY:
    case 'application/vnd.pgrst.array':
      return stripsNulls ? { form: 'array', stripsNulls, contentType: `${ARRAY}${STRIPPED}${UTF_8}` } : JSON_ARRAY
    default:
      return null
  }
}

function printType({ name, parameters }: AcceptedType): string {
  return [name, ...parameters.map(([key, value]) => `${key}=${value}`)].join(';')
}

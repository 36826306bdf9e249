/** Content negotiation: the media type of a response from the `Accept` header (RFC 9110, 12.5.1). */
import type { MediaHandler } from '../catalog/model.ts'
import type { PlanRequest } from '../compile/derive.ts'
import { noMediaType } from './errors.ts'
import { createKept, type Keep, keptByText } from './kept.ts'

/** The form of a response. */
export interface ResponseMediaType {
  /** `object` is a single JSON object instead of an array; `raw` is one value of the database. */
  readonly form: 'array' | 'object' | 'csv' | 'raw'
  /** True if fields that are null are left out. */
  readonly stripsNulls: boolean
  /** The value of `Content-Type`. */
  readonly contentType: string
  /** The aggregate that makes the value; omitted for a value that a function returns. */
  readonly handler?: MediaHandler
  /** The form of the execution plan, if it is requested instead of the result. */
  readonly plan?: PlanForm
}

/** The form of an execution plan. */
export type PlanForm = Pick<PlanRequest, 'format' | 'options'>

/** The media types that a resource has in addition to those that all have. */
export interface MediaRules {
  readonly planEnabled: boolean
  /** The form that the database defines for a media type; null for none. */
  readonly custom: (name: string) => CustomForm | null
  /** The results of these rules, which are the same for all requests of the resource. */
  readonly kept?: Keep<ResponseMediaType>
}

/** The rules of resources for which the database defines no media type. */
export function plainRules(planEnabled: boolean): MediaRules {
  return planEnabled ? PLAIN_WITH_PLAN : PLAIN
}

const noForm = () => null
const PLAIN: MediaRules = { planEnabled: false, custom: noForm, kept: createKept() }
const PLAIN_WITH_PLAN: MediaRules = { planEnabled: true, custom: noForm, kept: createKept() }

/** A media type that the database defines. */
export interface CustomForm {
  /** The name of the media type, or `ANY_TYPE`. */
  readonly mediaType: string
  readonly handler?: MediaHandler
}

/** The media type of a value whose type a request chooses, or the value itself with `response.headers`. */
export const ANY_TYPE = '*/*'

const UTF_8 = '; charset=utf-8'
const OBJECT = 'application/vnd.pgrst.object+json'
const ARRAY = 'application/vnd.pgrst.array+json'
const STRIPPED = ';nulls=stripped'

const PLAN = 'application/vnd.pgrst.plan'

const JSON_ARRAY: ResponseMediaType = { form: 'array', stripsNulls: false, contentType: `application/json${UTF_8}` }
const CSV: ResponseMediaType = { form: 'csv', stripsNulls: false, contentType: `text/csv${UTF_8}` }

/** Limit on the media types of one header. */
const TYPES_MAX = 64

/**
 * The first acceptable media type. Without a header, any is acceptable.
 * @throws {PostgrestError} `PGRST107` if there is none.
 */
export function negotiateMediaType(accept: string | undefined, rules: MediaRules): ResponseMediaType {
  const { kept } = rules
  if (kept !== undefined) return kept(accept ?? '', () => negotiate(accept, rules))
  return negotiate(accept, rules)
}

function negotiate(accept: string | undefined, rules: MediaRules): ResponseMediaType {
  const find = (type: AcceptedType) => mediaTypeOf(type, rules)
  return acceptable(accept, find) ?? find({ name: ANY_TYPE, parameters: [] }) ?? JSON_ARRAY
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

/** The media types of the header, in order of preference. */
const parseAccept = keptByText((accept): readonly AcceptedType[] =>
  splitOutside(accept, ',')
    .slice(0, TYPES_MAX)
    .map(item => {
      const [name = '', ...rest] = splitOutside(item, ';').map(part => part.trim())
      const parameters = rest.map(part => {
        const [key = '', ...values] = part.split('=')
        const value = values.join('=')
        return [key.trim().toLowerCase(), value.trim().replace(/^"(.*)"$/, '$1')] as const
      })
      const quality = Number(parameters.find(([key]) => key === 'q')?.[1] ?? '1')
      return { name: name.toLowerCase(), parameters: parameters.filter(([key]) => key !== 'q'), quality }
    })
    .filter(({ name }) => name !== '')
    .toSorted((a, b) => (b.quality || 0) - (a.quality || 0)),
)

/** The parts of a header between separators that are not within a quoted string (RFC 9110, 5.6.4). */
function splitOutside(text: string, separator: ',' | ';'): readonly string[] {
  if (!text.includes('"')) return text.split(separator)
  const parts: string[] = []
  let start = 0
  let isQuoted = false
  for (let at = 0; at < text.length; at++) {
    if (text[at] === '"') isQuoted = !isQuoted
    if (text[at] !== separator || isQuoted) continue
    parts.push(text.slice(start, at))
    start = at + 1
  }
  return [...parts, text.slice(start)]
}

function mediaTypeOf(type: AcceptedType, rules: MediaRules): ResponseMediaType | null {
  const { name } = type
  if (name === PLAN || name === `${PLAN}+json` || name === `${PLAN}+text`) return planOf(type, rules)
  return vendoredType(type) ?? customType(name, rules) ?? commonType(name)
}

function commonType(name: string): ResponseMediaType | null {
  switch (name) {
    case ANY_TYPE:
    case 'application/json':
      return JSON_ARRAY
    case 'text/csv':
      return CSV
    default:
      return null
  }
}

/** PostgREST's own media types, which the database cannot redefine. */
function vendoredType({ name, parameters }: AcceptedType): ResponseMediaType | null {
  const stripsNulls = parameters.some(([key, value]) => key === 'nulls' && value === 'stripped')
  switch (name) {
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

/** Media types of text that the database defines, and whose characters are UTF-8. */
const TEXT_TYPES: ReadonlySet<string> = new Set([
  ...['application/json', 'application/geo+json', 'application/openapi+json', 'application/x-www-form-urlencoded'],
  ...['text/csv', 'text/plain', 'text/xml'],
])

function customType(name: string, { custom }: MediaRules): ResponseMediaType | null {
  const found = custom(name)
  if (found === null) return null
  const { mediaType } = found
  const sent = mediaType === ANY_TYPE ? 'application/octet-stream' : mediaType
  const contentType = `${sent}${TEXT_TYPES.has(sent) ? UTF_8 : ''}`
  return { form: 'raw', stripsNulls: false, contentType, ...(found.handler && { handler: found.handler }) }
}

const PLAN_OPTIONS = ['analyze', 'verbose', 'settings', 'buffers', 'wal'] as const

/** The media type of an execution plan: `for` is that of the result, `options` are those of `EXPLAIN`. */
function planOf({ name, parameters }: AcceptedType, rules: MediaRules): ResponseMediaType | null {
  if (!rules.planEnabled) return null
  const parameter = (key: string) => parameters.find(([given]) => given === key)?.[1]
  const [of] = parseAccept(parameter('for') ?? 'application/json')
  if (of === undefined || of.name.startsWith(PLAN)) return null
  const result = mediaTypeOf(of, rules)
  if (result === null) return null
  const wanted = (parameter('options') ?? '').split('|')
  const options = PLAN_OPTIONS.filter(option => wanted.includes(option))
  return withPlan(result, { format: name.endsWith('+json') ? 'json' : 'text', options })
}

/** The media type of the plan of a request with this one, or of another form of its plan. */
export function withPlan(result: ResponseMediaType, plan: PlanForm): ResponseMediaType {
  const of = result.plan === undefined ? result.contentType.replace(UTF_8, '') : forOf(result.contentType)
  const options = plan.options.length === 0 ? '' : `; options=${plan.options.join('|')}`
  return { ...result, contentType: `${PLAN}+${plan.format}; for="${of}"${options}${UTF_8}`, plan }
}

function forOf(contentType: string): string {
  return /for="([^"]*)"/.exec(contentType)?.[1] ?? 'application/json'
}

function printType({ name, parameters }: AcceptedType): string {
  return [name, ...parameters.map(([key, value]) => `${key}=${value}`)].join(';')
}

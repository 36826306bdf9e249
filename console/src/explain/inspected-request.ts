/** The request of a text that a person pastes: a request line, an address, a curl command, or a query. */
import { type Json, parseJson } from '../json.ts'

/** The body of `POST /api/_inspect`. */
export type InspectBody =
  | { readonly request: string; readonly body?: Json; readonly content_type?: string }
  | { readonly query: string; readonly parameters?: Json }

/** Headers by their name in lower case. */
export type PastedHeaders = Readonly<Record<string, string>>

/** A request as it was pasted. */
export interface PastedRequest {
  readonly method: string
  /** From `/api`. */
  readonly path: string
  /** The query string with its `?`. */
  readonly search: string
  readonly headers: PastedHeaders
  /** The text of the body; null without one. */
  readonly text: string | null
  /** The value of the body; undefined if there is none, or if it is not JSON. */
  readonly body: Json | undefined
}

/** `base` is the gateway's base URL, whose path does not belong to the request. Null for a query. */
export function pastedRequest(text: string, base: URL): PastedRequest | null {
  const trimmed = text.trim()
  const address = /https?:\/\/[^\s'"]+/.exec(trimmed)?.[0]
  const line = /^(?:[A-Za-z]+\s+)?(\/[^\n]*)/
    .exec(trimmed)?.[1]
    ?.replace(/\s+HTTP\/[\d.]+\s*$/, '')
    .trimEnd()
  const target = line ?? address
  if (target === undefined || !URL.canParse(target, base)) return null
  const { pathname, search } = new URL(target, base)
  const path = pathname.startsWith(base.pathname) ? pathname.slice(base.pathname.length - 1) : pathname
  const json = bodyIn(trimmed)
  return {
    method: methodOf(trimmed, json),
    path,
    search,
    headers: headersIn(trimmed),
    text: json,
    body: parsedOf(json),
  }
}

export function inspectBodyOf(text: string, base: URL): InspectBody {
  const pasted = pastedRequest(text, base)
  if (pasted === null) return { query: text.trim() }
  const { method, path, search, headers, body } = pasted
  const query = path === '/api/_query' ? queryIn(body) : null
  const request = `${method} ${path}${search}`
  if (query !== null) return query
  if (method === 'GET' || body === undefined) return { request }
  const type = headers['content-type']
  return type === undefined || type === 'application/json' ? { request, body } : { request, body, content_type: type }
}

/** Headers of the inspection that apply to the inspected request (docs/reference/inspect.md#the-body). */
const APPLIED = ['prefer', 'if-match', 'x-upsert', 'x-on-conflict', 'x-max-affected']

export function inspectHeadersOf(text: string, base: URL): PastedHeaders {
  const { headers = {} } = pastedRequest(text, base) ?? {}
  return Object.fromEntries(Object.entries(headers).filter(([name]) => APPLIED.includes(name)))
}

function methodOf(text: string, body: string | null): string {
  const named = /^([A-Za-z]+)\s+\//.exec(text)?.[1] ?? /(?:-X|--request)\s+'?([A-Za-z]+)/.exec(text)?.[1]
  return (named ?? (body === null ? 'GET' : 'POST')).toUpperCase()
}

/** Of `-H '…'`, or of the lines between the first one and the empty line of an HTTP request. */
function headersIn(text: string): PastedHeaders {
  const options = [...text.matchAll(/(?:-H|--header)\s+(?:'([^']*)'|"([^"]*)")/g)].map(([, one, other]) => one ?? other)
  const lines = (text.split(/\n\s*\n/)[0] ?? '').split('\n').slice(1)
  const headers = [...options, ...lines].flatMap(header => {
    const [, name, value = ''] = /^([A-Za-z-]+):\s*(.*?)\s*$/.exec(header ?? '') ?? []
    return name === undefined ? [] : [[name.toLowerCase(), value] as const]
  })
  return Object.fromEntries(headers)
}

/** The text of `-d '…'`, or of the last lines of an HTTP request; null without any. */
function bodyIn(text: string): string | null {
  const quoted = /(?:-d|--data|--data-raw|--data-binary|--json)\s+'((?:[^']|'\\'')*)'/.exec(text)?.[1]
  return quoted?.replaceAll("'\\''", "'") ?? /\n\s*\n([\s\S]+)$/.exec(text)?.[1] ?? null
}

function parsedOf(json: string | null): Json | undefined {
  if (json === null) return undefined
  try {
    return parseJson(json)
  } catch {
    return undefined
  }
}

function queryIn(body: Json | undefined): InspectBody | null {
  if (body === undefined || body === null || typeof body !== 'object' || !('query' in body)) return null
  const { query } = body
  if (typeof query !== 'string') return null
  const parameters = 'parameters' in body ? body.parameters : undefined
  return parameters === undefined ? { query } : { query, parameters }
}

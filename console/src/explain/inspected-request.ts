/** The request of a text that a person pastes: a request line, an address, a curl command, or a query. */

/** The body of `POST /api/_inspect`. */
export type InspectBody =
  | { readonly request: string; readonly body?: unknown }
  | { readonly query: string; readonly parameters?: unknown }

/** `base` is the gateway's base URL, whose path does not belong to the request. */
export function inspectBodyOf(text: string, base: URL): InspectBody {
  const trimmed = text.trim()
  const address = /https?:\/\/[^\s'"]+/.exec(trimmed)?.[0]
  const line = /^(?:[A-Za-z]+\s+)?(\/[^\n]*)/
    .exec(trimmed)?.[1]
    ?.replace(/\s+HTTP\/[\d.]+\s*$/, '')
    .trimEnd()
  const target = address ?? line
  if (target === undefined || !URL.canParse(target, base)) return { query: trimmed }
  const { pathname, search } = new URL(target, base)
  const path = pathname.startsWith(base.pathname) ? pathname.slice(base.pathname.length - 1) : pathname
  const body = bodyIn(trimmed)
  const query = path === '/api/_query' ? queryIn(body) : null
  const method = methodOf(trimmed, body)
  const request = `${method} ${path}${search}`
  return query ?? (method === 'GET' || body === undefined ? { request } : { request, body })
}

function methodOf(text: string, body: unknown): string {
  const named = /^([A-Za-z]+)\s+\//.exec(text)?.[1] ?? /(?:-X|--request)\s+'?([A-Za-z]+)/.exec(text)?.[1]
  return (named ?? (body === undefined ? 'GET' : 'POST')).toUpperCase()
}

/** The JSON of `-d '…'`, or of the last lines of an HTTP request; undefined without any. */
function bodyIn(text: string): unknown {
  const quoted = /(?:-d|--data|--data-raw)\s+'((?:[^']|'\\'')*)'/.exec(text)?.[1]?.replaceAll("'\\''", "'")
  const json = quoted ?? /\n\s*\n([\s\S]+)$/.exec(text)?.[1]
  if (json === undefined) return undefined
  try {
    return JSON.parse(json)
  } catch {
    return undefined
  }
}

function queryIn(body: unknown): InspectBody | null {
  if (body === null || typeof body !== 'object' || !('query' in body) || typeof body.query !== 'string') return null
  return 'parameters' in body ? { query: body.query, parameters: body.parameters } : { query: body.query }
}

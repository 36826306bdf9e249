/**
 * The address of a screen, after the `#` of the URL: `#/explore/orders?status=paid&sort=-id`. The query of a
 * table is the query string of the API, so an address can be read, bookmarked, shared, and sent with curl.
 */
export const SCREENS = ['explore', 'query', 'explain', 'live', 'checks', 'webhooks', 'operations'] as const
/** `graph` is a part of *Explore* that has its own address. */
export type Screen = (typeof SCREENS)[number] | 'graph'

/** The screens of operators, which need the admin token instead of a caller's token. */
export const OPERATOR_SCREENS: readonly Screen[] = ['checks', 'webhooks', 'operations']

export interface Route {
  readonly screen: Screen
  /** A table; null on screens without one. */
  readonly subject: string | null
  readonly query: URLSearchParams
}

/** Parses the part after `#`. Anything unknown is the first screen. */
export function parseRoute(hash: string): Route {
  const [path = '', query = ''] = splitOnce(hash.replace(/^#/, ''), '?')
  const [, name = '', subject = ''] = path.split('/')
  const screen = ([...SCREENS, 'graph'] as const).find(one => one === name)
  return screen === undefined
    ? { screen: SCREENS[0], subject: null, query: new URLSearchParams() }
    : { screen, subject: subject === '' ? null : decoded(subject), query: new URLSearchParams(query) }
}

/** The inverse of `parseRoute`, for the `href` of a link. */
export function printRoute(screen: Screen, subject: string | null = null, query = new URLSearchParams()): string {
  const path = subject === null ? screen : `${screen}/${encodeURIComponent(subject)}`
  return query.size === 0 ? `#/${path}` : `#/${path}?${query}`
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

function splitOnce(text: string, sign: string): readonly [string, string?] {
  const at = text.indexOf(sign)
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)]
}

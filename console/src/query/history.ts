/** The queries that were sent in this tab. They are deleted when the caller changes. */
const KEY = 'svc-console-queries'
const QUERIES_MAX = 50

export function sentQueries(): readonly string[] {
  try {
    const kept: unknown = JSON.parse(sessionStorage.getItem(KEY) ?? '[]')
    return Array.isArray(kept) ? kept.filter(one => typeof one === 'string').slice(0, QUERIES_MAX) : []
  } catch {
    return []
  }
}

/** Adds a query as the newest one. */
export function keepQuery(text: string): void {
  const queries = [text, ...sentQueries().filter(one => one !== text)].slice(0, QUERIES_MAX)
  try {
    sessionStorage.setItem(KEY, JSON.stringify(queries))
  } catch {
    // The storage is full or disabled; the history is a convenience.
  }
}

export function forgetQueries(): void {
  sessionStorage.removeItem(KEY)
}

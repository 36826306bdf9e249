/** The names of time zones that a request can choose. */

/** Limit on the names whose validity is cached. */
const KEPT_MAX = 1_000

const known = new Map<string, boolean>()

/** True for a name of the IANA database, such as `Europe/Vienna`. */
export function isTimezone(name: string): boolean {
  const found = known.get(name)
  if (found !== undefined) return found
  const isValid = /^[A-Za-z][A-Za-z0-9_+/-]{0,63}$/.test(name) && isKnownToRuntime(name)
  if (known.size < KEPT_MAX) known.set(name, isValid)
  return isValid
}

function isKnownToRuntime(name: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: name })
    return true
  } catch {
    return false
  }
}

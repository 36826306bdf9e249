/**
 * The location of a value in a token's claims: `tenant_id`, `https://example.com/tenant`,
 * `app_metadata.tenant_id`, `realm_access.roles[0]`, `$.resource_access["my.api"].roles`
 * (docs/guides/authentication.md#claims).
 */
import type { ClaimPath } from './config.ts'

const CHARACTERS_MAX = 256
const STEPS_MAX = 16

/** `scheme://…` or `urn:…`: a name that contains dots, never a path. */
const URI = /^(?:[a-z][a-z0-9+.-]*:\/\/|urn:)/i

/** `step = ( [ "." ] name ) / "[" index "]" / "[" JSON string "]"` */
const STEP = /\.?([^.[\]"]+)|\[(\d{1,4})\]|\[("(?:[^"\\]|\\.)*")\]/y

/** Parses a path; null if the text is not one. */
export function parseClaimPath(text: string): ClaimPath | null {
  if (text === '' || text.length > CHARACTERS_MAX || text.includes('\0')) return null
  if (URI.test(text)) return { text, steps: null }
  const steps = parseSteps(text.startsWith('$.') ? text.slice(2) : text.startsWith('$[') ? text.slice(1) : text)
  return steps === null ? null : { text, steps: Object.freeze(steps) }
}

function parseSteps(path: string): (string | number)[] | null {
  const steps: (string | number)[] = []
  for (let at = 0; at < path.length; at = STEP.lastIndex) {
    STEP.lastIndex = at
    const [step, name, index, quoted] = STEP.exec(path) ?? []
    // A dot must separate two steps and cannot appear elsewhere.
    if (step === undefined || (name !== undefined && step.startsWith('.') !== at > 0)) return null
    const key = quoted === undefined ? name : parseQuoted(quoted)
    if (key === null || steps.length === STEPS_MAX) return null
    steps.push(index === undefined ? (key ?? '') : Number(index))
  }
  return typeof steps[0] === 'string' ? steps : null
}

function parseQuoted(quoted: string): string | null {
  try {
    return JSON.parse(quoted) as string
  } catch {
    return null
  }
}

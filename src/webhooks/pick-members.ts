/**
 * Picks members of a JSON object without parsing it, so that the digits of numbers and the order of keys are
 * preserved.
 */

/**
 * Picks the members named in `wanted`. `json` must be an object as PostgreSQL prints it; it is not validated.
 */
export function pickMembers(json: string, wanted: ReadonlySet<string>): string {
  const picked: string[] = []
  let at = json.indexOf('{') + 1
  while (at < json.length) {
    const start = skipSpace(json, at)
    if (json[start] !== '"') break
    const keyEnd = endOfString(json, start)
    const end = endOfValue(json, keyEnd)
    if (wanted.has(JSON.parse(json.slice(start, keyEnd)) as string)) picked.push(json.slice(start, end))
    at = end + 1
  }
  return `{${picked.join(',')}}`
}

function skipSpace(json: string, from: number): number {
  let at = from
  while (json.charCodeAt(at) <= 0x20) at += 1
  return at
}

/** The position after the closing quote of the string that begins at `start`. */
function endOfString(json: string, start: number): number {
  let at = start + 1
  while (at < json.length && json[at] !== '"') at += json[at] === '\\' ? 2 : 1
  return at + 1
}

/** The position of the comma or brace that ends the member. */
function endOfValue(json: string, from: number): number {
  let depth = 0
  let at = from
  while (at < json.length) {
    const character = json[at]
    if (character === '"') {
      at = endOfString(json, at)
      continue
    }
    if (character === '{' || character === '[') depth += 1
    else if (depth === 0 && (character === ',' || character === '}')) return at
    else if (character === '}' || character === ']') depth -= 1
    at += 1
  }
  return at
}

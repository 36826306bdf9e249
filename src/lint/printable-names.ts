/**
 * Makes names safe to print: the creator of a table chooses its name, and output goes to terminals, logs and,
 * indented, to psql.
 */

/** Control characters, and those that change the text direction. */
const INVISIBLE = /[\p{Cc}\u2028-\u202e\u2066-\u2069]/gu

/** For messages: `a\u{1b}b`. */
export function printableName(name: string): string {
  return name.replace(INVISIBLE, character => `\\u{${codeOf(character)}}`)
}

/**
 * Equivalent SQL without such characters: quoted names and strings use Unicode escapes (PostgreSQL manual,
 * 4.1.2.3), and between tokens they are replaced by spaces.
 */
export function printableSql(sql: string): string {
  return sql.replace(/"(?:[^"]|"")*"|[eE]?'(?:[^']|'')*'|[^"']/gs, token => {
    if (token.search(INVISIBLE) < 0) return token
    if (!/["']$/.test(token) || token.length === 1) return token.replace(INVISIBLE, ' ')
    const isEscaped = /^[eE]/.test(token)
    const plain = isEscaped ? token.slice(1).replaceAll('\\\\', '\\') : token
    const escaped = plain
      .replaceAll('\\', '\\\\')
      .replace(INVISIBLE, character => `\\+${codeOf(character).padStart(6, '0')}`)
    return `U&${escaped}`
  })
}

function codeOf(character: string): string {
  return (character.codePointAt(0) ?? 0).toString(16)
}

/** `${NAME}` and `${NAME:-default}` in the string values of the file (docs/reference/configuration.md). */

export type Environment = Readonly<Record<string, string | undefined>>

/** The result of expanding one text. */
export interface ExpandedText {
  readonly text: string
  /** True if part of the text came from the environment. */
  readonly expanded: boolean
  /** One sentence for each reference that could not be resolved. */
  readonly problems: readonly string[]
}

/** `$${` is a literal `${`; otherwise the reference is the text between the braces. */
const REFERENCE = /\$\$\{|\$\{([^}]*)(\}?)/g
const NAME_AND_DEFAULT = /^([A-Za-z_][A-Za-z0-9_]*)(?::-([\s\S]*))?$/

/**
 * Replaces references by environment variables. As in a shell, the default also replaces an empty variable.
 * Replaced values are not expanded again.
 */
export function expand(text: string, environment: Environment): ExpandedText {
  const problems: string[] = []
  let expanded = false
  const result = text.replace(REFERENCE, (reference, inside: string | undefined, close: string | undefined) => {
    if (inside === undefined) return '${'
    expanded = true
    const [, name, fallback] = NAME_AND_DEFAULT.exec(inside) ?? []
    if (name === undefined || close === '') {
      problems.push(
        `${reference} is not a reference: expected \${NAME} or \${NAME:-default}, or $\${ for a literal \${`,
      )
      return ''
    }
    const value = Object.hasOwn(environment, name) ? environment[name] : undefined
    if (value === undefined && fallback === undefined) {
      problems.push(`the environment variable ${name} is not set: set it or write \${${name}:-default}`)
      return ''
    }
    return fallback === undefined ? (value ?? '') : value || fallback
  })
  return { text: result, expanded, problems }
}

/**
 * Finds the calls in a policy's expression, as `pg_get_expr` prints it, that read session settings. A policy
 * is evaluated for each row, but a sub-select that reads no column only once per statement.
 */

export interface SettingCall {
  /** The position of `current_setting(…)`, or of a function without arguments that may read it. */
  readonly start: number
  readonly end: number
  /** The setting if it is given as a literal; null for a function call. */
  readonly setting: string | null
  /** True if the call is inside a sub-select, at any depth. */
  readonly once: boolean
}

const TOKEN =
  /'(?:[^']|'')*'|(?:"(?:[^"]|"")*"|[\p{L}_][\p{L}\p{N}_$]*)(?:\.(?:"(?:[^"]|"")*"|[\p{L}_][\p{L}\p{N}_$]*))*|[()]|./gsu

/** In the order of the text; a call inside another is left out. */
export function settingCalls(expression: string): readonly SettingCall[] {
  const calls: SettingCall[] = []
  /**
   * For each open parenthesis: whether it or an enclosing one opens a sub-select, and the call whose end it
   * determines.
   */
  const open: { readonly once: boolean; readonly inside: boolean; readonly call: Omit<SettingCall, 'end'> | null }[] =
    []
  const tokens = [...expression.matchAll(TOKEN)].filter(([text]) => text.trim() !== '')
  for (const [index, { 0: text, index: start }] of tokens.entries()) {
    if (text === '(') {
      const { once = false, inside = false } = open.at(-1) ?? {}
      const before = tokens[index - 1]
      const next = tokens[index + 1]?.[0] ?? ''
      const setting = before === undefined || inside ? undefined : settingOf(before[0], next)
      const call = before === undefined || setting === undefined ? null : { start: before.index, setting, once }
      open.push({ once: once || /^(?:select|with|values)$/i.test(next), inside: inside || call !== null, call })
    } else if (text === ')') {
      const call = open.pop()?.call ?? null
      if (call !== null) calls.push({ ...call, end: start + 1 })
    }
  }
  return calls
}

/**
 * Undefined if it is not such a call. A user-defined function without arguments can only read the session or
 * tables. Names of functions that are not built in are printed with their schema.
 */
function settingOf(name: string, next: string): string | null | undefined {
  if (name === 'current_setting') return /^'.*'$/s.test(next) ? next.slice(1, -1).replaceAll("''", "'") : null
  return next === ')' && /["\p{L}\p{N}_$]\.["\p{L}_]/u.test(name) ? null : undefined
}

/** The text with each of the calls replaced. */
export function replaceCalls(
  expression: string,
  calls: readonly SettingCall[],
  replacement: (text: string, call: SettingCall) => string,
): string {
  return calls.reduceRight(
    (text, call) =>
      text.slice(0, call.start) + replacement(text.slice(call.start, call.end), call) + text.slice(call.end),
    expression,
  )
}

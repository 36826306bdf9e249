/** A setting as written in the file or in the environment, before it is parsed. */

import { shorten } from '../text/shorten.ts'
import { type Environment, expand } from './expand.ts'
import { Refusal } from './kinds.ts'
import type { Problem } from './problem.ts'
import type { Setting } from './settings.ts'
import { isTable, type TomlFile, type TomlTable, valueAt } from './toml-file.ts'

/** A value before it is parsed. */
export interface WrittenValue {
  /** The path of the file as it was given, or `environment`. */
  readonly source: string
  /** The dotted key, or the name of the variable. */
  readonly key: string
  readonly value: unknown
  /** The value before expansion, which can be shown in a message. */
  readonly original: unknown
  /** The folder to which relative paths refer. */
  readonly folder: string
  /** The line of the value, or of one of its elements; null if it is not in a file. */
  readonly lineOf: (element: number | null) => number | null
}

/** The value of a setting's environment variable; null if it is not set. */
export function writtenInEnvironment(
  setting: Setting<unknown>,
  environment: Environment,
  folder: string,
): WrittenValue | null {
  const name = setting.environment
  const text = name === undefined ? undefined : environment[name]
  if (name === undefined || text === undefined) return null
  if (text === '' && setting.emptyCounts !== true) return null
  const value = setting.kind.fromText?.(text) ?? text
  return { source: 'environment', key: name, value, original: text, folder, lineOf: () => null }
}

const PLACEHOLDERS: ReadonlySet<string> = new Set(['<role>', '<name>', '<n>'])

/**
 * The values of the setting in the file: at most one by its key and one by its alias. `name` replaces
 * `<role>`, `<name>` or `<n>` in the key.
 */
export function writtenInFile(setting: Setting<unknown>, name: string, file: TomlFile): readonly WrittenValue[] {
  return [setting.key, setting.alias].flatMap(key => {
    if (key === null || key === undefined) return []
    const path = key.split('.').map(part => (PLACEHOLDERS.has(part) ? name : part))
    const value = valueAt(file.root, path)
    if (value === undefined) return []
    const lineOf = (element: number | null): number | null =>
      (element === null ? null : file.lineOf([...path, String(element)])) ?? file.lineOf(path)
    return [{ source: file.name, key: path.join('.'), value, original: value, folder: file.folder, lineOf }]
  })
}

/** Receives each problem. */
export type Report = (problem: Problem) => void

/** Expands references in the strings of the value; null, with a report, if a variable is not set. */
export function expandWritten(
  written: WrittenValue,
  setting: Setting<unknown>,
  environment: Environment,
  report: Report,
): WrittenValue | null {
  let isWhole = true
  const expandText = (text: string, element: number | null): unknown => {
    const expansion = expand(text, environment)
    for (const problem of expansion.problems) report(problemOfWritten(written, problem, element))
    isWhole &&= expansion.problems.length === 0
    // An expanded text can be a number or a flag, like an environment variable.
    return expansion.expanded && element === null
      ? (setting.kind.fromText?.(expansion.text) ?? expansion.text)
      : expansion.text
  }
  const { value } = written
  const expanded = Array.isArray(value)
    ? value.map((element, index) => (typeof element === 'string' ? expandText(element, index) : element))
    : isTable(value)
      ? expandTable(value, text => expandText(text, null))
      : typeof value === 'string'
        ? expandText(value, null)
        : value
  return isWhole ? { ...written, value: expanded } : null
}

/**
 * The expanded values. The result has no prototype, like the table itself, so that `__proto__` is an
 * ordinary key.
 */
function expandTable(table: TomlTable, expandText: (text: string) => unknown): TomlTable {
  const expanded: Record<string, unknown> = Object.create(null)
  for (const [key, value] of Object.entries(table))
    expanded[key] = typeof value === 'string' ? expandText(value) : value
  return expanded
}

/** The parsed value; null, with a report, if it is invalid. */
export function parseWritten<T>(written: WrittenValue, setting: Setting<T>, report: Report): NonNullable<T> | null {
  try {
    return setting.kind.parse(written.value, written.folder)
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    const shown = setting.secret === true ? '' : `, not ${show(written.original, error.element)}`
    report(problemOfWritten(written, `expected ${error.expected}${shown}`, error.element))
    return null
  }
}

const SHOWN_CHARACTERS_MAX = 60

function show(value: unknown, element: number | null): string {
  const shown = element === null || !Array.isArray(value) ? value : value[element]
  const text =
    typeof shown === 'string'
      ? JSON.stringify(shown)
      : isTable(shown)
        ? 'a table'
        : Array.isArray(shown)
          ? 'an array'
          : String(shown)
  return shorten(text, SHOWN_CHARACTERS_MAX)
}

/** A problem of a written value. */
export function problemOfWritten(written: WrittenValue, message: string, element: number | null = null): Problem {
  return { source: written.source, line: written.lineOf(element), key: written.key, message, nearest: null }
}

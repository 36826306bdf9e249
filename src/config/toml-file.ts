/** The configuration file: its parsed tree and the line of each key. */
import { readFileSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { parse, TomlError } from 'smol-toml'
import type { Problem } from './problem.ts'
import { indexTomlLines, type TomlLines } from './toml-lines.ts'

/** A parsed configuration file. */
export interface TomlFile extends TomlLines {
  /** The name as given, for messages. */
  readonly name: string
  /** The absolute path. */
  readonly path: string
  /** The absolute path of the folder to which relative paths in the file refer. */
  readonly folder: string
  readonly root: TomlTable
}

/** A TOML table. */
export type TomlTable = Readonly<Record<string, unknown>>

/** The maximum size of the file. */
const FILE_BYTES_MAX = 1_048_576

/** Reads and parses the file; null, with a report, if it cannot be read or is not valid TOML. */
export function readTomlFile(
  name: string,
  workingDirectory: string,
  report: (problem: Problem) => void,
): TomlFile | null {
  const path = resolve(workingDirectory, name)
  try {
    const text = readText(path)
    return { name, path, folder: dirname(path), root: parse(text), lineOf: indexTomlLines(text).lineOf }
  } catch (error) {
    const isSyntax = error instanceof TomlError
    const [reason = ''] = (error as Error).message.split('\n')
    const message = isSyntax
      ? `is not valid TOML: ${reason.replace(/^Invalid TOML document: /, '')}`
      : `cannot be read: ${reason}`
    report({ source: name, line: isSyntax ? error.line : null, key: null, message, nearest: null })
    return null
  }
}

function readText(path: string): string {
  const { size } = statSync(path)
  if (size > FILE_BYTES_MAX) throw new Error(`it has ${size} bytes; at most ${FILE_BYTES_MAX} are expected`)
  return new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(path))
}

/** True if the value is a TOML table. */
export function isTable(value: unknown): value is TomlTable {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date)
}

/**
 * The value at a path, which can contain array indexes; undefined for none. Inherited properties
 * are ignored.
 */
export function valueAt(root: TomlTable, path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (at, part) =>
      (isTable(at) || Array.isArray(at)) && Object.hasOwn(at, part) ? at[part as keyof typeof at] : undefined,
    root,
  )
}

/** The configuration file as read: its tree, and where in it everything stands. */
import { readFileSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { parse, TomlError } from 'smol-toml'
import type { Problem } from './problem.ts'
import { indexTomlLines, type TomlLines } from './toml-lines.ts'

export interface TomlFile extends TomlLines {
  /** As it was named, for messages. */
  readonly name: string
  /** Absolute. */
  readonly path: string
  /** Absolute; where relative paths in the file begin. */
  readonly folder: string
  readonly root: TomlTable
}

export type TomlTable = Readonly<Record<string, unknown>>

/** A configuration is a page or two; what is larger is something else. */
const FILE_BYTES_MAX = 1_048_576

/** Null, and a report, when the file cannot be read or is no TOML. */
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
      ? `is no valid TOML: ${reason.replace(/^Invalid TOML document: /, '')}`
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

export function isTable(value: unknown): value is TomlTable {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date)
}

/**
 * Undefined where there is nothing; never looks at what objects inherit. An index in an array is a part of
 * the path.
 */
export function valueAt(root: TomlTable, path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (at, part) =>
      (isTable(at) || Array.isArray(at)) && Object.hasOwn(at, part) ? at[part as keyof typeof at] : undefined,
    root,
  )
}

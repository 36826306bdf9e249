/**
 * A parsed rules file (policies, webhook triggers): plain tables and lists, with the line of each key,
 * whatever its format. JSON is parsed as YAML, of which it is a subset, so that its problems have lines
 * too.
 */
import { readFile } from 'node:fs/promises'
import { extname } from 'node:path'
import { parse as parseToml, TomlError } from 'smol-toml'
import { nearest } from '../text/nearest.ts'
import type { Problem } from './problem.ts'
import { indexTomlLines } from './toml-lines.ts'

/** A parsed rules file. */
export interface Document {
  readonly file: string
  readonly root: unknown
  lineOf(path: Path): number | null
}

/** Keys and indexes from the root of a document. */
export type Path = readonly (string | number)[]

/** Collects every problem of a file, so that one start reports them all. */
export class DocumentProblems {
  readonly found: Problem[] = []
  readonly #document: Document
  readonly #ruleAt: (path: Path) => string | null

  /** `ruleAt`: the name of the rule at a path, for messages; null if it has none. */
  constructor(document: Document, ruleAt: (path: Path) => string | null = () => null) {
    this.#document = document
    this.#ruleAt = ruleAt
  }

  add(path: Path, message: string, suggestion: string | null = null): void {
    const { file } = this.#document
    const key = path.length === 0 ? null : path.join('.')
    const line = this.#document.lineOf(path)
    this.found.push({ source: file, line, rule: this.#ruleAt(path), key, message, nearest: suggestion })
  }

  /**
   * The table at `path` as a map; reports every key that is not in `known`. Null, with a report, if the
   * value is not a table.
   */
  table(value: unknown, path: Path, known: readonly string[] | null): ReadonlyMap<string, unknown> | null {
    const entries = entriesOf(value)
    if (entries === null) {
      this.add(path, 'expected a table of keys and values')
      return null
    }
    for (const [key] of known === null ? [] : entries) {
      if (known?.includes(key) === false) this.add([...path, key], 'unknown key', nearest(key, known))
    }
    return new Map(entries)
  }

  /** A list of texts; null, with a report, if the value is not one. */
  texts(value: unknown, path: Path, what: string): readonly string[] | null {
    if (Array.isArray(value) && value.every(item => typeof item === 'string' && item !== '')) return value as string[]
    this.add(path, `expected a list of ${what}: ["…"]`)
    return null
  }
}

/** The entries of a TOML table or a YAML mapping; null for anything else. */
function entriesOf(value: unknown): readonly (readonly [string, unknown])[] | null {
  if (value instanceof Map) return [...value].map(([key, inner]) => [String(key), inner] as const)
  if (typeof value !== 'object' || value === null || Array.isArray(value) || value instanceof Date) return null
  return Object.entries(value)
}

/** The maximum size of a rules file. */
const FILE_BYTES_MAX = 4 * 1024 * 1024

/** Reads and parses a file. Returns a problem with the reason if that fails. */
export async function readDocument(file: string): Promise<Document | Problem> {
  try {
    const bytes = await readFile(file)
    if (bytes.length > FILE_BYTES_MAX) {
      throw new Error(`it has ${bytes.length} bytes; at most ${FILE_BYTES_MAX} are read`)
    }
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    return extname(file).toLowerCase() === '.toml' ? tomlDocument(file, text) : await yamlDocument(file, text)
  } catch (error) {
    const [reason = ''] = (error as Error).message.split('\n')
    const line = error instanceof TomlError ? error.line : null
    return { source: file, line, key: null, message: `cannot be read: ${reason}`, nearest: null }
  }
}

function tomlDocument(file: string, text: string): Document {
  const root = parseToml(text)
  const { lineOf } = indexTomlLines(text)
  return { file, root, lineOf: path => lineOf(path.map(String)) }
}

async function yamlDocument(file: string, text: string): Promise<Document | Problem> {
  // Loads the YAML parser only if a YAML file is configured.
  const { LineCounter, parseDocument } = await import('yaml')
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines })
  const [error] = document.errors
  if (error !== undefined) {
    const [reason = ''] = error.message.split('\n')
    const line = error.linePos?.[0].line ?? null
    return { source: file, line, key: null, message: `cannot be read: ${reason}`, nearest: null }
  }
  const lineOf = (path: Path): number | null => {
    const node = document.getIn(path, true) as { readonly range?: readonly [number, number, number] } | undefined
    return node?.range === undefined || node.range === null ? null : lines.linePos(node.range[0]).line
  }
  return { file, root: document.toJS({ mapAsMap: true }), lineOf }
}

/** True if reading a file failed. */
export function isProblem(read: Document | Problem): read is Problem {
  return 'message' in read
}

/**
 * A file of rules as read – policies, triggers: plain tables and lists, with the line of each key, whatever
 * the file is written in. JSON is read as the YAML that it is, so that problems in it have lines too.
 */
import { readFile } from 'node:fs/promises'
import { extname } from 'node:path'
import { parse as parseToml, TomlError } from 'smol-toml'
import { nearest } from '../text/nearest.ts'
import type { Problem } from './problem.ts'
import { indexTomlLines } from './toml-lines.ts'

export interface Document {
  readonly file: string
  readonly root: unknown
  lineOf(path: Path): number | null
}

export type Path = readonly (string | number)[]

/** Every problem of a file, so that nobody has to start ten times to mend ten lines. */
export class DocumentProblems {
  readonly found: Problem[] = []
  readonly #document: Document
  readonly #ruleAt: (path: Path) => string | null

  /** `ruleAt`: what people call the rule that a path is in, where it has a name. */
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
   * The table at `path` as a map, and a report of every key that is not in `known`; null, and a report, for
   * something else.
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

  /** A list of texts; null, and a report, for something else. */
  texts(value: unknown, path: Path, what: string): readonly string[] | null {
    if (Array.isArray(value) && value.every(item => typeof item === 'string' && item !== '')) return value as string[]
    this.add(path, `expected a list of ${what}: ["…"]`)
    return null
  }
}

/** Of a table of TOML, or of a mapping of YAML; null for anything else. */
function entriesOf(value: unknown): readonly (readonly [string, unknown])[] | null {
  if (value instanceof Map) return [...value].map(([key, inner]) => [String(key), inner] as const)
  if (typeof value !== 'object' || value === null || Array.isArray(value) || value instanceof Date) return null
  return Object.entries(value)
}

/** Rules are some pages; what is larger is something else. */
const FILE_BYTES_MAX = 4 * 1024 * 1024

/** Rejects with a problem that has the reason. */
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
  // Only who has such a file waits for its parser to load.
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

export function isProblem(read: Document | Problem): read is Problem {
  return 'message' in read
}

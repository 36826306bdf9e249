/**
 * The file of functions that may be called (docs/reference/functions.md#transactions-and-rights): one a line, any letter case, `#` begins a comment.
 *
 *   line = [ name [ "." name ] ] [ "#" anything ] ;   name = '"' { character | '""' } '"' | { character but white space, '.', '#', '"', '(' }
 *
 * A name alone is one of the first schema. Overloads are not told apart.
 */
import { linesOf, readLines, readListFile } from '../../access/list/list-file.ts'
import { shorten } from '../../text/shorten.ts'

export interface FunctionList {
  has(of: FunctionName): boolean
}

export interface FunctionName {
  readonly schema: string
  readonly name: string
}

export interface FunctionEntry extends FunctionName {
  /** From 1. */
  readonly line: number
}

/** Rejects with `AllowListError`. */
export async function loadFunctionList(file: string, firstSchema: string): Promise<FunctionList> {
  return parseFunctionList(await readFunctionList(file), firstSchema, file)
}

/** The text of the file, for `parseFunctionList`. Rejects with `AllowListError`. */
export function readFunctionList(file: string): Promise<string> {
  return readListFile(file, 'rpc_allowlist_path')
}

/** Throws `AllowListError` with all lines that are wrong. */
export function parseFunctionList(text: string, firstSchema: string, file: string): FunctionList {
  const keys = new Set<string>()
  readLines(text, file, line => {
    const entry = readEntry(line, firstSchema)
    if (entry === 'malformed') return `"${shorten(line)}" is no function; ${EXPECTED}`
    if (entry !== null) keys.add(keyOf(entry.schema, entry.name))
    return null
  })
  return { has: ({ schema, name }) => keys.has(keyOf(schema, name)) }
}

/** The functions of a list, without the lines that are wrong. */
export function* entriesOfFunctions(text: string, firstSchema: string): Generator<FunctionEntry> {
  for (const [index, line] of linesOf(text).entries()) {
    const entry = readEntry(line.trim(), firstSchema)
    if (entry !== null && entry !== 'malformed') yield { ...entry, line: index + 1 }
  }
}

/** Null for a line that says nothing. */
function readEntry(line: string, firstSchema: string): FunctionName | 'malformed' | null {
  const entry = ENTRY.exec(line)
  if (entry === null) return 'malformed'
  if (entry[1] === undefined) return null
  const first = unquote(entry[1])
  return entry[2] === undefined ? { schema: firstSchema, name: first } : { schema: first, name: unquote(entry[2]) }
}

const EXPECTED = 'expected schema.function, or function alone for the first schema, without arguments'

const NAME = '("(?:[^"]|"")+"|[^\\s.#"(]+)'

const ENTRY = new RegExp(`^(?:${NAME}(?:\\s*\\.\\s*${NAME})?\\s*)?(?:#.*)?$`)

function unquote(name: string): string {
  return name.startsWith('"') ? name.slice(1, -1).replaceAll('""', '"') : name
}

/** NUL is in no name. */
function keyOf(schema: string, name: string): string {
  return `${schema}\0${name}`.toLowerCase()
}

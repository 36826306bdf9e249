/**
 * The file that lists the functions which can be called
 * (docs/reference/functions.md#transactions-and-rights): one function per line, case-insensitive, `#` starts
 * a comment.
 *
 * line = [ name [ "." name ] ] [ "#" anything ]
 * name = '"' { character | '""' } '"' | { character but white space, '.', '#', '"', '(' }
 *
 * A bare name belongs to the first schema. All overloads of a listed name are allowed.
 */
import { linesOf, readLines, readListFile } from '../../access/list/list-file.ts'
import { shorten } from '../../text/shorten.ts'

/** The functions that can be called. */
export interface FunctionList {
  has(of: ListedFunction): boolean
}

/** The schema and name of a function. */
export interface ListedFunction {
  readonly schema: string
  readonly name: string
}

/** A line of the list. */
export interface FunctionEntry extends ListedFunction {
  /** The line number, starting at 1. */
  readonly line: number
}

/**
 * Reads and parses the list.
 * @throws {AllowListError} for an unreadable file or malformed lines.
 */
export async function loadFunctionList(file: string, firstSchema: string): Promise<FunctionList> {
  return parseFunctionList(await readFunctionList(file), firstSchema, file)
}

/**
 * Reads the text of the list.
 * @throws {AllowListError} if the file cannot be read.
 */
export function readFunctionList(file: string): Promise<string> {
  return readListFile(file, 'rpc_allowlist_path')
}

/**
 * Parses the text of a list.
 * @throws {AllowListError} with all malformed lines.
 */
export function parseFunctionList(text: string, firstSchema: string, file: string): FunctionList {
  const keys = new Set<string>()
  readLines(text, file, line => {
    const entry = readEntry(line, firstSchema)
    if (entry === 'malformed') return `"${shorten(line)}" is not a function; ${EXPECTED}`
    if (entry !== null) keys.add(keyOf(entry.schema, entry.name))
    return null
  })
  return { has: ({ schema, name }) => keys.has(keyOf(schema, name)) }
}

/** The functions of a list; malformed lines are skipped. */
export function* entriesOfFunctions(text: string, firstSchema: string): Generator<FunctionEntry> {
  for (const [index, line] of linesOf(text).entries()) {
    const entry = readEntry(line.trim(), firstSchema)
    if (entry !== null && entry !== 'malformed') yield { ...entry, line: index + 1 }
  }
}

/** Parses a line; null for an empty line or a comment. */
function readEntry(line: string, firstSchema: string): ListedFunction | 'malformed' | null {
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

/** The key of a function. Names never contain NUL. */
function keyOf(schema: string, name: string): string {
  return `${schema}\0${name}`.toLowerCase()
}

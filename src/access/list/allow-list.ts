/**
 * The file of queries that may be asked (docs/guides/allow-list.md): one a line. A line is a request,
 * `GET /api/orders?status.eq`, or a query-language text with `?` for values. `#` begins a comment; the
 * operators `#>` and `#>>` of the language, and what stands in quotes there, are none.
 */

import { GatewayError } from '../../errors.ts'
import { QuerySyntaxError } from '../../language/syntax/syntax-error.ts'
import { LanguageError } from '../../language/tree/error.ts'
import { linesOf, type ReadLine, readLines, readLinesInTurns, readListFile } from './list-file.ts'
import { createPatternSet, type PatternSet, type QueryPattern } from './pattern.ts'
import { parseQueryPattern } from './query-shape.ts'

/** A request line of 64 KiB, every byte of it percent-encoded. */
const LINE_CHARACTERS_MAX = 3 * 65_536

/** Lines with a shape; more are no list that anybody has read. */
export const SHAPES_MAX = 10_000

/**
 * Reads a line that is a request: what its parts mean is known to the door that takes them. Throws
 * `GatewayError`.
 */
export type ParseRequestPattern = (line: string) => QueryPattern

export interface QueryList {
  readonly patterns: PatternSet
  /** What was read. */
  readonly text: string
}

/** Rejects with `AllowListError`. */
export async function loadQueryList(file: string, parseRequest: ParseRequestPattern): Promise<QueryList> {
  const text = await readQueryList(file)
  const { patterns, read } = createReader(parseRequest)
  await readLinesInTurns(text, file, read)
  return { patterns, text }
}

/** The text of the file. Rejects with `AllowListError`. */
export function readQueryList(file: string): Promise<string> {
  return readListFile(file, 'allow_list_path')
}

/** Throws `AllowListError` with all lines that are wrong. */
export function parseQueryList(text: string, file: string, parseRequest: ParseRequestPattern): PatternSet {
  const { patterns, read } = createReader(parseRequest)
  readLines(text, file, read)
  return patterns
}

interface Reader {
  readonly patterns: PatternSet
  readonly read: ReadLine
}

function createReader(parseRequest: ParseRequestPattern): Reader {
  const patterns = createPatternSet()
  let count = 0
  const read: ReadLine = line => {
    // The first that is too many is told, and the others are not looked at.
    if (count > SHAPES_MAX) return null
    try {
      const pattern = parseLine(line, parseRequest)
      if (pattern === null) return null
      count += 1
      if (count > SHAPES_MAX) {
        return `there are more than ${SHAPES_MAX} shapes; leave names open, as in "select", to have one for many`
      }
      patterns.add(pattern)
      return null
    } catch (error) {
      return problemOf(error)
    }
  }
  return { patterns, read }
}

/** Null for a line that says nothing. Throws `LanguageError` or `GatewayError`. */
export function parseLine(line: string, parseRequest: ParseRequestPattern): QueryPattern | null {
  if (line.length > LINE_CHARACTERS_MAX) {
    throw new LanguageError(`the line has ${line.length} characters; at most ${LINE_CHARACTERS_MAX} are read`)
  }
  const entry = withoutComment(line)
  if (entry === '') return null
  return isRequest(entry) ? parseRequest(entry) : parseQueryPattern(entry)
}

export interface ListEntry {
  readonly entry: string
  /** From 1. */
  readonly line: number
  /** Otherwise it is a text of the query language. */
  readonly isRequest: boolean
}

/** The lines of a list that say something, without their comments. */
export function* entriesOf(text: string): Generator<ListEntry> {
  for (const [index, line] of linesOf(text).entries()) {
    const entry = withoutComment(line.trim())
    if (entry !== '') yield { entry, line: index + 1, isRequest: isRequest(entry) }
  }
}

/** A method and a path; no table of the language begins with a slash. */
function isRequest(entry: string): boolean {
  return /^[a-z]+\s+\//i.test(entry)
}

/** Names of a request that have a `#` write it as `%23`. */
function withoutComment(line: string): string {
  const comment = isRequest(line) ? /^[^#]*/ : /^(?:[^#'"`]+|#>|'[^']*'|"[^"]*"|`[^`]*`)*/
  const [kept = ''] = comment.exec(line) ?? []
  const rest = line.slice(kept.length)
  // A quote that is not closed is for the parser to tell.
  return (rest.startsWith('#') ? kept : line).trim()
}

function problemOf(error: unknown): string {
  if (error instanceof QuerySyntaxError) {
    const hint = error.hint === null ? '' : `; ${error.hint}`
    return `${error.problem} (column ${error.column})${hint}`
  }
  if (error instanceof LanguageError) {
    return error.span === null ? error.message : `${error.message} (column ${error.span.start + 1})`
  }
  if (error instanceof GatewayError) return error.message
  throw error
}

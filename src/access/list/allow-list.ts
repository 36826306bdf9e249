/**
 * The allow-list file (docs/guides/allow-list.md): one query shape per line. A line is a request, `GET
 * /api/orders?status.eq`, or a query-language text with `?` for values. `#` starts a comment, except in the
 * operators `#>` and `#>>` of the language and within quotes.
 */

import { GatewayError } from '../../errors.ts'
import { QuerySyntaxError } from '../../language/syntax/syntax-error.ts'
import { LanguageError } from '../../language/tree/error.ts'
import { linesOf, type ReadLine, readLines, readLinesInTurns, readListFile } from './list-file.ts'
import { createPatternSet, type PatternSet, type QueryPattern } from './pattern.ts'
import { parseQueryPattern } from './query-shape.ts'

/** The length of a request line of 64 KiB in which every byte is percent-encoded. */
const LINE_CHARACTERS_MAX = 3 * 65_536

/** The maximum number of lines with a shape. */
export const SHAPES_MAX = 10_000

/** Parses a line that is a request; the REST API supplies it. Throws `GatewayError`. */
export type ParseRequestPattern = (line: string) => QueryPattern

/** A parsed allow-list. */
export interface QueryList {
  readonly patterns: PatternSet
  /** The text of the file. */
  readonly text: string
}

/** Loads and parses the file. Rejects with `AllowListError`. */
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

/** Parses the text of a list. Throws `AllowListError` with the errors of all lines. */
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
    // Reported once; the lines after it are not parsed.
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

/** Parses one line; null for an empty line or a comment. Throws `LanguageError` or `GatewayError`. */
export function parseLine(line: string, parseRequest: ParseRequestPattern): QueryPattern | null {
  if (line.length > LINE_CHARACTERS_MAX) {
    throw new LanguageError(`the line has ${line.length} characters; at most ${LINE_CHARACTERS_MAX} are read`)
  }
  const entry = withoutComment(line)
  if (entry === '') return null
  return isRequest(entry) ? parseRequest(entry) : parseQueryPattern(entry)
}

/** A line of a list that has content. */
export interface ListEntry {
  readonly entry: string
  /** The line number, from 1. */
  readonly line: number
  /** True if it is a request; otherwise it is a query-language text. */
  readonly isRequest: boolean
}

/** The lines of a list that have content, without their comments. */
export function* entriesOf(text: string): Generator<ListEntry> {
  for (const [index, line] of linesOf(text).entries()) {
    const entry = withoutComment(line.trim())
    if (entry !== '') yield { entry, line: index + 1, isRequest: isRequest(entry) }
  }
}

/** A method and a path; no table name of the language begins with a slash. */
function isRequest(entry: string): boolean {
  return /^[a-z]+\s+\//i.test(entry)
}

/** In a request, a `#` within a name is written as `%23`. */
function withoutComment(line: string): string {
  const comment = isRequest(line) ? /^[^#]*/ : /^(?:[^#'"`]+|#>|'[^']*'|"[^"]*"|`[^`]*`)*/
  const [kept = ''] = comment.exec(line) ?? []
  const rest = line.slice(kept.length)
  // An unclosed quote is left in place for the parser to report.
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

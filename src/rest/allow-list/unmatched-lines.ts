/**
 * Finds allow-list lines that no request can match because they name a table, column, relation or function
 * that the schema does not have.
 */
import { setImmediate } from 'node:timers/promises'
import { entriesOf } from '../../access/list/allow-list.ts'
import { type Catalog, type DatabaseFunction, resourceName } from '../../catalog/model.ts'
import { GatewayError } from '../../errors.ts'
import { parsePattern } from '../../language/syntax/parse.ts'
import { QuerySyntaxError } from '../../language/syntax/syntax-error.ts'
import type { Statement } from '../../language/tree/ast.ts'
import { LanguageError } from '../../language/tree/error.ts'
import { nearest } from '../../text/nearest.ts'
import { shorten } from '../../text/shorten.ts'
import { entriesOfFunctions } from '../rpc/function-list.ts'
import { assertNamesInText } from './query-names.ts'
import { assertNamesInRequest } from './request-names.ts'
import { type RequestLine, readRequestLine } from './request-pattern.ts'

/** An allow-list file and its text. */
export interface ListText {
  readonly file: string
  readonly text: string
}

/** The schema that names are looked up in, and the settings that affect the lookup. */
export interface NamedSchema {
  readonly catalog: Catalog
  /** `rpc_require_schema_qualified`: whether functions need a schema name. */
  readonly qualified: boolean
  /** Limit on the levels of `expand` (`max_expand_depth`). */
  readonly maxExpandDepth: number
}

/**
 * Describes each line with a missing name as `file:line: what is missing`, in order. Malformed lines are
 * skipped, because reading the list reports them. The lines are processed in portions, since a long list is
 * checked while requests are served.
 */
export async function unmatchedQueries({ file, text }: ListText, schema: NamedSchema): Promise<readonly string[]> {
  return inTurns(file, entriesOf(text), ({ entry, isRequest }) => {
    const read = readEntry(entry, isRequest)
    return read === null ? null : problemOf(read, schema)
  })
}

/** The same for the list of functions. */
export async function unmatchedFunctions(
  { file, text }: ListText,
  { functions, schemas }: Pick<Catalog, 'functions' | 'schemas'>,
): Promise<readonly string[]> {
  const known = [...functions.values()].flatMap(overloads => overloads.slice(0, 1))
  // The function list is case-insensitive.
  const keys = new Set(known.map(keyOf))
  return inTurns(file, entriesOfFunctions(text, schemas[0] ?? 'public'), of => {
    if (keys.has(keyOf(of))) return null
    const name = resourceName(of, schemas)
    const near = nearest(
      name,
      known.map(({ resource }) => resource),
    )
    return `there is no function "${shorten(name)}"${near === null ? '' : `; did you mean "${near}"?`}`
  })
}

function keyOf({ schema, name }: Pick<DatabaseFunction, 'schema' | 'name'>): string {
  return `${schema}\0${name}`.toLowerCase()
}

async function inTurns<T extends { readonly line: number }>(
  file: string,
  entries: Iterable<T>,
  problem: (entry: T) => string | null,
): Promise<readonly string[]> {
  const found: string[] = []
  let count = 0
  for (const entry of entries) {
    const missing = problem(entry)
    if (missing !== null) found.push(`${file}:${entry.line}: ${missing}`)
    count += 1
    if (count % LINES_AT_ONCE === 0) await setImmediate()
  }
  return found
}

/** Number of lines checked in one turn of the event loop: a few milliseconds of work. */
const LINES_AT_ONCE = 50

type ReadEntry =
  | { readonly kind: 'request'; readonly line: RequestLine }
  | { readonly kind: 'text'; readonly statement: Statement }

/** Parses a line; null if it is malformed. */
function readEntry(entry: string, isRequest: boolean): ReadEntry | null {
  try {
    return isRequest
      ? { kind: 'request', line: readRequestLine(entry) }
      : { kind: 'text', statement: parsePattern(entry) }
  } catch (error) {
    if (isRefusal(error)) return null
    throw error
  }
}

function problemOf(read: ReadEntry, schema: NamedSchema): string | null {
  try {
    if (read.kind === 'request') assertNamesInRequest(read.line, schema)
    else assertNamesInText(read.statement, schema.catalog)
    return null
  } catch (error) {
    if (isRefusal(error)) return error.message
    throw error
  }
}

function isRefusal(error: unknown): error is Error {
  return error instanceof GatewayError || error instanceof LanguageError || error instanceof QuerySyntaxError
}

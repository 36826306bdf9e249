/**
 * The file of functions that may be called (specification 5.4 (6), decisions 13): one a line, any letter case, `#` begins a comment.
 *
 *   line = [ name [ "." name ] ] [ "#" anything ] ;   name = '"' { character | '""' } '"' | { character but white space, '.', '#', '"', '(' }
 *
 * A name alone is one of the first schema. Overloads are not told apart.
 */
import { readFile } from 'node:fs/promises'
import { shorten } from '../../shorten.ts'

/** The file cannot be read, or has lines that mean nothing. The message is for whoever runs the gateway, and says all of it. */
export class AllowListError extends Error {
  override readonly name = 'AllowListError'
}

export interface FunctionList {
  has(of: { readonly schema: string; readonly name: string }): boolean
}

/** A file longer than this is not what it is taken for. */
const FILE_BYTES_MAX = 4 * 1024 * 1024

const PROBLEMS_SHOWN = 20

export async function loadAllowList(file: string, firstSchema: string): Promise<FunctionList> {
  let bytes: Buffer
  try {
    bytes = await readFile(file)
  } catch (error) {
    throw new AllowListError(`rpc_allowlist_path: ${file} cannot be read: ${(error as Error).message}`, {
      cause: error,
    })
  }
  if (bytes.length > FILE_BYTES_MAX) {
    throw new AllowListError(
      `rpc_allowlist_path: ${file} has ${bytes.length} bytes; at most ${FILE_BYTES_MAX} are read`,
    )
  }
  return parseAllowList(bytes.toString('utf8'), firstSchema, file)
}

/** Throws `AllowListError` with all lines that are wrong. */
export function parseAllowList(text: string, firstSchema: string, file: string): FunctionList {
  const keys = new Set<string>()
  const problems: string[] = []
  for (const [index, line] of text
    .replace(/^\ufeff/, '')
    .split(/\r\n|\n|\r/)
    .entries()) {
    const entry = ENTRY.exec(line.trim())
    if (entry === null) problems.push(`${file}:${index + 1}: "${shorten(line.trim())}" is no function; ${EXPECTED}`)
    else if (entry[1] !== undefined) {
      const [first, second] = [unquote(entry[1]), entry[2] === undefined ? null : unquote(entry[2])]
      keys.add(second === null ? keyOf(firstSchema, first) : keyOf(first, second))
    }
  }
  if (problems.length > 0) {
    const more = problems.length - PROBLEMS_SHOWN
    throw new AllowListError(
      [...problems.slice(0, PROBLEMS_SHOWN), ...(more > 0 ? [`and ${more} more`] : [])].join('\n'),
    )
  }
  return { has: ({ schema, name }) => keys.has(keyOf(schema, name)) }
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

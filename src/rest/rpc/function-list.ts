/**
 * The file of functions that may be called (docs/reference/functions.md#transactions-and-rights): one a line, any letter case, `#` begins a comment.
 *
 *   line = [ name [ "." name ] ] [ "#" anything ] ;   name = '"' { character | '""' } '"' | { character but white space, '.', '#', '"', '(' }
 *
 * A name alone is one of the first schema. Overloads are not told apart.
 */
import { readLines, readListFile } from '../../access/list/list-file.ts'
import { shorten } from '../../text/shorten.ts'

export interface FunctionList {
  has(of: { readonly schema: string; readonly name: string }): boolean
}

export async function loadFunctionList(file: string, firstSchema: string): Promise<FunctionList> {
  return parseFunctionList(await readListFile(file, 'rpc_allowlist_path'), firstSchema, file)
}

/** Throws `AllowListError` with all lines that are wrong. */
export function parseFunctionList(text: string, firstSchema: string, file: string): FunctionList {
  const keys = new Set<string>()
  readLines(text, file, line => {
    const entry = ENTRY.exec(line)
    if (entry === null) return `"${shorten(line)}" is no function; ${EXPECTED}`
    if (entry[1] === undefined) return null
    const [first, second] = [unquote(entry[1]), entry[2] === undefined ? null : unquote(entry[2])]
    keys.add(second === null ? keyOf(firstSchema, first) : keyOf(first, second))
    return null
  })
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

/** `select=id,total,buyer:customer_name,meta->>theme,*` (docs/reference/reading.md#columns). */
import { GatewayError } from '../../errors.ts'
import type { Field } from '../../language/tree/ast.ts'
import { field, star } from '../../language/tree/build.ts'
import { shorten } from '../../text/shorten.ts'
import type { Values } from '../values.ts'
import { type BoundPath, buildPath, readColumnPath, responseName, toPath } from './column-path.ts'
import { NameReader } from './name-reader.ts'

/**
 * PostgreSQL truncates longer names silently (PostgreSQL manual, 4.1.1), and two truncated names could become
 * equal.
 */
const ALIAS_BYTES_MAX = 63

/** One item of `select`. */
export type SelectItem =
  | { readonly kind: 'star' }
  /** `alias` is the name in the response, or null if it is the column's own name. */
  | { readonly kind: 'column'; readonly path: BoundPath; readonly alias: string | null }

/**
 * Parses `item { "," item }`, item = "*" | [ alias ":" ] column { ( "->" | "->>" ) key }. An absent text
 * selects every column and returns no items. `parameter` is the parameter's name for errors.
 * @throws {GatewayError} `PARSE_ERROR` for a malformed or repeated item.
 */
export function parseSelect(text: string | undefined, values: Values, parameter = 'select'): readonly SelectItem[] {
  if (text === undefined) return []
  const reader = new NameReader(text, parameter)
  const selected: SelectItem[] = []
  const seen = new Set<string>()
  do {
    if (reader.take('*')) {
      if (selected.some(known => known.kind === 'star')) reader.fail('has "*" twice')
      selected.push({ kind: 'star' })
      continue
    }
    const path = readColumnPath(reader, [',', ':'])
    const aliased = path.steps.length === 0 && reader.take(':')
    const alias = aliased ? path.column : null
    const source = aliased ? readColumnPath(reader, [',']) : path
    const name = checkedAlias(alias ?? responseName(source), reader)
    if (seen.has(name)) reader.fail(`has "${name}" twice`, 'give one of them another name: alias:column')
    seen.add(name)
    const plain = source.steps.length === 0 && name === source.column
    selected.push({ kind: 'column', path: toPath(source, values), alias: plain ? null : name })
  } while (reader.take(','))
  if (!reader.done) reader.fail('has text after a column', 'separate columns with a comma')
  return selected
}

/** Builds the fields of a SELECT. `alias` is the alias of the table, or null if names are unambiguous. */
export function buildFields(selected: readonly SelectItem[], alias: string | null): readonly Field[] {
  return selected.map(item => (item.kind === 'star' ? star(alias) : field(buildPath(item.path, alias), item.alias)))
}

/**
 * Returns `alias` if PostgreSQL accepts it as a name.
 * @throws {GatewayError} `PARSE_ERROR` if it is empty or too long.
 */
export function checkedAlias(alias: string, reader: NameReader): string {
  if (alias === '') reader.fail('has an empty alias')
  if (Buffer.byteLength(alias) > ALIAS_BYTES_MAX) {
    throw new GatewayError(
      'PARSE_ERROR',
      `the name "${shorten(alias)}" is longer than ${ALIAS_BYTES_MAX} bytes; choose a shorter alias`,
    )
  }
  return alias
}

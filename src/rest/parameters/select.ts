/** `select=id,total,buyer:customer_name,meta->>theme,*` (docs/reference/reading.md#columns). */
import { GatewayError } from '../../errors.ts'
import type { Field } from '../../language/tree/ast.ts'
import { field, star } from '../../language/tree/build.ts'
import { shorten } from '../../text/shorten.ts'
import type { Shape } from '../shape.ts'
import { nameOf, pathExpression, readColumnPath } from './column-path.ts'
import { NameReader } from './names.ts'

/** PostgreSQL cuts longer names silently (PostgreSQL manual, 4.1.1), and two cut names could become one. */
const ALIAS_BYTES_MAX = 63

/**
 * item = "*" | [ alias ":" ] column { ( "->" | "->>" ) key }; no fields at all for no text: every column. `parameter` is where it was written, for
 * errors.
 */
export function parseSelect(text: string | undefined, shape: Shape, parameter = 'select'): readonly Field[] {
  shape.add('select')
  if (text === undefined) return []
  const reader = new NameReader(text, parameter)
  const fields: Field[] = []
  const seen = new Set<string>()
  do {
    if (reader.take('*')) {
      if (fields.some(known => known.kind === 'star')) reader.fail('has "*" twice')
      shape.add('*')
      fields.push(star())
      continue
    }
    const path = readColumnPath(reader, [',', ':'])
    const aliased = path.steps.length === 0 && reader.take(':')
    const alias = aliased ? path.column : null
    const source = aliased ? readColumnPath(reader, [',']) : path
    const name = checkedAlias(alias ?? nameOf(source), reader)
    if (seen.has(name)) reader.fail(`has "${name}" twice`, 'give one of them another name: alias:column')
    seen.add(name)
    shape.add(`as ${name}`)
    const plain = source.steps.length === 0 && name === source.column
    fields.push(field(pathExpression(source, shape), plain ? null : name))
  } while (reader.take(','))
  if (!reader.done) reader.fail('goes on after a column', 'separate columns with a comma')
  return fields
}

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

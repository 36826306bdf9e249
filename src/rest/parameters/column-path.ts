/** A column, or a path into a JSON column: `column`, `meta->>theme`, `meta->a->0`. */
import type { Expression, Parameter } from '../../language/tree/ast.ts'
import { cast, column, jsonStep } from '../../language/tree/build.ts'
import type { Values } from '../values.ts'
import { NameReader } from './name-reader.ts'

/** A path as the request writes it. */
export interface ColumnPath {
  readonly column: string
  readonly steps: readonly Step[]
}

interface Step {
  readonly operator: '->' | '->>'
  readonly key: string
  /** True if the key is an array index. A quoted key is an object key even if it looks like an index. */
  readonly index: boolean
}

/** A path in a request tree; its keys are parameters. */
export interface BoundPath {
  readonly column: string
  readonly steps: readonly {
    readonly operator: Step['operator']
    readonly key: Parameter
    readonly index: boolean
  }[]
}

/** Limit on the steps of a path. */
const STEPS_MAX = 32

/**
 * Reads a path from `reader` up to one of `stops`.
 * @throws {GatewayError} `PARSE_ERROR` for a malformed path.
 */
export function readColumnPath(reader: NameReader, stops: readonly string[]): ColumnPath {
  const inner = ['->', ...stops]
  const name = reader.name(inner)
  const steps: Step[] = []
  for (;;) {
    const operator = reader.take('->>') ? '->>' : reader.take('->') ? '->' : null
    if (operator === null) return { column: name, steps }
    if (steps.length === STEPS_MAX) reader.fail(`has more than ${STEPS_MAX} steps into JSON`)
    const quoted = reader.next === '"'
    const key = reader.name(inner)
    steps.push({ operator, key, index: !quoted && INDEX.test(key) })
  }
}

/** Matches keys that are array indexes. */
export const INDEX: RegExp = /^-?\d{1,9}$/

/**
 * Parses a text that is one complete path, such as the key of a filter.
 * @throws {GatewayError} `PARSE_ERROR` for a malformed path.
 */
export function parseColumnPath(text: string): ColumnPath {
  // Nearly every key is a plain name; only other keys need the parser.
  if (!text.includes('->') && !text.includes('"')) return { column: text, steps: [] }
  const reader = new NameReader(text, 'column')
  const path = readColumnPath(reader, [])
  if (!reader.done) reader.fail('has text after the column', 'write column, column->key or column->>key')
  return path
}

/** The name of a path in the response if it has no alias: its last key, or the column. */
export function responseName(path: ColumnPath): string {
  const keys = path.steps.filter(step => !step.index)
  return keys.at(-1)?.key ?? path.column
}

/** Replaces the keys of a path by parameters. Keys are request values and never become SQL text. */
export function toPath({ column: name, steps }: ColumnPath, values: Values): BoundPath {
  return { column: name, steps: steps.map(step => ({ ...step, key: values.add(step.key) })) }
}

/**
 * Builds the expression of a path. `alias` is the alias of the column's table, or null if the name is
 * unambiguous.
 */
export function buildPath(path: BoundPath, alias: string | null): Expression {
  let expression: Expression = alias === null ? column(path.column) : column(alias, path.column)
  for (const { operator, key, index } of path.steps) {
    expression = jsonStep(operator, expression, cast(key, index ? 'int4' : 'text'))
  }
  return expression
}

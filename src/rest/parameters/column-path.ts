/** `column`, `meta->>theme`, `meta->a->0`: a column, or a path into a JSON column. */
import type { Expression, Parameter } from '../../language/tree/ast.ts'
import { cast, column, jsonStep } from '../../language/tree/build.ts'
import type { Values } from '../values.ts'
import { NameReader } from './names.ts'

/** As it is written. */
export interface ColumnPath {
  readonly column: string
  readonly steps: readonly Step[]
}

interface Step {
  readonly operator: '->' | '->>'
  readonly key: string
  /** Written in quotes: an object's key even if it looks like an index. */
  readonly index: boolean
}

/** As part of a request: the keys are values. */
export interface Path {
  readonly column: string
  readonly steps: readonly {
    readonly operator: Step['operator']
    readonly key: Parameter
    readonly index: boolean
  }[]
}

/** Deeper paths are refused. */
const STEPS_MAX = 32

/** Reads a path from `reader`, up to one of `stops`. */
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

/** Keys that are places in an array. */
export const INDEX: RegExp = /^-?\d{1,9}$/

/** A whole text that is one path, as in a filter's key. */
export function parseColumnPath(text: string): ColumnPath {
  // Nearly every key is a plain name; the notation is only read where it is used.
  if (!text.includes('->') && !text.includes('"')) return { column: text, steps: [] }
  const reader = new NameReader(text, 'column')
  const path = readColumnPath(reader, [])
  if (!reader.done) reader.fail('goes on after the column', 'write column, column->key or column->>key')
  return path
}

/** The name a path has in the answer when no alias is given: its last key, or the column. */
export function nameOf(path: ColumnPath): string {
  const keys = path.steps.filter(step => !step.index)
  return keys.at(-1)?.key ?? path.column
}

/** Keys are values from the request and so are parameters, never text. */
export function toPath({ column: name, steps }: ColumnPath, values: Values): Path {
  return { column: name, steps: steps.map(step => ({ ...step, key: values.add(step.key) })) }
}

/** `alias`: of the table that has the column; null where no other name can be meant. */
export function buildPath(path: Path, alias: string | null): Expression {
  let expression: Expression = alias === null ? column(path.column) : column(alias, path.column)
  for (const { operator, key, index } of path.steps) {
    expression = jsonStep(operator, expression, cast(key, index ? 'int4' : 'text'))
  }
  return expression
}

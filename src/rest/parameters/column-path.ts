/** `column`, `meta->>theme`, `meta->a->0`: a column, or a path into a JSON column. */
import type { Expression } from '../../language/tree/ast.ts'
import { cast, column, jsonStep } from '../../language/tree/build.ts'
import type { Shape } from '../shape.ts'
import { NameReader } from './names.ts'

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
export function pathExpression(path: ColumnPath, shape: Shape): Expression {
  shape.add(path.column)
  shape.add(path.steps.map(step => (step.index ? `${step.operator}#` : step.operator)).join(''))
  let expression: Expression = column(path.column)
  for (const step of path.steps) {
    expression = jsonStep(step.operator, expression, cast(shape.value(step.key), step.index ? 'int4' : 'text'))
  }
  return expression
}

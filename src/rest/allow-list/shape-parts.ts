/** The text of a request's shape: its parts in canonical form, sorted by name and then by operator. */
import type { QueryShape } from '../../access/list/pattern.ts'
import type { ColumnPath } from '../parameters/column-path.ts'
import { INDEX } from '../parameters/column-path.ts'
import { type Filter, isFlagSet, type Test } from '../parameters/filter-notation.ts'
import { OPERAND_OF } from '../parameters/operators.ts'

/** A parameter without its value, if that is data. */
export interface Part {
  /** To sort by. */
  readonly name: string
  readonly text: string
  /** What it names; null: anything, in a line. Undefined for parts of which no value is ever compared. */
  readonly value: string | null | undefined
}

/** `target`: method and route. At most one part of a name may have a value. */
export function joinParts(target: string, parts: readonly Part[]): QueryShape {
  const sorted = [...parts].sort((a, b) => compare(a.name, b.name) || compare(a.text, b.text))
  const join = (texts: readonly string[]) => (texts.length === 0 ? target : `${target}?${texts.join('&')}`)
  return {
    key: join(sorted.map(({ text }) => text)),
    values: sorted.flatMap(({ value }) => (value === undefined ? [] : [value])),
    line: () =>
      join(sorted.map(({ text, value }) => (typeof value === 'string' ? `${text}=${encodeName(value)}` : text))),
  }
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

export function valuePart(name: string, value: string | null | undefined): Part {
  return { name, text: encodeName(name), value: name === 'sort' && value ? canonicalSort(value) : value }
}

/** `created_at:desc` is `-created_at`. What has quotes or paths stays as it is written. */
function canonicalSort(text: string): string {
  if (/"|->/.test(text)) return text
  return text
    .split(',')
    .map(item => item.replace(/^([^-:][^:]*):(asc|desc)$/, (_, column, way) => (way === 'asc' ? column : `-${column}`)))
    .join(',')
}

/** `status.eq`, `total.not.in`, `or=(a.eq,and(b.gt,c.lt))`. */
export function printFilter(filter: Filter): Part {
  if (filter.kind === 'test') {
    return { name: encodeName(printPath(filter.path)), text: encodeName(printTest(filter)), value: undefined }
  }
  return { name: filter.name, text: `${filter.name}=${encodeName(printItems(filter))}`, value: undefined }
}

function printItems({ items }: Filter & { kind: 'group' }): string {
  const texts = items.map(item => (item.kind === 'test' ? printTest(item) : `${item.name}${printItems(item)}`))
  return `(${texts.sort(compare).join(',')})`
}

function printTest(test: Test): string {
  return `${printPath(test.path)}.${test.negated ? 'not.' : ''}${operatorOf(test)}`
}

/** One name for each meaning. */
function operatorOf(test: Test): string {
  const { operator } = test
  if (operator === 'neq') return 'ne'
  if (OPERAND_OF[operator] !== 'flag' || isFlagSet(test)) return operator
  return operator === 'is_null' ? 'is_not_null' : 'is_null'
}

function printPath({ column, steps }: ColumnPath): string {
  const keys = steps.map(
    ({ operator, key, index }) => operator + (index || !INDEX.test(key) ? printName(key, index) : quote(key)),
  )
  return printName(column, false) + keys.join('')
}

function printName(name: string, bare: boolean): string {
  return bare || PLAIN.test(name) ? name : quote(name)
}

function quote(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

/** Names that mean themselves wherever they stand. */
const PLAIN = /^[\p{L}\p{N}_$]+$/u

/** What would end a name, a parameter or a line, and what nobody sees, is percent-encoded. */
export function encodeName(name: string): string {
  // Nearly every name has nothing of that.
  return HARMLESS.test(name) ? name : name.replace(/[%#?&=+{}/\s\p{C}]/gu, encodeURIComponent)
}

const HARMLESS = /^[\w.,:<>()-]*$/

/**
 * Parameters of expanded relations: `order_items.amount=gte.10`, `order_items.sort=-line`,
 * `order_items.product.name=Cup` (docs/reference/reading.md#rows-of-a-relation). The part before the last
 * dot is a path of names in the response.
 */
import { GatewayError } from '../../errors.ts'
import { asRelation, EXPAND_DEPTH_MAX, keyOfRelation, parseExpand, type WrittenRelation } from './expand.ts'
import { GROUP_PARAMETERS } from './filter-notation.ts'
import { operatorNamed } from './operators.ts'

/** The named parameters of a relation; all others are filters. */
export const RELATED_PARAMETERS: readonly string[] = ['sort', 'limit', 'offset']

/** A parameter name, split into the relation it is about and the name for the rows of the relation. */
export interface RelatedName {
  /** The names of the relations in the response, from the outermost. */
  readonly path: readonly string[]
  readonly name: string
}

/** Splits the names of a request's parameters; null for a name that is about the requested table itself. */
export type Splitter = (name: string) => RelatedName | null

/**
 * The splitter for this value of `expand`. An invalid value has no relations; its error is reported where it
 * is used.
 */
export function splitterFor(expand: string | undefined): Splitter {
  let roots: readonly WrittenRelation[] | undefined
  return name => {
    if (expand === undefined || !name.includes('.')) return null
    roots ??= relationsOf(expand)
    return splitName(name, roots)
  }
}

function relationsOf(expand: string): readonly WrittenRelation[] {
  try {
    return parseExpand(expand, EXPAND_DEPTH_MAX)
  } catch (error) {
    if (error instanceof GatewayError) return []
    throw error
  }
}

function splitName(name: string, roots: readonly WrittenRelation[]): RelatedName | null {
  const path: string[] = []
  let level = roots
  let rest = name
  for (;;) {
    const [next, length] = longestPrefix(rest, level)
    if (next === null) break
    // `approved_by.gt=1` is a filter on a column, even if a relation has the same name.
    const below = rest.slice(length)
    if (isOperator(below)) break
    path.push(keyOfRelation(next))
    rest = below
    level = inside(next)
  }
  return path.length === 0 ? null : { path, name: rest }
}

/** The relations in a relation, including plain names in its parentheses that can be relations. */
function inside({ select, below }: WrittenRelation): readonly WrittenRelation[] {
  return [...below, ...(select ?? []).flatMap(item => asRelation(item) ?? [])]
}

/** The relation whose name, followed by a dot, begins the text. A name with a dot has precedence. */
function longestPrefix(
  text: string,
  level: readonly WrittenRelation[],
): readonly [relation: WrittenRelation | null, length: number] {
  let found: WrittenRelation | null = null
  let length = 0
  for (const relation of level) {
    const key = keyOfRelation(relation)
    const prefix = [`${key}.`, `"${key.replaceAll('"', '""')}".`].find(written => text.startsWith(written))
    if (prefix === undefined || prefix.length <= length) continue
    found = relation
    length = prefix.length
  }
  return [found, length]
}

function isOperator(text: string): boolean {
  return operatorNamed(text.startsWith('not.') ? text.slice(4) : text) !== undefined
}

/** Splits a name if the value of `expand` is unknown: every dot outside of quotes separates two names. */
export function splitAnyName(name: string): RelatedName | null {
  const [, head = '', tail = ''] = /^([^">]*?)((?:->|").*)?$/s.exec(name) ?? []
  const names = head.split('.')
  const size = tail === '' ? sizeOfLast(names) : 1
  const path = names.slice(0, -size)
  return path.length === 0 ? null : { path, name: `${names.slice(-size).join('.')}${tail}` }
}

/** The number of names that belong to the last part: `column`, `column.operator`, `column.not.operator`. */
function sizeOfLast(names: readonly string[]): number {
  const last = names.at(-1) ?? ''
  const isNegated = names.at(-2) === 'not'
  if (GROUP_PARAMETERS.has(last)) return isNegated ? 2 : 1
  if (operatorNamed(last) === undefined) return 1
  return isNegated ? 3 : 2
}

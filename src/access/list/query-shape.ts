/**
 * The shape of a query-language text: its canonical form with `?` for every value
 * (docs/guides/allow-list.md#texts-of-the-query-language).
 */

import { formatStatement } from '../../language/format/format.ts'
import { parsePattern } from '../../language/syntax/parse.ts'
import type { Expression, Get, Literal, Negate, Nest, Parameter, Statement } from '../../language/tree/ast.ts'
import { NOWHERE, PLACEHOLDER } from '../../language/tree/ast.ts'
import { LanguageError } from '../../language/tree/error.ts'
import { rewrite } from '../../language/tree/walk.ts'
import type { QueryPattern, QueryShape } from './pattern.ts'

/** The shape of a parsed query. */
export function shapeOfQuery(statement: Statement): QueryShape {
  const { tree, values } = new Opener('any list').open(statement)
  return {
    key: formatStatement(tree),
    values,
    line: () => onOneLine(formatStatement(new Opener('any list', 'keep names').open(statement).tree)),
  }
}

/**
 * Parses a line of the list: a query in which `?` matches any value and a literal value is required. Throws
 * `LanguageError`, with a position if the text has one.
 */
export function parseQueryPattern(text: string): QueryPattern {
  const { tree, values } = new Opener('open lists').open(parsePattern(text))
  return { key: formatStatement(tree), values }
}

/** Replaces values by `?` and records them in the order of the walk, which depends on the structure alone. */
class Opener {
  readonly #lists: 'any list' | 'open lists'
  readonly #names: 'open names' | 'keep names'
  readonly #values: (string | null)[] = []
  /** The originals of open positions that are names. */
  readonly #originals = new WeakMap<object, Expression>()

  /**
   * `lists`: whether a list can contain fixed values. The number of values of a list is not part of the
   * shape, so a line cannot require any.
   */
  constructor(lists: 'any list' | 'open lists', names: 'open names' | 'keep names' = 'open names') {
    this.#lists = lists
    this.#names = names
  }

  open(statement: Statement): { readonly tree: Statement; readonly values: readonly (string | null)[] } {
    const tree = rewrite(statement, {
      expression: expression => this.#expression(expression),
      get: get => this.#page<Get>(get),
      nest: nest => this.#page<Nest>(nest),
    })
    return { tree, values: this.#values }
  }

  #page<T extends Pick<Get, 'limit' | 'offset'>>(page: T): T {
    const open = (count: T['limit']) => count && this.#value(count)
    return { ...page, limit: open(page.limit), offset: open(page.offset) }
  }

  #expression(expression: Expression): Expression {
    switch (expression.kind) {
      case 'literal':
      case 'position':
      case 'named':
        return this.#value(expression)
      case 'negate':
        return isOpen(expression.operand) ? this.#negated(expression, expression.operand) : expression
      case 'array':
        return { ...expression, items: this.#list(expression.items) }
      case 'in': {
        const { set } = expression
        if (set.kind === 'in values') {
          return { ...expression, set: { ...set, values: this.#list(set.values) } }
        }
        // A list passed as one parameter is a list like any other.
        return isOpen(set) ? { ...expression, set: { kind: 'in values', values: [set], span: set.span } } : expression
      }
      case 'json step': {
        // The key of a JSON step is a name, like a column.
        const original = this.#names === 'keep names' ? this.#originals.get(expression.step) : undefined
        return original === undefined ? expression : { ...expression, step: original }
      }
      default:
        return expression
    }
  }

  #value(value: Literal | Parameter): Parameter {
    const open: Parameter = { kind: 'named', name: PLACEHOLDER, span: value.span }
    this.#values.push(value.kind === 'literal' ? `${value.type} ${value.value}` : null)
    if (value.kind === 'literal') this.#originals.set(open, value)
    return open
  }

  /** `-5` is a value like `5`. */
  #negated(negate: Negate, operand: Parameter): Parameter {
    const original = this.#originals.get(operand)
    if (original !== undefined) this.#originals.set(operand, { ...negate, operand: original })
    const value = this.#values.pop() ?? null
    this.#values.push(value === null ? null : `- ${value}`)
    return operand
  }

  /** A list of any length becomes one placeholder. Its values are the last that were recorded. */
  #list(items: readonly Expression[]): readonly Expression[] {
    const [first] = items
    if (first === undefined || !items.every(isOpen)) return items
    const values = this.#values.splice(-items.length, items.length, null)
    const demanded = values.findIndex(value => value !== null)
    if (this.#lists === 'open lists' && demanded >= 0) {
      throw new LanguageError('the list of "in" matches any values; write in (?)', items[demanded]?.span ?? NOWHERE)
    }
    return [first]
  }
}

function isOpen(expression: Expression): expression is Parameter {
  return expression.kind === 'named' && expression.name === PLACEHOLDER
}

/** The canonical form has a line per clause; the only other line breaks are those inside names and texts. */
function onOneLine(text: string): string {
  return text.replace(/\n */g, ' ')
}

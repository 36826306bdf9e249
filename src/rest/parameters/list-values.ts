/** Lists of values in a query string, and the PostgreSQL array and range literals that they become. */
import { quoteElement, toArrayLiteral } from '../../text/array-text.ts'

/**
 * Parses the elements of `(a,"b,c",d)`; the parentheses are optional. An element in double quotes can contain
 * any character, with `\"` for a quote and `\\` for a backslash. Empty parentheses are the empty list.
 * Parsing stops after `itemsMax` elements.
 */
export function parseListItems(
  text: string,
  fail: (message: string) => never,
  itemsMax: number = Number.POSITIVE_INFINITY,
): readonly string[] {
  const inner = text.startsWith('(') && text.endsWith(')') && text.length >= 2 ? text.slice(1, -1) : text
  if (inner === '') return []
  const items: string[] = []
  let at = 0
  for (;;) {
    if (items.length === itemsMax) fail(tooManyValues(itemsMax))
    if (inner[at] === '"') {
      let item = ''
      at += 1
      while (at < inner.length && inner[at] !== '"') {
        if (inner[at] === '\\') at += 1
        item += inner[at] ?? ''
        at += 1
      }
      if (at >= inner.length) fail('has a list element whose closing double quote is missing')
      at += 1
      if (at < inner.length && inner[at] !== ',')
        fail('has text after a quoted list element; separate elements with a comma')
      items.push(item)
    } else {
      const comma = inner.indexOf(',', at)
      const end = comma < 0 ? inner.length : comma
      items.push(inner.slice(at, end))
      at = end
    }
    if (at >= inner.length) return items
    at += 1
  }
}

/** The error message for a list with too many values, in any notation. */
export function tooManyValues(max: number): string {
  return (
    `has more than ${max} values, the limit for one list (max_in_values); ` +
    'send several requests, or filter by a range or a join'
  )
}

/**
 * Matches PostgreSQL's text form of an array: `{a,b}`, or `[0:1]={a,b}` if the subscripts do not start at 1
 * (PostgreSQL manual, 8.15.6).
 */
const ARRAY_LITERAL = /^(?:(?:\[[+-]?\d+:[+-]?\d+\])+=)?\{.*\}$/s

/**
 * Converts the operand of an array operator such as `contains`: an array literal is unchanged, `(a,b)` is a
 * list, and anything else is a single element.
 */
export function toArrayOperand(text: string, fail: (message: string) => never): string {
  if (ARRAY_LITERAL.test(text)) return text
  if (text.startsWith('(') && text.endsWith(')')) return toArrayLiteral(parseListItems(text, fail))
  return toArrayLiteral([text])
}

/**
 * Converts the operand of a range operator: a range literal is unchanged, and a single value becomes a range
 * that contains only that value.
 */
export function toRangeOperand(text: string): string {
  if (/^(\[|\().*(\]|\))$/s.test(text) || text === 'empty') return text
  const bound = quoteElement(text)
  return `[${bound},${bound}]`
}

/** Converts the operand of a multirange operator. */
export function toMultirangeOperand(text: string): string {
  return text.startsWith('{') ? text : `{${toRangeOperand(text)}}`
}

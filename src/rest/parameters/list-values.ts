/** Lists of values in a query string, and the array and range literals PostgreSQL takes them as. */
import { printElements, quoteElement } from '../body/array-text.ts'

/**
 * Elements of `(a,"b,c",d)`, the parentheses optional. An element in double quotes may contain anything, with `\"` and
 * `\\` for the quote and the back-slash. Nothing between the parentheses is the empty list. Elements past `itemsMax` are not read.
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

/** The limit holds for every notation of a list. */
export function tooManyValues(max: number): string {
  return `has more than ${max} values, the limit for one list (max_in_values); send several requests, or filter by a range or a join`
}

/** PostgreSQL's text form of a one-dimensional array. */
export function toArrayLiteral(items: readonly string[]): string {
  return printElements(items.map(quoteElement))
}

/** What PostgreSQL writes as an array: `{a,b}`, or `[0:1]={a,b}` where its elements do not count from 1 (PostgreSQL manual, 8.15.6). */
const ARRAY_LITERAL = /^(?:(?:\[[+-]?\d+:[+-]?\d+\])+=)?\{.*\}$/s

/** The operand of `contains` and its kin on an array column: an array as it is, `(a,b)` as a list, else one element. */
export function toArrayOperand(text: string, fail: (message: string) => never): string {
  if (ARRAY_LITERAL.test(text)) return text
  if (text.startsWith('(') && text.endsWith(')')) return toArrayLiteral(parseListItems(text, fail))
  return toArrayLiteral([text])
}

/** The same on a range column: a range as it is, a single value as the range that holds just it. */
export function toRangeOperand(text: string): string {
  if (/^(\[|\().*(\]|\))$/s.test(text) || text === 'empty') return text
  const bound = quoteElement(text)
  return `[${bound},${bound}]`
}

/** And on a multirange column. */
export function toMultirangeOperand(text: string): string {
  return text.startsWith('{') ? text : `{${toRangeOperand(text)}}`
}

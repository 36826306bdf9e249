/**
 * Execution plans of reads by a list of keys. PostgreSQL plans a prepared statement for its values until it
 * estimates that a generic plan does not cost more. A generic plan is estimated for ten keys, so it seems to
 * cost more than a plan for three: PostgreSQL would plan every time, which takes longer than the read.
 * Short lists are therefore filled with a repeated key, which changes neither the result nor the keys that an
 * index is searched for. PostgreSQL still decides whether the generic plan is good enough.
 */
import type { BoundStatement, StatementValue } from '../compile/statement.ts'
import type { Command } from '../postgres/types.ts'

/** The number of elements that PostgreSQL assumes for an unknown array (`estimate_array_length`). */
const ASSUMED = 10

/**
 * Longer lists have a separate prepared statement, because the plan for a few keys can be wrong for a
 * thousand.
 */
const SHORT_MAX = 100

/** The text of the statement for long lists: the same statement under another key of prepared statements. */
const LONG = '/* many keys */ '

/** The command of a statement. */
export function toCommand({ statement, values }: BoundStatement): Command {
  if (statement.kind !== 'read' && statement.kind !== 'paged') return { text: statement.text, parameters: values }
  const { keyLists } = statement
  if (keyLists.length === 0) return { text: statement.text, parameters: values }
  const filled = [...values]
  let isLong = false
  for (const index of keyLists) {
    const list = values[index]
    if (typeof list !== 'string') continue
    const { count, last } = elementsOf(list)
    if (count > SHORT_MAX) isLong = true
    else if (count > 0 && count < ASSUMED)
      filled[index] = `${list.slice(0, -1)}${`,${list.slice(last, -1)}`.repeat(ASSUMED - count)}}`
  }
  return isLong ? { text: LONG + statement.text, parameters: values } : { text: statement.text, parameters: filled }
}

/**
 * The number of elements of an array in PostgreSQL's text form, up to one more than `SHORT_MAX`, and where
 * the last one begins. An element in quotation marks can contain commas.
 */
function elementsOf(list: Extract<StatementValue, string>): { readonly count: number; readonly last: number } {
  if (!list.startsWith('{') || list === '{}') return { count: 0, last: 0 }
  let count = 1
  let last = 1
  let isQuoted = false
  for (let index = 1; index < list.length && count <= SHORT_MAX; index++) {
    const character = list[index]
    if (character === '\\') index += 1
    else if (character === '"') isQuoted = !isQuoted
    else if (character === ',' && !isQuoted) {
      count += 1
      last = index + 1
    }
  }
  return { count, last }
}

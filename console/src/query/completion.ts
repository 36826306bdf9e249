/**
 * Suggestions for a position of a text: the words that the grammar expects there, and the tables and columns
 * that the caller can see.
 */
import { parse, QuerySyntaxError } from '../../../src/language/index.ts'
import type { Schema, Table } from '../schema.ts'

export interface Suggestion {
  readonly label: string
  readonly kind: 'keyword' | 'table' | 'column'
  /** The type of a column; otherwise empty. */
  readonly detail: string
  /** The text to insert: a name that is not a word is in backticks. */
  readonly text: string
}

export interface Suggestions {
  /** Where the word begins that a suggestion replaces. */
  readonly from: number
  readonly options: readonly Suggestion[]
}

/** A character that begins no token, so the parser reports what it expects at this position. */
const NOTHING = '\u0001'

export function suggest(text: string, position: number, schema: Schema): Suggestions {
  const before = text.slice(0, position)
  const from = position - (/[\p{L}\p{N}_]*$/u.exec(before)?.[0].length ?? 0)
  const expected = expectedAt(text.slice(0, from))
  const source = /([\p{L}_][\p{L}\p{N}_]*)\.$/u.exec(text.slice(0, from))?.[1]
  if (source !== undefined) return { from, options: columnsOf(tableOf(source, text, schema)) }
  const isName = (pattern: RegExp): boolean => expected.some(one => pattern.test(one))
  const keywords = expected
    .filter(one => /^[a-z][a-z_]*( by)?$/.test(one))
    .map((label): Suggestion => ({ label, kind: 'keyword', detail: '', text: label }))
  const tables = isName(/table name/)
    ? [...schema.keys()].map((label): Suggestion => ({ label, kind: 'table', detail: '', text: printName(label) }))
    : []
  const columns = isName(/expression|column name/) ? mentioned(text, schema).flatMap(columnsOf) : []
  return { from, options: [...columns, ...tables, ...keywords] }
}

function expectedAt(text: string): readonly string[] {
  try {
    parse(`${text}${NOTHING}`)
  } catch (error) {
    if (error instanceof QuerySyntaxError && error.offset >= text.trimEnd().length) return error.expected
  }
  return []
}

/** The tables whose names the text contains. */
function mentioned(text: string, schema: Schema): readonly Table[] {
  const words = new Set(text.match(/[\p{L}_][\p{L}\p{N}_]*/gu))
  return [...schema.values()].filter(table => words.has(table.name))
}

/** The table with a name, or that a source of the text renames to it: `orders o`, `orders as o`. */
function tableOf(name: string, text: string, schema: Schema): Table | undefined {
  const known = schema.get(name)
  if (known !== undefined) return known
  for (const [, source = '', alias] of text.matchAll(
    /([\p{L}_][\p{L}\p{N}_.]*)\s+(?:as\s+)?([\p{L}_][\p{L}\p{N}_]*)/gu,
  ))
    if (alias === name && schema.has(source)) return schema.get(source)
  return undefined
}

function columnsOf(table: Table | undefined): readonly Suggestion[] {
  const columns = table?.columns ?? []
  return columns.map(({ name, type }) => ({ label: name, kind: 'column', detail: type, text: printName(name) }))
}

/** Names that PostgreSQL reads unchanged need no backticks; a dot separates the schema. */
function printName(name: string): string {
  return /^[a-z_][a-z0-9_]*(\.[a-z_][a-z0-9_]*)?$/.test(name) ? name : `\`${name.replaceAll('`', '``')}\``
}

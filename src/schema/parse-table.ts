/**
 * Parses tables with their columns and directives, and domains. A line break or a comma ends a column or
 * directive; inside parentheses, line breaks have no meaning.
 */

import {
  type Cursor,
  expectSeparator,
  expectSymbol,
  failExpecting,
  keywordAt,
  readName,
  readTableName,
  refuseAt,
  skipBlanks,
  skipInLine,
  spanSince,
  takeKeyword,
  takeSymbol,
} from './cursor.ts'
import { type ExpressionEnd, readExpression } from './expression.ts'
import type {
  Check,
  DomainDefinition,
  Exclusion,
  ForeignKeyDefinition,
  KeyConstraint,
  PartitionDefinition,
  SchemaColumn,
  TableDefinition,
} from './model.ts'
import {
  readCheck,
  readExclusion,
  readForeignKey,
  readKey,
  readParenthesized,
  readPartitionClause,
  readReference,
} from './parse-constraint.ts'
import { readType } from './type-name.ts'

type Mutable<T> = { -readonly [K in keyof T]: T[K] }

interface Body {
  readonly columns: SchemaColumn[]
  readonly keys: KeyConstraint[]
  readonly foreignKeys: ForeignKeyDefinition[]
  readonly checks: Check[]
  readonly exclusions: Exclusion[]
  partition: PartitionDefinition | null
  enabled: boolean
  forced: boolean
}

/** table = "table" table "{" { column | directive } "}" ; */
export function readTableDefinition(cursor: Cursor, start: number): TableDefinition {
  const name = readTableName(cursor, 'the name of a table')
  expectSymbol(cursor, '{')
  const body: Body = {
    ...{ columns: [], keys: [], foreignKeys: [], checks: [], exclusions: [] },
    ...{ partition: null, enabled: false, forced: false },
  }
  for (skipBlanks(cursor); !takeSymbol(cursor, '}'); skipBlanks(cursor)) {
    readItem(cursor, body)
    expectSeparator(cursor)
  }
  const { enabled, forced, ...parts } = body
  return { kind: 'table definition', name, ...parts, rowSecurity: { enabled, forced }, span: spanSince(cursor, start) }
}

/** Words that begin a directive; a column with such a name is written in backticks. */
export const DIRECTIVES: ReadonlySet<string> = new Set([
  ...['primary_key', 'unique', 'foreign_key', 'check', 'exclude', 'partition_by', 'enable_rls', 'force_rls'],
])

/**
 * directive = ( "primary_key" | "unique" ) names { "nulls_not_distinct" | "without_overlaps" | timing }
 *           | "foreign_key" names reference
 *           | "check" "(" expr ")" | "exclude" [ "using" method ] "(" elements ")"
 *             [ "where" "(" expr ")" ] [ timing ]
 *           | "partition_by" strategy "(" elements ")" | "enable_rls" | "force_rls" ;
 */
function readItem(cursor: Cursor, body: Body): void {
  const start = cursor.at
  const keyword = keywordAt(cursor)
  if (!DIRECTIVES.has(keyword)) {
    body.columns.push(readColumn(cursor))
    return
  }
  cursor.at += keyword.length
  skipInLine(cursor)
  switch (keyword) {
    case 'primary_key':
    case 'unique':
      body.keys.push(readKey(cursor, start, keyword === 'unique' ? 'unique' : 'primary key'))
      return
    case 'foreign_key':
      body.foreignKeys.push(readForeignKey(cursor, start))
      return
    case 'check':
      body.checks.push(readCheck(cursor, start))
      return
    case 'exclude':
      body.exclusions.push(readExclusion(cursor, start))
      return
    case 'partition_by':
      if (body.partition !== null) refuseAt(cursor, start, 'the table already has "partition_by"')
      body.partition = readPartitionClause(cursor, start)
      return
    case 'enable_rls':
      body.enabled = true
      return
    default:
      body.forced = true
  }
}

const MODIFIERS = [
  ...['primary_key', 'not_null', 'nullable', 'unique', 'default', 'identity', 'generated', 'references', 'check'],
]

/** Words that end the expression of a default without parentheses. */
const AFTER_DEFAULT: ReadonlySet<string> = new Set(MODIFIERS)

export const DEFAULT_END: ExpressionEnd = { line: true, keywords: AFTER_DEFAULT }

/** column = name type { modifier } ; each modifier once, except checks. */
function readColumn(cursor: Cursor): SchemaColumn {
  const start = cursor.at
  const name = readName(cursor, 'a column')
  skipInLine(cursor)
  const column: Mutable<Omit<SchemaColumn, 'span'>> & { readonly checks: Check[] } = {
    ...{ kind: 'column definition', name, type: readType(cursor), primaryKey: false, notNull: false, unique: false },
    ...{ default: null, identity: null, generated: null, references: null, checks: [] },
  }
  const seen = new Set<string>()
  let end = cursor.at
  for (skipInLine(cursor); MODIFIERS.includes(keywordAt(cursor)); skipInLine(cursor)) {
    const at = cursor.at
    const modifier = keywordAt(cursor)
    if (modifier !== 'check' && seen.has(modifier)) refuseAt(cursor, at, `the column already has "${modifier}"`)
    cursor.at += modifier.length
    readModifier(cursor, at, modifier, column)
    seen.add(modifier)
    end = cursor.at
  }
  if (seen.has('nullable') && (column.notNull || column.primaryKey)) {
    refuseAt(cursor, start, 'the column is "nullable" and also "not_null" or "primary_key"')
  }
  if ([column.default, column.identity, column.generated].filter(value => value !== null).length > 1) {
    refuseAt(cursor, start, 'a column has only one of "default", "identity" and "generated"')
  }
  if (!/[,}\r\n]/.test(cursor.text[cursor.at] ?? '\n')) {
    failExpecting(cursor, [...MODIFIERS.filter(word => !seen.has(word)), ',', 'the end of the line', '}'])
  }
  return { ...column, span: { start, end } }
}

function readModifier(
  cursor: Cursor,
  start: number,
  modifier: string,
  column: Mutable<Omit<SchemaColumn, 'span'>> & { readonly checks: Check[] },
): void {
  skipInLine(cursor)
  switch (modifier) {
    case 'primary_key':
      column.primaryKey = true
      return
    case 'not_null':
      column.notNull = true
      return
    case 'unique':
      column.unique = true
      return
    case 'default':
      column.default = readExpression(cursor, DEFAULT_END)
      return
    case 'identity':
      column.identity = takeKeyword(cursor, 'always') ? 'always' : 'by default'
      return
    case 'generated': {
      const expression = readParenthesized(cursor)
      skipInLine(cursor)
      const isVirtual = takeKeyword(cursor, 'virtual')
      if (!isVirtual) takeKeyword(cursor, 'stored')
      column.generated = { expression, storage: isVirtual ? 'virtual' : 'stored' }
      return
    }
    case 'references':
      column.references = readReference(cursor, start, 1)
      return
    case 'check':
      column.checks.push(readCheck(cursor, start))
  }
}

/** domain = "domain" name type { "not_null" | "default" expr | "check" "(" expr ")" } ; on one line. */
export function readDomain(cursor: Cursor, start: number): DomainDefinition {
  const name = readTableName(cursor, 'the name of a domain')
  skipInLine(cursor)
  const type = readType(cursor)
  const checks: Check[] = []
  let notNull = false
  let value: string | null = null
  let end = cursor.at
  for (;;) {
    skipInLine(cursor)
    const at = cursor.at
    if (!notNull && takeKeyword(cursor, 'not_null')) notNull = true
    else if (value === null && takeKeyword(cursor, 'default')) {
      skipInLine(cursor)
      value = readExpression(cursor, DEFAULT_END)
    } else if (takeKeyword(cursor, 'check')) checks.push(readCheck(cursor, at))
    else break
    end = cursor.at
  }
  return { kind: 'domain', name, type, notNull, default: value, checks, span: { start, end } }
}

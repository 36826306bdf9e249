/**
 * Parses the text of a schema document. Keywords are case-insensitive; `#` and `--` begin comments, which the
 * tree does not contain.
 *
 * document = { extension | enum | domain | table | index | view | function | policy | comment } ;
 *
 * Throws only `SchemaSyntaxError`, in time linear in the text. The summary checks whether names refer to
 * anything.
 */

import {
  type Cursor,
  expectKeyword,
  expectSeparator,
  expectSymbol,
  failExpecting,
  keywordAt,
  openCursor,
  readMethod,
  readName,
  readNames,
  readTableName,
  readTextLiteral,
  skipBlanks,
  spanSince,
  takeKeyword,
  takeSymbol,
} from './cursor.ts'
import { readElements, readExpression, TO_LINE_END } from './expression.ts'
import type {
  CommentDefinition,
  CommentTarget,
  EnumDefinition,
  IndexDefinition,
  Name,
  PolicyDefinition,
  PolicyOperation,
  SchemaDocument,
  SchemaType,
  ViewDefinition,
} from './model.ts'
import { readFunction } from './parse-function.ts'
import { readDomain, readTableDefinition } from './parse-table.ts'
import { readQuery } from './query-text.ts'
import { readType } from './type-name.ts'

type Parts = { -readonly [K in keyof Omit<SchemaDocument, 'kind' | 'span'>]: SchemaDocument[K][number][] }

export function parseSchema(text: string): SchemaDocument {
  const cursor = openCursor(text)
  const parts: Parts = {
    ...{ extensions: [], enums: [], domains: [], tables: [], indexes: [] },
    ...{ views: [], functions: [], policies: [], comments: [] },
  }
  for (skipBlanks(cursor); cursor.at < text.length; skipBlanks(cursor)) readPart(cursor, parts)
  return { kind: 'document', ...parts, span: { start: 0, end: text.length } }
}

const PARTS = [
  ...[
    'table',
    'index',
    'unique index',
    'policy',
    'enum',
    'domain',
    'view',
    'materialized view',
    'function',
    'extension',
  ],
  'comment',
]

function readPart(cursor: Cursor, parts: Parts): void {
  const start = cursor.at
  const keyword = keywordAt(cursor)
  cursor.at += keyword.length
  skipBlanks(cursor)
  switch (keyword) {
    case 'table':
      parts.tables.push(readTableDefinition(cursor, start))
      return
    case 'index':
      parts.indexes.push(readIndex(cursor, start, false))
      return
    case 'unique':
      expectKeyword(cursor, 'index')
      parts.indexes.push(readIndex(cursor, start, true))
      return
    case 'policy':
      parts.policies.push(readPolicy(cursor, start))
      return
    case 'enum':
      parts.enums.push(readEnum(cursor, start))
      return
    case 'domain':
      parts.domains.push(readDomain(cursor, start))
      return
    case 'view':
      parts.views.push(readView(cursor, start, false))
      return
    case 'materialized':
      expectKeyword(cursor, 'view')
      parts.views.push(readView(cursor, start, true))
      return
    case 'function':
      parts.functions.push(readFunction(cursor, start))
      return
    case 'extension':
      parts.extensions.push(readName(cursor, 'the name of an extension'))
      return
    case 'comment':
      parts.comments.push(readComment(cursor, start))
      return
    default:
      cursor.at = start
      failExpecting(cursor, PARTS)
  }
}

/**
 * index = [ "unique" ] "index" name "on" table [ "using" method ] "(" elements ")" [ "nulls_not_distinct" ] [
 * "include" names ] [ "where" expr ] ;
 */
function readIndex(cursor: Cursor, start: number, unique: boolean): IndexDefinition {
  skipBlanks(cursor)
  const name = readName(cursor, 'the name of an index')
  expectKeyword(cursor, 'on')
  skipBlanks(cursor)
  const table = readTableName(cursor, 'a table')
  skipBlanks(cursor)
  const method = takeKeyword(cursor, 'using') ? readMethod(cursor) : null
  expectSymbol(cursor, '(')
  const elements = readElements(cursor)
  const [nullsDistinct, include, where] = readIndexEnd(cursor)
  return {
    ...{ kind: 'index definition', name, table, unique, nullsDistinct, method, elements, include, where },
    span: spanSince(cursor, start),
  }
}

function readIndexEnd(cursor: Cursor): [boolean, readonly Name[], string | null] {
  let end = cursor.at
  skipBlanks(cursor)
  const nullsDistinct = !takeKeyword(cursor, 'nulls_not_distinct')
  if (!nullsDistinct) end = cursor.at
  skipBlanks(cursor)
  const include = takeKeyword(cursor, 'include') ? readNames(cursor) : []
  if (include.length > 0) end = cursor.at
  skipBlanks(cursor)
  if (!takeKeyword(cursor, 'where')) {
    cursor.at = end
    return [nullsDistinct, include, null]
  }
  skipBlanks(cursor)
  return [nullsDistinct, include, readExpression(cursor, TO_LINE_END)]
}

const OPERATIONS: readonly PolicyOperation[] = ['all', 'select', 'insert', 'update', 'delete']

/** policy = "policy" name "on" table { clause } ; each clause once, in any order. */
function readPolicy(cursor: Cursor, start: number): PolicyDefinition {
  const name = readName(cursor, 'the name of a policy')
  expectKeyword(cursor, 'on')
  skipBlanks(cursor)
  const table = readTableName(cursor, 'a table')
  let operation: PolicyOperation | null = null
  let roles: readonly Name[] | null = null
  let restrictive = false
  let using: string | null = null
  let withCheck: string | null = null
  for (;;) {
    const end = cursor.at
    skipBlanks(cursor)
    if (operation === null && takeKeyword(cursor, 'for')) operation = readOperation(cursor)
    else if (roles === null && takeKeyword(cursor, 'to')) roles = readRoles(cursor)
    else if (!restrictive && takeKeyword(cursor, 'restrictive')) restrictive = true
    else if (using === null && takeKeyword(cursor, 'using')) using = readQuery(cursor)
    else if (withCheck === null && takeKeyword(cursor, 'with_check')) withCheck = readQuery(cursor)
    else {
      cursor.at = end
      break
    }
  }
  // `public` includes all roles, so others beside it have no effect.
  const named = roles?.some(role => role.text === 'public') ? [] : (roles ?? [])
  return {
    ...{ kind: 'policy', name, table, operation: operation ?? 'all', roles: named, restrictive, using, withCheck },
    span: spanSince(cursor, start),
  }
}

function readOperation(cursor: Cursor): PolicyOperation {
  skipBlanks(cursor)
  const operation = OPERATIONS.find(word => takeKeyword(cursor, word))
  return operation ?? failExpecting(cursor, OPERATIONS)
}

function readRoles(cursor: Cursor): readonly Name[] {
  const roles: Name[] = []
  for (;;) {
    skipBlanks(cursor)
    roles.push(readName(cursor, 'a role'))
    const end = cursor.at
    skipBlanks(cursor)
    if (takeSymbol(cursor, ',')) continue
    cursor.at = end
    return roles
  }
}

/** enum = "enum" name "{" label { "," label } "}" ; a line break separates too. */
function readEnum(cursor: Cursor, start: number): EnumDefinition {
  const name = readTableName(cursor, 'the name of an enum')
  expectSymbol(cursor, '{')
  const labels: Name[] = []
  for (skipBlanks(cursor); !takeSymbol(cursor, '}'); skipBlanks(cursor)) {
    labels.push(readLabel(cursor))
    expectSeparator(cursor)
  }
  return { kind: 'enum', name, labels, span: spanSince(cursor, start) }
}

function readLabel(cursor: Cursor): Name {
  const start = cursor.at
  if (cursor.text[start] !== "'") return readName(cursor, "a label, or 'a label' in quotes")
  const text = readTextLiteral(cursor, 'a label')
  return { kind: 'name', text, span: spanSince(cursor, start) }
}

/** view = [ "materialized" ] "view" name [ "security_invoker" ] $$ query $$ ; */
function readView(cursor: Cursor, start: number, materialized: boolean): ViewDefinition {
  skipBlanks(cursor)
  const name = readTableName(cursor, 'the name of a view')
  skipBlanks(cursor)
  const securityInvoker = !materialized && takeKeyword(cursor, 'security_invoker')
  const query = readQuery(cursor)
  return { kind: 'view', name, materialized, securityInvoker, query, span: spanSince(cursor, start) }
}

/**
 * comment = "comment" "on" ( table | table "." name | "table" table | "type" name | "function" name "(" [
 * types ] ")" ) 'text' ; Two names without `table` before them are a table and its column.
 */
function readComment(cursor: Cursor, start: number): CommentDefinition {
  expectKeyword(cursor, 'on')
  skipBlanks(cursor)
  const on = readTarget(cursor)
  skipBlanks(cursor)
  const text = readTextLiteral(cursor, "the comment as 'text'")
  return { kind: 'comment', on, text, span: spanSince(cursor, start) }
}

function readTarget(cursor: Cursor): CommentTarget {
  const start = cursor.at
  const keyword = keywordAt(cursor)
  const first = readName(cursor, 'a table')
  const end = cursor.at
  skipBlanks(cursor)
  // A table may be called `table`: then a dot or the text follows.
  const isKeyword = cursor.text[cursor.at] !== '.' && cursor.text[cursor.at] !== "'"
  if (isKeyword && keyword === 'table') {
    return { kind: 'relation', name: readTableName(cursor, 'a table'), span: spanSince(cursor, start) }
  }
  if (isKeyword && keyword === 'type') {
    return { kind: 'type name', name: readTableName(cursor, 'a type'), span: spanSince(cursor, start) }
  }
  if (isKeyword && keyword === 'function') {
    const name = readTableName(cursor, 'a function')
    return { kind: 'function name', name, arguments: readTypes(cursor), span: spanSince(cursor, start) }
  }
  cursor.at = end
  const names = [first]
  while (names.length < 3 && takeSymbol(cursor, '.')) names.push(readName(cursor, 'a name'))
  return columnOrRelation(names, spanSince(cursor, start))
}

function columnOrRelation(names: readonly Name[], span: CommentTarget['span']): CommentTarget {
  const [first, second, third] = names as [Name, Name?, Name?]
  if (second === undefined) {
    return { kind: 'relation', name: { kind: 'table', schema: null, name: first.text, span: first.span }, span }
  }
  const schema = third === undefined ? null : first.text
  const table = third === undefined ? first : second
  const tableSpan = { start: first.span.start, end: table.span.end }
  return {
    kind: 'column',
    table: { kind: 'table', schema, name: table.text, span: tableSpan },
    column: third ?? second,
    span,
  }
}

function readTypes(cursor: Cursor): readonly SchemaType[] {
  expectSymbol(cursor, '(')
  const types: SchemaType[] = []
  skipBlanks(cursor)
  if (takeSymbol(cursor, ')')) return types
  do {
    skipBlanks(cursor)
    types.push(readType(cursor))
    skipBlanks(cursor)
  } while (takeSymbol(cursor, ','))
  if (!takeSymbol(cursor, ')')) failExpecting(cursor, [',', ')'])
  return types
}

/**
 * Lines of the query allow-list that name what the schema does not have, so that no request can match them: tables and functions of requests and texts, and
 * columns that requests filter by, select or sort by. Other names are judged when a query is asked.
 */
import { entriesOf } from '../../access/list/allow-list.ts'
import { readListFile } from '../../access/list/list-file.ts'
import type { Catalog, Table } from '../../catalog/model.ts'
import { GatewayError } from '../../errors.ts'
import { parsePattern } from '../../language/syntax/parse.ts'
import { QuerySyntaxError } from '../../language/syntax/syntax-error.ts'
import { LanguageError } from '../../language/tree/error.ts'
import { visit } from '../../language/tree/walk.ts'
import { nearest } from '../../text/nearest.ts'
import { shorten } from '../../text/shorten.ts'
import { readFilterKey } from '../parameters/filter-notation.ts'
import { decodeComponent } from '../parameters/query-string.ts'
import { parsePath } from '../path.ts'

/** `file:line: what is missing`, in order. Lines that are malformed are skipped: whoever reads the list reports them. Rejects with `AllowListError`. */
export async function misfitLines(file: string, catalog: Catalog): Promise<readonly string[]> {
  const found: string[] = []
  for (const { entry, line, isRequest } of entriesOf(await readListFile(file, 'allow_list_path'))) {
    const missing = missingIn(entry, isRequest, catalog)
    if (missing !== null) found.push(`${file}:${line}: ${missing}`)
  }
  return found
}

function missingIn(entry: string, isRequest: boolean, catalog: Catalog): string | null {
  try {
    return isRequest ? missingInRequest(entry, catalog) : missingInText(entry, catalog)
  } catch (error) {
    if (error instanceof GatewayError || error instanceof LanguageError || error instanceof QuerySyntaxError)
      return null
    throw error
  }
}

function missingInText(text: string, catalog: Catalog): string | null {
  let missing: string | null = null
  visit(parsePattern(text), {
    table({ schema, name }) {
      const resource = schema === null || schema === catalog.schemas[0] ? name : `${schema}.${name}`
      if (!catalog.tables.has(resource)) missing ??= noTable(resource, catalog)
    },
  })
  return missing
}

function missingInRequest(entry: string, catalog: Catalog): string | null {
  const target = entry.split(/\s+/)[1] ?? ''
  const mark = target.indexOf('?')
  const route = parsePath(mark < 0 ? target : target.slice(0, mark))
  if (route === null) return null
  if (route.kind === 'rpc') return catalog.functions.has(route.function) ? null : noFunction(route.function, catalog)
  if (!('table' in route)) return null
  const table = catalog.tables.get(route.table)
  if (table === undefined) return noTable(route.table, catalog)
  const child = route.kind === 'children' ? route.child : null
  const relation = table.relations.find(({ name, table: of }) => child === name || child === of)
  if (child !== null && relation === undefined) return `"${shorten(child)}" is not a child of "${table.resource}"`
  const rows = relation === undefined ? table : catalog.tables.get(relation.table)
  if (rows === undefined || mark < 0) return null
  const columns = target
    .slice(mark + 1)
    .split('&')
    .flatMap(columnsOf)
  const missing = columns.find(name => !rows.columnByName.has(name))
  return missing === undefined ? null : noColumn(missing, rows)
}

/** Parameters whose values are names of columns. */
const COLUMN_LISTS: ReadonlySet<string> = new Set(['select', 'returning', 'distinct', 'column', 'group_by', 'sort'])

/** A name that stands alone, in a list perhaps with an alias before it, a sign or an order. What is written otherwise is left alone. */
const LISTED = /^-?(?:[a-z_]\w*:(?!asc|desc))?([a-z_]\w*)(?::(?:asc|desc)[a-z.]*)?$/i

function columnsOf(piece: string): readonly string[] {
  const equals = piece.indexOf('=')
  const name = decodeComponent(equals < 0 ? piece : piece.slice(0, equals))
  if (equals < 0) {
    const key = readFilterKey(name)
    return key === null ? [] : [key.path.column]
  }
  if (!COLUMN_LISTS.has(name)) return []
  return decodeComponent(piece.slice(equals + 1))
    .split(',')
    .flatMap(item => LISTED.exec(item.trim())?.[1] ?? [])
}

function noTable(name: string, { tables, unpublishedViews }: Catalog): string {
  const unpublished = unpublishedViews.get(name)
  if (unpublished !== undefined) return `the view "${shorten(name)}" is not published: ${unpublished}`
  return `there is no table "${shorten(name)}"${suggestion(name, tables.keys())}`
}

function noFunction(name: string, { functions }: Catalog): string {
  return `there is no function "${shorten(name)}"${suggestion(name, functions.keys())}`
}

function noColumn(name: string, { resource, columnByName }: Table): string {
  return `table "${resource}" has no column "${shorten(name)}"${suggestion(name, columnByName.keys())}`
}

function suggestion(name: string, known: Iterable<string>): string {
  const near = nearest(name, known)
  return near === null ? '' : `; did you mean "${near}"?`
}

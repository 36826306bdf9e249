/** Everything about one table: the routes that the caller may use, with parameters, bodies and responses. */
import type { DocumentPart, PathItem, ResponseObject } from './model.ts'
import type { PageLimits } from './parameters.ts'
import { tableParameters } from './parameters.ts'
import { type ReadOptions, readPaths } from './reads.ts'
import { pageResponse, rowResponse, rowsResponse } from './responses.ts'
import { tableSchemas } from './table-schemas.ts'
import { canCreate, returnedColumns, type VisibleTable, type VisibleTables } from './visible-tables.ts'
import { createdResponse, writePaths } from './writes.ts'

/** The part of a table. */
export function tablePart(seen: VisibleTable, tables: VisibleTables, options: ReadOptions & PageLimits): DocumentPart {
  const { table, key } = seen
  const { schemas, read, written } = tableSchemas(seen, tables)
  const responses: (readonly [string, ResponseObject])[] = []
  if (read !== null) {
    responses.push([`list-${key}`, pageResponse(read.page, read, options.defaultLimit)])
    responses.push([`get-${key}`, rowResponse('The row.', read, 'X-Cache', 'ETag')])
  }
  if (written !== null) {
    responses.push(
      [`written-${key}`, rowResponse('The row.', written, 'Preference-Applied', 'ETag')],
      [`many-${key}`, rowsResponse('The rows.', written, 'Preference-Applied')],
    )
  }
  if (canCreate(seen)) responses.push([`created-${key}`, createdResponse(seen, written)])
  return {
    tag: { name: seen.tag, ...(table.comment === null ? {} : { description: table.comment }) },
    paths: merged([...readPaths(seen, tables, options), ...writePaths(seen, written, tables)]),
    schemas,
    parameters: tableParameters(seen, written === null ? [] : returnedColumns(seen).columns),
    responses,
  }
}

function merged(paths: readonly (readonly [string, PathItem])[]): DocumentPart['paths'] {
  const items = new Map<string, PathItem>()
  for (const [path, item] of paths) items.set(path, { ...items.get(path), ...item })
  return [...items]
}

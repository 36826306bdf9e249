/** The read operations of a table (docs/reference/reading.md): list, one row, children, aggregates, plan. */
import { pairKey } from './keys.ts'
import { type OperationObject, type PathItem, parameterRef, responseRef } from './model.ts'
import { ADMIN_SECURITY } from './security.ts'
import { canRead, type VisibleTable, type VisibleTables } from './visible-tables.ts'

/** Options of reads. */
export interface ReadOptions {
  /** `admin`: requires the admin token. */
  readonly explainEndpoint: 'on' | 'admin' | 'off'
}

/** The paths of a table's reads. */
export function readPaths(
  seen: VisibleTable,
  tables: VisibleTables,
  options: ReadOptions,
): readonly (readonly [string, PathItem])[] {
  if (!canRead(seen)) return []
  const { table, path, has } = seen
  const hasKey = table.primaryKey.length > 0
  return [
    ...(has('list') ? [[path, { get: list(seen) }] as const] : []),
    ...(has('one') && hasKey ? [[`${path}/{id}`, { ...idOf(seen), get: one(seen) }] as const] : []),
    ...(has('aggregate') ? [[`${path}/aggregate`, { get: aggregate(seen) }] as const] : []),
    ...(has('explain') && options.explainEndpoint !== 'off'
      ? [[`${path}/_explain`, { get: explain(seen, options) }] as const]
      : []),
    ...(has('children') && hasKey ? childPaths(seen, tables) : []),
  ]
}

/** The parameter of a path with the key of a row. */
export function idOf({ key }: VisibleTable): Pick<PathItem, 'parameters'> {
  return { parameters: [parameterRef(`id-${key}`)] }
}

function list(seen: VisibleTable): OperationObject {
  const { table, key } = seen
  return {
    operationId: `list-${key}`,
    tags: [seen.tag],
    summary: `List rows of ${table.resource}`,
    parameters: [seen.parameters.list, parameterRef('count'), parameterRef('unless')],
    responses: { 200: responseRef(`list-${key}`), 304: responseRef('unchanged') },
  }
}

function one(seen: VisibleTable): OperationObject {
  const { table, key } = seen
  return {
    operationId: `get-${key}`,
    tags: [seen.tag],
    summary: `Get a row of ${table.resource}`,
    parameters: [parameterRef(`select-${key}`), ...seen.parameters.expand, parameterRef('unless')],
    responses: { 200: responseRef(`get-${key}`), 304: responseRef('unchanged') },
  }
}

/** `_aggregate` is an undocumented alias for old clients. */
function aggregate(seen: VisibleTable): OperationObject {
  const { table, key } = seen
  return {
    operationId: `aggregate-${key}`,
    tags: [seen.tag],
    summary: `Aggregate ${table.resource}`,
    parameters: [
      parameterRef('fn'),
      ...[`column-${key}`, `groups-${key}`, 'limit-all', 'offset'].map(parameterRef),
      seen.parameters.aggregated,
    ],
    responses: { 200: responseRef('aggregate') },
  }
}

function explain(seen: VisibleTable, { explainEndpoint }: ReadOptions): OperationObject {
  const { table, key } = seen
  return {
    operationId: `explain-${key}`,
    tags: [seen.tag],
    summary: `Explain the list of ${table.resource}`,
    ...(explainEndpoint === 'admin' ? { security: ADMIN_SECURITY } : {}),
    parameters: seen.parameters.explain,
    responses: { 200: responseRef('plan') },
  }
}

function childPaths(seen: VisibleTable, tables: VisibleTables) {
  const { table, key, path, relations } = seen
  return relations.flatMap(({ child, target }): readonly (readonly [string, PathItem])[] => {
    const children = tables.get(target.resource)
    if (child === null || children === undefined) return []
    const operation: OperationObject = {
      operationId: `children-${pairKey(table.resource, child)}`,
      tags: [seen.tag],
      summary: `List ${target.resource} of a row of ${table.resource}`,
      parameters: [
        parameterRef(`id-${key}`),
        children.parameters.children,
        parameterRef('count'),
        parameterRef('unless'),
      ],
      responses: { 200: responseRef(`list-${children.key}`), 304: responseRef('unchanged') },
    }
    return [[`${path}/{id}/${encodeURIComponent(child)}`, { get: operation }]]
  })
}

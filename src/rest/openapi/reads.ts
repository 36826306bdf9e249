/** The reads of a table: list, one row, children, aggregates, plan (specification 4.1 to 4.4; decisions 3, 4). */
import { pairKey } from './keys.ts'
import { type Operation, type PathItem, parameterRef, responseRef } from './model.ts'
import { ADMIN_SECURITY } from './security.ts'
import { canRead, type SeenTable, type SeenTables } from './seen.ts'

export interface ReadOptions {
  /** `admin`: with the admin token only. */
  readonly explainEndpoint: 'on' | 'admin' | 'off'
}

export function readPaths(
  seen: SeenTable,
  tables: SeenTables,
  options: ReadOptions,
): readonly (readonly [string, PathItem])[] {
  if (!canRead(seen)) return []
  const { table, path, has } = seen
  const hasKey = table.primaryKey.length > 0
  return [
    ...(has('list') ? [[path, { get: list(seen) }] as const] : []),
    ...(has('one') && hasKey ? [[`${path}/{id}`, { get: one(seen) }] as const] : []),
    ...(has('aggregate') ? aggregates(seen) : []),
    ...(has('explain') && options.explainEndpoint !== 'off'
      ? [[`${path}/_explain`, { get: explain(seen, options) }] as const]
      : []),
    ...(has('children') && hasKey ? childPaths(seen, tables) : []),
  ]
}

function list(seen: SeenTable): Operation {
  const { table, key } = seen
  return {
    operationId: `list-${key}`,
    tags: [table.resource],
    summary: `List the rows of ${table.resource}`,
    parameters: [seen.parameters.list, parameterRef('prefer-count')],
    responses: { 200: responseRef(`list-${key}`) },
    errors: 'read',
  }
}

function one(seen: SeenTable): Operation {
  const { table, key } = seen
  return {
    operationId: `get-${key}`,
    tags: [table.resource],
    summary: `Get one row of ${table.resource}`,
    parameters: [parameterRef(`id-${key}`), parameterRef(`select-${key}`), ...seen.parameters.expand],
    responses: { 200: responseRef(`get-${key}`) },
    errors: 'read',
  }
}

/** The path with an underscore is the same for old clients. */
function aggregates(seen: SeenTable): readonly (readonly [string, PathItem])[] {
  const { table, key, path } = seen
  const operation: Operation = {
    operationId: `aggregate-${key}`,
    tags: [table.resource],
    summary: `Count, add up or compare the rows of ${table.resource}`,
    description: '`fn` other than `count` needs `column`. `limit` and `offset` are for the groups of `group_by`.',
    parameters: [
      parameterRef('fn'),
      ...[`column-${key}`, `groups-${key}`, 'limit-all', 'offset'].map(parameterRef),
      seen.parameters.conditions,
    ],
    responses: { 200: responseRef('aggregate') },
    errors: 'read',
  }
  const alias: Operation = { ...operation, operationId: `aggregate_alias-${key}`, deprecated: true }
  return [
    [`${path}/aggregate`, { get: operation }],
    [`${path}/_aggregate`, { get: alias }],
  ]
}

function explain(seen: SeenTable, { explainEndpoint }: ReadOptions): Operation {
  const { table, key } = seen
  return {
    operationId: `explain-${key}`,
    tags: [table.resource],
    summary: `How PostgreSQL reads the list of ${table.resource}`,
    description: 'The statement of the same list is run, with EXPLAIN ANALYZE.',
    ...(explainEndpoint === 'admin' ? { security: ADMIN_SECURITY } : {}),
    parameters: [seen.parameters.list],
    responses: { 200: responseRef('plan') },
    errors: 'read',
  }
}

function childPaths({ table, key, path, relations }: SeenTable, tables: SeenTables) {
  return relations.flatMap(({ child, target }): readonly (readonly [string, PathItem])[] => {
    const children = tables.get(target.resource)
    if (child === null || children === undefined) return []
    const operation: Operation = {
      operationId: `children-${pairKey(table.resource, child)}`,
      tags: [table.resource],
      summary: `List the rows of ${target.resource} that belong to one of ${table.resource}`,
      parameters: [parameterRef(`id-${key}`), children.parameters.list, parameterRef('prefer-count')],
      responses: { 200: responseRef(`list-${children.key}`) },
      errors: 'read',
    }
    return [[`${path}/{id}/${encodeURIComponent(child)}`, { get: operation }]]
  })
}

/** Hand-written catalogs for tests of pure functions. */
import { buildFunctionReach } from '../../src/catalog/function-reach.ts'
import type { Catalog, Column, DataType, Relation, Table } from '../../src/catalog/model.ts'

const CATEGORIES: Readonly<Record<string, string>> = {
  text: 'S',
  varchar: 'S',
  int4: 'N',
  int8: 'N',
  numeric: 'N',
  bool: 'B',
  jsonb: 'U',
  tsvector: 'U',
  timestamptz: 'D',
}

export function baseType(name: string): DataType {
  return { oid: 1, schema: 'pg_catalog', name, kind: 'base', category: CATEGORIES[name] ?? 'U', of: null, labels: [] }
}

export function domainOver(name: string, of: DataType): DataType {
  return { oid: 2, schema: 'public', name, kind: 'domain', category: of.category, of, labels: [] }
}

export function arrayOf(of: DataType): DataType {
  return { oid: 3, schema: of.schema, name: `_${of.name}`, kind: 'array', category: 'A', of, labels: [] }
}

export function tableOf(
  name: string,
  columns: Readonly<Record<string, DataType | string>>,
  parts: {
    readonly primaryKey?: readonly string[]
    readonly relations?: readonly Relation[]
    readonly schema?: string
  } = {},
): Table {
  const list = Object.entries(columns).map(([columnName, type]): Column => {
    const dataType = typeof type === 'string' ? baseType(type) : type
    return {
      name: columnName,
      type: dataType,
      typeText: dataType.name,
      nullable: false,
      default: null,
      generated: null,
      identity: null,
      comment: null,
      example: null,
    }
  })
  const { schema = 'public', primaryKey = [], relations = [] } = parts
  return {
    ...{
      oid: 1,
      schema,
      name,
      resource: schema === 'public' ? name : `${schema}.${name}`,
      kind: 'table',
      comment: null,
    },
    ...{
      columns: list,
      columnByName: new Map(list.map(column => [column.name, column])),
      primaryKey,
      unique: [],
      constraints: new Map(),
      foreignKeys: [],
      relations,
    },
    rowSecurity: { enabled: true, forced: true },
    writable: { insert: true, update: true, delete: true },
  }
}

export function catalogOf(...tables: readonly Table[]): Catalog {
  return {
    fingerprint: 'f',
    serverVersion: 180_000,
    schemas: ['public', 'sales'],
    tables: new Map(tables.map(table => [table.resource, table])),
    functions: new Map(),
    dependencies: new Map(),
    knowsDependencies: false,
    viewKeys: [],
    mediaHandlers: [],
    representations: new Map(),
    unpublishedViews: new Map(),
    partitions: new Map(),
    inlinedBodies: new Map(),
    settingReaders: null,
    functionReach: buildFunctionReach([], [], [], []),
  }
}

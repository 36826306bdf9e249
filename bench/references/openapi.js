/**
 * The OpenAPI document of a large schema, created once in a new process. Prints milliseconds and megabytes.
 */
import { EVERYTHING } from '../../dist/access/rights.js'
import { openApiDocument } from '../../dist/openapi/document.js'

const tables = Number(process.argv[2])

const base = (name, category) => ({
  ...{ oid: 1, schema: 'pg_catalog', name, kind: 'base', category, of: null, labels: [] },
})
const INT8 = base('int8', 'N')
const TEXT = base('text', 'S')
const STATUS = { ...base('status', 'E'), schema: 'public', kind: 'enum', labels: ['new', 'paid', 'shipped'] }
const COLUMNS = [
  ['id', INT8, 'bigint'],
  ['tenant_id', base('uuid', 'U'), 'uuid'],
  ['parent_id', INT8, 'bigint'],
  ['name', TEXT, 'text'],
  ['email', base('varchar', 'S'), 'character varying(320)'],
  ['status', STATUS, 'status'],
  ['tags', { ...base('_text', 'A'), kind: 'array', of: TEXT }, 'text[]'],
  ['total', base('numeric', 'N'), 'numeric(10,2)'],
  ['meta', base('jsonb', 'U'), 'jsonb'],
  ['active', base('bool', 'B'), 'boolean'],
  ['created_at', base('timestamptz', 'D'), 'timestamp with time zone'],
]

const way = (n, cardinality) => ({
  name: `table_${n}`,
  shortName: cardinality === 'one' ? 'parent' : null,
  cardinality,
  table: `table_${n}`,
  columns: [cardinality === 'one' ? 'parent_id' : 'id'],
  targetColumns: [cardinality === 'one' ? 'id' : 'parent_id'],
  junction: null,
  constraints: [`table_${n}_key`],
})

/** Twelve columns per table, one with a unique name; each table refers to the previous one. */
function tableOf(n) {
  const columns = [...COLUMNS, [`code_${n}`, TEXT, 'text']].map(([name, type, typeText]) => ({
    ...{ name, type, typeText, nullable: name === 'parent_id', default: null, generated: null, identity: null },
    ...{ comment: `The ${name} of table ${n}.`, example: null },
  }))
  return {
    ...{ oid: n, schema: 'public', name: `table_${n}`, resource: `table_${n}`, kind: 'table', comment: `Table ${n}.` },
    columns,
    columnByName: new Map(columns.map(column => [column.name, column])),
    primaryKey: ['id'],
    unique: [],
    foreignKeys: [],
    relations: [...(n > 1 ? [way(n - 1, 'one')] : []), ...(n < tables ? [way(n + 1, 'many')] : [])],
    rowSecurity: { enabled: true, forced: true },
    writable: { insert: true, update: true, delete: true },
  }
}

const catalog = {
  ...{ fingerprint: '', serverVersion: 180_000, schemas: ['public'], functions: new Map() },
  tables: new Map(Array.from({ length: tables }, (_, n) => [`table_${n + 1}`, tableOf(n + 1)])),
}
const options = {
  ...{ version: '1', requireAuth: true, rpcRequireSchemaQualified: false, allowed: null, explainEndpoint: 'on' },
  ...{ adminGuard: true, defaultLimit: 50, maxResultRows: 10_000 },
}

// Wall-clock time, because this is how long the event loop is blocked.
const began = performance.now()
const document = openApiDocument({ catalog, rights: EVERYTHING }, options)
process.stdout.write(`${performance.now() - began} ${document.length / 2 ** 20}`)

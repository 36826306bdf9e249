/** Facts about a decoded table that its description in the stream lacks. */
import { ROUTING_COLUMNS_MAX, ROUTING_TYPES } from '../install/capture.ts'
import type { ReplicatedRelation } from '../postgres/replication/pgoutput.ts'
import type { Command, Result } from '../postgres/types.ts'
import type { ColumnText, TypeText } from './row-json.ts'

/** A decoded table as it appears in the change log. */
export interface LoggedTable {
  /** The names of the table; for a partition, of the partitioned table. */
  readonly schema: string
  readonly name: string
  /** `schema.name`. */
  readonly qualified: string
  readonly columns: readonly ColumnText[]
  /**
   * The positions of the key's columns, in the order of `jsonb`; empty if the table has no key, or the row
   * lacks a column of it.
   */
  readonly key: readonly { readonly label: string; readonly index: number }[]
  /** True if `jsonb` prints the JSON of every key as it was written. */
  readonly hasPlainKey: boolean
  /** The positions of the columns that read policies use, whose values are stored for a bulk change. */
  readonly routing: readonly number[]
}

const ROUTING_TYPE_OIDS: ReadonlySet<number> = new Set(ROUTING_TYPES.values())

/** The root of a partition, the key and the columns of read policies now; no row if the table was dropped. */
const ROOT = `SELECT CASE WHEN r.oid <> c.oid THEN n.nspname END,
  CASE WHEN r.oid <> c.oid THEN r.relname END, coalesce((
    SELECT json_agg(a.attname ORDER BY k.place) FROM pg_catalog.pg_constraint AS p
    CROSS JOIN LATERAL unnest(p.conkey) WITH ORDINALITY AS k(attnum, place)
    JOIN pg_catalog.pg_attribute AS a ON a.attrelid = r.oid AND a.attnum = k.attnum
    WHERE p.conrelid = r.oid AND p.contype = 'p'), '[]'), coalesce((
    SELECT json_agg(DISTINCT a.attname) FROM pg_catalog.pg_policy AS p
    JOIN pg_catalog.pg_depend AS d ON d.classid = 'pg_catalog.pg_policy'::regclass AND d.objid = p.oid
      AND d.refclassid = 'pg_catalog.pg_class'::regclass AND d.refobjid = p.polrelid
    JOIN pg_catalog.pg_attribute AS a ON a.attrelid = p.polrelid AND a.attnum = d.refobjsubid AND a.attnum > 0
    WHERE p.polrelid = r.oid AND p.polcmd IN ('r', '*')), '[]')
  FROM pg_catalog.pg_class AS c
  JOIN pg_catalog.pg_class AS r ON r.oid = coalesce(pg_catalog.pg_partition_root(c.oid), c.oid)
  JOIN pg_catalog.pg_namespace AS n ON n.oid = r.relnamespace WHERE c.oid = $1::oid`

/** Types without their domains. A type that was dropped has no row. */
const TYPES = `WITH RECURSIVE found(asked, oid) AS (
  SELECT asked, asked FROM unnest($1::oid[]) AS asked
  UNION ALL
  SELECT f.asked, t.typbasetype FROM found AS f JOIN pg_catalog.pg_type AS t ON t.oid = f.oid WHERE t.typtype = 'd'
)
SELECT f.asked, coalesce(e.oid, t.oid), e.typdelim FROM found AS f
  JOIN pg_catalog.pg_type AS t ON t.oid = f.oid AND t.typtype <> 'd'
  LEFT JOIN pg_catalog.pg_type AS e
    ON e.oid = t.typelem AND t.typsubscript = 'pg_catalog.array_subscript_handler'::regproc`

/** Looks up a table that the stream has described. */
export async function describeTable(
  run: (commands: readonly Command[]) => Promise<readonly Result[]>,
  relation: ReplicatedRelation,
): Promise<LoggedTable> {
  const oids = [...new Set(relation.columns.map(({ typeOid }) => typeOid))]
  const [roots, found] = await run([
    { text: ROOT, parameters: [String(relation.oid)] },
    { text: TYPES, parameters: [`{${oids.join(',')}}`] },
  ])
  const [rootSchema, rootName, key, policyColumns] = roots?.rows[0]?.map(cell => cell?.toString()) ?? []
  const schema = rootSchema ?? relation.schema
  const name = rootName ?? relation.name
  const byOid = new Map<number, TypeText>()
  for (const row of found?.rows ?? []) {
    const [asked, oid, delimiter] = row.map(cell => cell?.toString() ?? null)
    byOid.set(Number(asked), { oid: Number(oid), delimiter: delimiter ?? null })
  }
  const columns = relation.columns.map(column => ({
    name: column.name,
    label: JSON.stringify(column.name),
    // The text of an unknown type is its JSON too.
    type: byOid.get(column.typeOid) ?? { oid: 0, delimiter: null },
  }))
  const keyColumns = JSON.parse(key ?? '[]') as readonly string[]
  const routing = new Set(JSON.parse(policyColumns ?? '[]') as readonly string[])
  const positions = keyColumns.toSorted(orderOfJsonb).map(part => ({
    label: JSON.stringify(part),
    index: columns.findIndex(column => column.name === part),
  }))
  const types = positions.map(({ index }) => columns[index]?.type)
  return {
    hasPlainKey: types.every(type => type === undefined || (type.delimiter === null && !REPRINTED.has(type.oid))),
    ...{ schema, name, qualified: `${schema}.${name}`, columns },
    // A column that was renamed after the change is not found: which rows changed is then unknown.
    key: positions.some(({ index }) => index === -1) ? [] : positions,
    routing: relation.columns
      .flatMap((column, index) => (routing.has(column.name) && ROUTING_TYPE_OIDS.has(column.typeOid) ? [index] : []))
      .slice(0, ROUTING_COLUMNS_MAX),
  }
}

/** float4, float8, json and jsonb: the same value has several texts. */
const REPRINTED: ReadonlySet<number> = new Set([700, 701, 114, 3802])

/** `jsonb` has shorter names first. */
function orderOfJsonb(one: string, other: string): number {
  return Buffer.byteLength(one) - Buffer.byteLength(other) || Buffer.compare(Buffer.from(one), Buffer.from(other))
}

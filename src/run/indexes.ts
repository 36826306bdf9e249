/** Reads the indexes of tables, for advice on a read that is too expensive. Only queried after a refusal. */

import { catalogueStatement } from '../compile/derive.ts'
import type { Mention } from '../compile/mentions.ts'
import type { Identity } from '../identity/identity.ts'
import type { ResultRow, Runner, ServerTime } from './run.ts'

/** An index. */
export interface TableIndex {
  readonly schema: string
  readonly table: string
  readonly name: string
  /** The keys in order; null for an expression. */
  readonly columns: readonly (string | null)[]
  /** True if it is sorted (`btree`). */
  readonly ordered: boolean
}

const TEXT = `
  SELECT n.nspname, t.relname, x.relname, m.amname = 'btree', (
    SELECT pg_catalog.json_agg(a.attname ORDER BY k.place)
    FROM ROWS FROM (pg_catalog.unnest(i.indkey::pg_catalog.int2[])) WITH ORDINALITY AS k (number, place)
    LEFT JOIN pg_catalog.pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = k.number
    WHERE k.place <= i.indnkeyatts
  )
  FROM pg_catalog.json_to_recordset($1::pg_catalog.json) AS w (schema pg_catalog.text, "table" pg_catalog.text)
  JOIN pg_catalog.pg_namespace AS n ON n.nspname = w.schema
  JOIN pg_catalog.pg_class AS t ON t.relnamespace = n.oid AND t.relname = w."table"
  JOIN pg_catalog.pg_index AS i ON i.indrelid = t.oid AND i.indisvalid AND i.indpred IS NULL
  JOIN pg_catalog.pg_class AS x ON x.oid = i.indexrelid
  JOIN pg_catalog.pg_am AS m ON m.oid = x.relam
  ORDER BY 1, 2, 3
  LIMIT 500`

/** The indexes without a condition of the tables mentioned. */
export async function readIndexes(
  runner: Pick<Runner, 'read'>,
  identity: Identity,
  mentions: readonly Mention[],
  worked: ServerTime,
): Promise<readonly TableIndex[]> {
  if (mentions.length === 0) return []
  const tables = new Map(mentions.map(({ schema, table }) => [JSON.stringify([schema, table]), { schema, table }]))
  // Reads only the system catalog, and always has the same text.
  const lookup = catalogueStatement(TEXT, [JSON.stringify([...tables.values()])])
  const [rows = []] = await runner.read(identity, [lookup], worked).result
  return rows.map(indexOf)
}

function indexOf([schema, table, name, ordered, columns]: ResultRow): TableIndex {
  const text = (cell: Buffer | null | undefined) => cell?.toString() ?? ''
  return {
    schema: text(schema),
    table: text(table),
    name: text(name),
    columns: JSON.parse(text(columns)),
    ordered: text(ordered) === 't',
  }
}

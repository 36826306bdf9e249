/**
 * Triggers that write down what a statement did (design 6): one for each kind of statement, once for all of its rows. They belong to nobody who writes: whoever
 * may change a row need not be able to see the log, and cannot write anything else into it.
 *
 * The arguments of a trigger are the schema and name of the table that the changes are those of – a partition's are its root's – and the columns of its key.
 * Where the key is not what it was when the trigger was made, the entry's key has a null, and says no more than that something changed.
 */
import { ROWS_MAX } from './change-log.ts'

/**
 * The rows as JSON are the same whoever writes them. The rest keeps names apart from those that others may have made; `pg_temp` is named so that it is last.
 */
const PINNED = `SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET TimeZone = 'UTC' SET DateStyle = 'ISO' SET IntervalStyle = 'postgres' SET extra_float_digits = '1' SET bytea_output = 'hex'`

const BULK = `INSERT INTO svc.change ("schema", "table", operation) VALUES (TG_ARGV[0], TG_ARGV[1], 'B')`

/** Of a row's JSON, for keys of one column and of several: two plans, because the second costs more and is rare. A column that is not there is null in it. */
const KEYS: Readonly<Record<'one' | 'several', (row: string) => string>> = {
  one: row => `jsonb_build_object(TG_ARGV[2], ${row} -> TG_ARGV[2])`,
  several: row => `(SELECT jsonb_object_agg(k, ${row} -> k) FROM unnest(TG_ARGV[2:]) AS k)`,
}

interface Kind {
  readonly name: 'insert' | 'update' | 'delete'
  readonly referencing: string
  /** The transition table that says how many rows there are. */
  readonly counted: 'svc_new' | 'svc_old'
  /** The columns `before` and `after`, as JSON, in the order of the rows; `new` and `old` mean something else in a trigger. */
  readonly changed: Readonly<Record<'one' | 'many', string>>
  /** Where the key is. */
  readonly keyed: 'before' | 'after'
}

const always = (rows: string): Kind['changed'] => ({ one: rows, many: rows })

const KINDS: readonly Kind[] = [
  {
    name: 'insert',
    referencing: 'NEW TABLE AS svc_new',
    counted: 'svc_new',
    changed: always('SELECT NULL::json AS before, row_to_json(r.*) AS after FROM svc_new AS r OFFSET 0'),
    keyed: 'after',
  },
  {
    name: 'update',
    referencing: 'OLD TABLE AS svc_old NEW TABLE AS svc_new',
    counted: 'svc_new',
    changed: {
      one: 'SELECT row_to_json(o.*) AS before, row_to_json(r.*) AS after FROM svc_old AS o CROSS JOIN svc_new AS r OFFSET 0',
      // PostgreSQL adds a row to both tables at once: what stands at the same place is the same row.
      many: `SELECT before, after FROM (SELECT row_number() OVER () AS n, row_to_json(r.*) AS before FROM svc_old AS r) AS o
      JOIN (SELECT row_number() OVER () AS n, row_to_json(r.*) AS after FROM svc_new AS r) AS w USING (n) ORDER BY n OFFSET 0`,
    },
    keyed: 'after',
  },
  {
    name: 'delete',
    referencing: 'OLD TABLE AS svc_old',
    counted: 'svc_old',
    changed: always('SELECT row_to_json(r.*) AS before, NULL::json AS after FROM svc_old AS r OFFSET 0'),
    keyed: 'before',
  },
]

export interface CaptureTrigger {
  readonly name: string
  readonly event: string
  /** `REFERENCING …`, or nothing. */
  readonly referencing: string
  readonly function: string
}

export const CAPTURE_TRIGGERS: readonly CaptureTrigger[] = [
  ...KINDS.map(({ name, referencing }) => ({
    name: `svc_capture_${name}`,
    event: name.toUpperCase(),
    referencing: ` REFERENCING ${referencing}`,
    function: `capture_${name}`,
  })),
  { name: 'svc_capture_truncate', event: 'TRUNCATE', referencing: '', function: 'capture_truncate' },
]

export const CAPTURE: readonly string[] = [
  ...KINDS.map(functionOf),
  `CREATE OR REPLACE FUNCTION svc.capture_truncate() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  ${BULK};
  RETURN NULL;
END $$`,
]

function functionOf(kind: Kind): string {
  const { name, counted } = kind
  return `CREATE OR REPLACE FUNCTION svc.capture_${name}() RETURNS trigger
LANGUAGE plpgsql ${PINNED} AS $$
DECLARE
  total constant bigint := (SELECT count(*) FROM (SELECT FROM ${counted} LIMIT ${ROWS_MAX + 1}) AS counted);
  origin constant text := coalesce(current_setting('svc.origin', true), '');
BEGIN
  IF total = 0 THEN RETURN NULL; END IF;
  IF total > ${ROWS_MAX} OR TG_NARGS = 2 THEN
    ${BULK};
  ELSIF TG_NARGS = 3 THEN
    ${eitherWay(kind, rows => logged(kind, rows, KEYS.one))}
  ELSE
    ${eitherWay(kind, rows => logged(kind, rows, KEYS.several))}
  END IF;
  IF EXISTS (SELECT FROM svc.webhook_trigger AS t WHERE ${wanted(name)}) THEN
    ${eitherWay(kind, rows => told(kind, rows))}
  END IF;
  RETURN NULL;
END $$`
}

/** Few statements change more than a row, and for one its two versions need not be found by their places. */
function eitherWay({ changed: { one, many } }: Kind, print: (rows: string) => string): string {
  return one === many ? print(one) : `IF total = 1 THEN ${print(one)} ELSE ${print(many)} END IF;`
}

function logged({ name, keyed }: Kind, rows: string, key: (row: string) => string): string {
  const was = name === 'update' ? `nullif(${key('c.before')}, ${key('c.after')})` : 'NULL'
  const operation = name.slice(0, 1).toUpperCase()
  return `INSERT INTO svc.change ("schema", "table", operation, key, was, old, new)
    SELECT TG_ARGV[0], TG_ARGV[1], '${operation}', ${key(`c.${keyed}`)}, ${was}, c.before, c.after FROM (${rows}) AS c;`
}

function told({ name, keyed }: Kind, rows: string): string {
  return `INSERT INTO svc.webhook (id, trigger, "schema", "table", operation, new, old, created_at, key, tenant)
    SELECT 'msg_' || replace(gen_random_uuid()::text, '-', ''), t.name, TG_ARGV[0], TG_ARGV[1], TG_OP, c.after, c.before, clock_timestamp(),
      CASE WHEN t.by_key AND TG_NARGS > 2 THEN ${KEYS.several(`c.${keyed}`)}::text END, c.${keyed} ->> t.tenant_column
    FROM (${rows}) AS c, svc.webhook_trigger AS t WHERE ${wanted(name)};`
}

function wanted(name: Kind['name']): string {
  return `t."table" = TG_ARGV[1] AND t."schema" = TG_ARGV[0] AND '${name.toUpperCase()}' = ANY (t.operations) AND (t.source = 'database' OR origin <> '')`
}

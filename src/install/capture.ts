/**
 * Triggers that capture what a statement did (decision 0021): one for each kind of statement, called once for
 * all of its rows. They run as their owner: a role that may change a row does not need access to the log and
 * cannot write anything else to it.
 * The arguments of a trigger are the schema and name of the table – for a partition those of its root – and
 * the columns of its key. If the key has changed since the trigger was created, the entry's key contains a
 * null and means only that something changed.
 */
import { ROWS_MAX, SLOT_OF_NOW } from './change-log.ts'
import { OUTBOX_COLUMNS } from './outbox.ts'

/** The settings under which values are printed, by the triggers and by sessions that decode changes. */
export const TEXT_SETTINGS: readonly string[] = [
  "SET DateStyle = 'ISO'",
  "SET TimeZone = 'UTC'",
  "SET IntervalStyle = 'postgres'",
  "SET extra_float_digits = '1'",
  "SET bytea_output = 'hex'",
]

/**
 * The settings make rows print as the same JSON for every writer. The search path excludes objects that
 * others may have created; `pg_temp` is listed so that it comes last.
 */
const PINNED = ['SECURITY DEFINER SET search_path = pg_catalog, pg_temp', ...TEXT_SETTINGS].join(' ')

const BULK = `INSERT INTO svc.change ("schema", "table", operation) VALUES (TG_ARGV[0], TG_ARGV[1], 'B')`

/** Limit on the distinct values of a routing column that are stored for a bulk change. */
export const ROUTING_VALUES_MAX = 100

/** Limit on the columns whose values are stored. */
export const ROUTING_COLUMNS_MAX = 8

/** The types of routing columns, with their OIDs. They have PostgreSQL's own equality. */
export const ROUTING_TYPES: ReadonlyMap<string, number> = new Map(
  Object.entries({ text: 25, varchar: 1043, uuid: 2950, int2: 21, int4: 23, int8: 20 }),
)

/**
 * The routing values of a bulk change: for each column that a read policy uses, its values before and after
 * as a JSON array, unless there are too many. Only types with PostgreSQL's own equality are included. A write
 * must not fail because of its capture, so the column must also exist in the written table.
 */
function routingValues(tables: readonly string[]): string {
  const values = tables.map(name => `SELECT %1$I AS v FROM ${name}`).join(' UNION ')
  const distinctValues =
    `SELECT json_agg(v) FROM (SELECT DISTINCT v FROM (${values}) AS r LIMIT ${ROUTING_VALUES_MAX + 1}) AS whom ` +
    `HAVING count(*) <= ${ROUTING_VALUES_MAX}`
  return `FOR hook IN SELECT DISTINCT a.attname AS name FROM pg_policy AS p
      JOIN pg_depend AS d ON d.classid = 'pg_policy'::regclass AND d.objid = p.oid
        AND d.refclassid = 'pg_class'::regclass AND d.refobjid = p.polrelid
      JOIN pg_attribute AS a ON a.attrelid = p.polrelid AND a.attnum = d.refobjsubid AND a.attnum > 0
      JOIN pg_attribute AS w ON w.attrelid = TG_RELID AND w.attname = a.attname AND NOT w.attisdropped
      WHERE p.polrelid = to_regclass(format('%I.%I', TG_ARGV[0], TG_ARGV[1])) AND p.polcmd IN ('r', '*')
        AND w.atttypid IN (${[...ROUTING_TYPES.keys()].map(name => `'${name}'::regtype`).join(', ')})
      ORDER BY 1 LIMIT ${ROUTING_COLUMNS_MAX} LOOP
      EXECUTE format('${distinctValues}', hook.name) INTO row_after;
      CONTINUE WHEN row_after IS NULL;
      row_key := concat_ws(',', row_key, to_json(hook.name) || ':' || row_after);
    END LOOP;
    INSERT INTO svc.change ("schema", "table", operation, new)
      VALUES (TG_ARGV[0], TG_ARGV[1], 'B', ('{' || row_key || '}')::json)`
}

/**
 * The key in a row's JSON, for one column and for several: two variants, because the second costs more and is
 * rare. A missing column is null.
 */
const KEYS: Readonly<Record<'one' | 'several', (row: string) => string>> = {
  one: row => `jsonb_build_object(TG_ARGV[2], ${row} -> TG_ARGV[2])`,
  several: row => `(SELECT jsonb_object_agg(k, ${row} -> k) FROM unnest(TG_ARGV[2:]) AS k)`,
}

const LOG_COLUMNS = '"schema", "table", operation, key, was, old, new'

/** The names of a row's versions. */
interface Versions {
  readonly before: string
  readonly after: string
}

const ONE: Versions = { before: 'row_before', after: 'row_after' }
const MANY: Versions = { before: 'c.before', after: 'c.after' }

interface Kind {
  readonly name: 'insert' | 'update' | 'delete'
  readonly referencing: string
  /** The transition table that gives the number of rows. */
  readonly counted: 'svc_new' | 'svc_old'
  readonly transitions: readonly ('svc_new' | 'svc_old')[]
  /**
   * The columns `before` and `after` as JSON, in the order of the rows; `new` and `old` have another meaning
   * in a trigger.
   */
  readonly changed: string
  /** The same for a single row; `few` holds its version from the counted table. */
  readonly one: { readonly before: string; readonly after: string }
  /** The version that contains the key. */
  readonly keyed: 'before' | 'after'
}

const KINDS: readonly Kind[] = [
  {
    name: 'insert',
    referencing: 'NEW TABLE AS svc_new',
    counted: 'svc_new',
    transitions: ['svc_new'],
    changed: 'SELECT NULL::json AS before, row_to_json(r.*) AS after FROM svc_new AS r OFFSET 0',
    one: { before: 'NULL', after: 'few[1]' },
    keyed: 'after',
  },
  {
    name: 'update',
    referencing: 'OLD TABLE AS svc_old NEW TABLE AS svc_new',
    counted: 'svc_new',
    transitions: ['svc_old', 'svc_new'],
    // PostgreSQL adds a row to both transition tables at once, so equal positions mean the same row.
    changed: `SELECT before, after FROM (SELECT row_number() OVER () AS n, row_to_json(r.*) AS before
  FROM svc_old AS r) AS o
      JOIN (SELECT row_number() OVER () AS n, row_to_json(r.*) AS after FROM svc_new AS r) AS w USING (n)
        ORDER BY n OFFSET 0`,
    one: { before: '(SELECT row_to_json(r.*) FROM svc_old AS r)', after: 'few[1]' },
    keyed: 'after',
  },
  {
    name: 'delete',
    referencing: 'OLD TABLE AS svc_old',
    counted: 'svc_old',
    transitions: ['svc_old'],
    changed: 'SELECT row_to_json(r.*) AS before, NULL::json AS after FROM svc_old AS r OFFSET 0',
    one: { before: 'few[1]', after: 'NULL' },
    keyed: 'before',
  },
]

/** A capture trigger. */
export interface CaptureTrigger {
  readonly name: string
  readonly event: string
  /** `REFERENCING …`, or empty. */
  readonly referencing: string
  readonly function: string
}

/** The capture triggers, one per kind of statement. */
export const CAPTURE_TRIGGERS: readonly CaptureTrigger[] = [
  ...KINDS.map(({ name, referencing }) => ({
    name: `svc_capture_${name}`,
    event: name.toUpperCase(),
    referencing: ` REFERENCING ${referencing}`,
    function: `capture_${name}`,
  })),
  { name: 'svc_capture_truncate', event: 'TRUNCATE', referencing: '', function: 'capture_truncate' },
]

/** Creates the capture functions. */
export const CAPTURE: readonly string[] = [
  ...KINDS.map(functionOf),
  `CREATE OR REPLACE FUNCTION svc.capture_truncate() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  ${BULK};
  RETURN NULL;
END $$`,
]

/**
 * Most statements change one row, and each statement in here costs more than its work on a row: for one row
 * there are no more statements than inserts, with values instead of queries.
 */
function functionOf(kind: Kind): string {
  const { name, counted, one } = kind
  return `CREATE OR REPLACE FUNCTION svc.capture_${name}() RETURNS trigger
LANGUAGE plpgsql ${PINNED} AS $$
DECLARE
  few constant json[] := ARRAY(SELECT row_to_json(r.*) FROM ${counted} AS r LIMIT 2);
  origin constant text := coalesce(current_setting('svc.origin', true), '');
  row_before json;
  row_after json;
  row_key text;
  total bigint;
  hook record;
BEGIN
  IF cardinality(few) = 0 THEN RETURN NULL; END IF;
  IF cardinality(few) = 1 THEN
    row_before := ${one.before};
    row_after := ${one.after};
    IF TG_NARGS = 2 THEN
      ${BULK};
    ELSIF TG_NARGS = 3 THEN
      ${logOne(kind, KEYS.one)};
    ELSE
      ${logOne(kind, KEYS.several)};
    END IF;
    FOR hook IN SELECT t.name, t.by_key, t.tenant_column FROM svc.webhook_trigger AS t WHERE ${isListened(name)} LOOP
      row_key := NULL;
      IF hook.by_key AND TG_NARGS > 2 THEN row_key := ${keyText(kind, ONE)}; END IF;
      INSERT INTO svc.webhook (${OUTBOX_COLUMNS}) VALUES (${outboxValues(kind, 'hook', ONE, 'row_key')});
    END LOOP;
    RETURN NULL;
  END IF;
  total := (SELECT count(*) FROM (SELECT FROM ${counted} LIMIT ${ROWS_MAX + 1}) AS counted);
  IF total > ${ROWS_MAX} OR TG_NARGS = 2 THEN
    ${routingValues(kind.transitions)};
  ELSIF TG_NARGS = 3 THEN
    ${logMany(kind, KEYS.one)};
  ELSE
    ${logMany(kind, KEYS.several)};
  END IF;
  IF EXISTS (SELECT FROM svc.webhook_trigger AS t WHERE ${isListened(name)}) THEN
    INSERT INTO svc.webhook (${OUTBOX_COLUMNS})
      SELECT ${outboxValues(kind, 't', MANY, `CASE WHEN t.by_key AND TG_NARGS > 2 THEN ${keyText(kind, MANY)} END`)}
      FROM (${kind.changed}) AS c, svc.webhook_trigger AS t WHERE ${isListened(name)};
  END IF;
  RETURN NULL;
END $$`
}

function logOne({ name, keyed }: Kind, key: (row: string) => string): string {
  const was = name === 'update' ? `nullif(${key(ONE.before)}, ${key(ONE.after)})` : 'NULL'
  const values = `${key(ONE[keyed])}, ${was}, ${ONE.before}, ${ONE.after}`
  return `INSERT INTO svc.change (${LOG_COLUMNS}) VALUES (TG_ARGV[0], TG_ARGV[1], ${letterOf(name)}, ${values})`
}

/**
 * Reads each key once, because each read parses the row's JSON, and the clock once for the slot. `OFFSET 0`
 * keeps the planner from merging the subquery into its parent, which would read the keys again.
 */
function logMany({ name, keyed, changed }: Kind, key: (row: string) => string): string {
  const [keys, was] =
    name === 'update'
      ? [`${key(MANY.after)} AS key, ${key(MANY.before)} AS key_before`, 'nullif(k.key_before, k.key)']
      : [`${key(MANY[keyed])} AS key`, 'NULL']
  return `INSERT INTO svc.change (slot, ${LOG_COLUMNS})
      SELECT (SELECT ${SLOT_OF_NOW}), TG_ARGV[0], TG_ARGV[1], ${letterOf(name)}, k.key, ${was}, k.before, k.after
      FROM (SELECT ${keys}, c.before, c.after FROM (${changed}) AS c OFFSET 0) AS k`
}

/** The operation in the log, as SQL. */
function letterOf(name: Kind['name']): string {
  return `'${name.slice(0, 1).toUpperCase()}'`
}

/** `trigger`: the name of its row. */
function outboxValues({ keyed }: Kind, trigger: string, row: Versions, key: string): string {
  return `${trigger}.name, TG_ARGV[0], TG_ARGV[1], TG_OP, ${row.after}, ${row.before}, clock_timestamp(),
      ${key}, ${row[keyed]} ->> ${trigger}.tenant_column`
}

function keyText({ keyed }: Kind, row: Versions): string {
  return `${KEYS.several(row[keyed])}::text`
}

function isListened(name: Kind['name']): string {
  return (
    `t."table" = TG_ARGV[1] AND t."schema" = TG_ARGV[0] AND '${name.toUpperCase()}' = ANY ` +
    `(t.operations) AND (t.source = 'database' OR origin <> '')`
  )
}

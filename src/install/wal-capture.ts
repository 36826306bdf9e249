/**
 * Capture from the write-ahead log: a publication of the captured tables, a replication slot, and the
 * position up to which a gateway has stored their changes. A gateway decodes the slot and writes the change
 * log and the outbox (the folder "changes"), so writers run no trigger.
 */

/** How changes are captured. Tables that cannot be decoded are captured by triggers in either case. */
export type CaptureMode = 'wal' | 'triggers'

/** The publication of the tables that are captured from the write-ahead log. */
export const PUBLICATION = 'svc_changes'

/** The channel on which gateways learn that changes have been stored. */
export const STORED_CHANNEL = 'svc_stored'

/** The name of the slot. Slots belong to the whole server, so the name contains the database. */
export const SLOT_NAME: string = `('svc_' || (SELECT oid FROM pg_catalog.pg_database
  WHERE datname = pg_catalog.current_database()))`

/** True if role `r` may use slots. Amazon RDS has a role for this instead of the attribute. */
export const MAY_REPLICATE: string = `(r.rolreplication OR r.rolsuper OR EXISTS (SELECT FROM pg_catalog.pg_roles AS m
  WHERE m.rolname = 'rds_replication' AND pg_has_role(r.oid, m.oid, 'MEMBER')))`

/** The tables of the capture. `svc.wal` has one row while changes are captured from the write-ahead log. */
export const WAL_TABLES: readonly string[] = [
  `CREATE TABLE IF NOT EXISTS svc.wal (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  stored pg_lsn NOT NULL DEFAULT '0/0'
)`,
  `COMMENT ON TABLE svc.wal IS 'Present while changes are captured from the write-ahead log: every transaction that ` +
    `committed before "stored" is in the change log.'`,
  `CREATE TABLE IF NOT EXISTS svc.identity_before (
  relation oid PRIMARY KEY,
  identity "char" NOT NULL,
  index_name text
)`,
  `COMMENT ON TABLE svc.identity_before IS 'The replica identities of captured tables before they became FULL.'`,
  `CREATE OR REPLACE FUNCTION svc.await_writers(writers xid8[]) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$ BEGIN
  WHILE EXISTS (SELECT FROM unnest(writers) AS w(xid)
    WHERE NOT pg_visible_in_snapshot(w.xid, pg_current_snapshot()))
  LOOP PERFORM pg_sleep(0.001); END LOOP;
END $$`,
  `COMMENT ON FUNCTION svc.await_writers IS 'Waits until others see what these transactions have written: a commit ` +
    `is decoded a moment before, and with synchronous replication long before.'`,
]

/** Selects how changes are captured from now on. The repair then changes the tables. */
export function setCaptureMode(mode: CaptureMode): readonly string[] {
  return mode === 'wal'
    ? [
        `DO $$ BEGIN
  IF NOT EXISTS (SELECT FROM pg_catalog.pg_publication WHERE pubname = '${PUBLICATION}') THEN
    CREATE PUBLICATION ${PUBLICATION} WITH (publish = 'insert, update, delete, truncate');
  END IF;
END $$`,
        'INSERT INTO svc.wal DEFAULT VALUES ON CONFLICT DO NOTHING',
      ]
    : ['DELETE FROM svc.wal']
}

/** Removes the publication once no table is captured from the write-ahead log. */
export const DROP_UNUSED_PUBLICATION: string = `DO $$ BEGIN
  IF NOT EXISTS (SELECT FROM svc.wal) THEN DROP PUBLICATION IF EXISTS ${PUBLICATION}; END IF;
END $$`

/**
 * True for a table that can be decoded, where `r` is the table or the root of a partition: the output plugin
 * neither sends generated columns nor the rows of unlogged tables, and a row's JSON is made from the text of
 * its values, which is not possible for composite types and types with their own cast to JSON.
 */
const CAN_DECODE = `NOT EXISTS (SELECT FROM pg_catalog.pg_class AS u WHERE u.relpersistence <> 'p'
    AND (u.oid = r.oid OR u.oid IN (SELECT relid FROM pg_catalog.pg_partition_tree(r.oid))))
  AND NOT EXISTS (SELECT FROM pg_catalog.pg_attribute AS a JOIN pg_catalog.pg_type AS t ON t.oid = a.atttypid
    LEFT JOIN pg_catalog.pg_type AS b ON b.oid = CASE WHEN t.typtype = 'd' THEN t.typbasetype
      WHEN t.typsubscript = 'pg_catalog.array_subscript_handler'::regproc THEN t.typelem ELSE t.oid END
    WHERE a.attrelid = r.oid AND a.attnum > 0 AND NOT a.attisdropped
      AND (a.attgenerated <> '' OR b.oid IS NULL OR b.typtype NOT IN ('b', 'e', 'r', 'm')
        OR b.oid <> t.oid AND b.typsubscript = 'pg_catalog.array_subscript_handler'::regproc
        OR b.oid >= 16384 AND EXISTS (SELECT FROM pg_catalog.pg_cast AS x
          WHERE x.castsource = b.oid AND x.casttarget = 'json'::regtype)))`

/** How a table is captured, where `r` is the table or the root of a partition. */
export const SOURCE_OF_TABLE: string = `CASE WHEN EXISTS (SELECT FROM svc.wal) AND ${CAN_DECODE} THEN 'wal'
  ELSE 'triggers' END`

/** True if the publication has a table, where `r` is the table or the root of a partition. */
export const IS_PUBLISHED: string = `EXISTS (SELECT FROM pg_catalog.pg_publication_rel AS pr
  JOIN pg_catalog.pg_publication AS pb ON pb.oid = pr.prpubid
  WHERE pb.pubname = '${PUBLICATION}' AND pr.prrelid = r.oid)`

/**
 * Publishes a table, `it`. The lock lets no writer be in the middle of a transaction, part of which would be
 * missing. Old rows are needed to determine who could see them, and by webhooks, so the identity becomes
 * FULL.
 */
export const PUBLISH_TABLE: string = `EXECUTE format(
        'LOCK TABLE %I.%I IN SHARE ROW EXCLUSIVE MODE', it."schema", it."table");
      IF it.relkind = 'r' AND it.identity <> 'f' THEN
        INSERT INTO svc.identity_before (relation, identity, index_name)
          SELECT it.oid, it.identity, (SELECT i.relname FROM pg_index AS x JOIN pg_class AS i ON i.oid = x.indexrelid
            WHERE x.indrelid = it.oid AND x.indisreplident) ON CONFLICT DO NOTHING;
        EXECUTE format('ALTER TABLE ONLY %I.%I REPLICA IDENTITY FULL', it."schema", it."table");
      END IF;
      IF it.oid = it.root AND NOT it.published THEN
        EXECUTE format('ALTER PUBLICATION ${PUBLICATION} ADD TABLE ONLY %I.%I', it."schema", it."table");
      END IF;`

/** Restores the replica identities of tables that are no longer captured from the log. */
export function restoreIdentities(kept: string): string {
  return `FOR it IN SELECT b.*, n.nspname AS "schema", c.relname AS "table" FROM svc.identity_before AS b
      LEFT JOIN pg_catalog.pg_class AS c ON c.oid = b.relation
      LEFT JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
      WHERE ${kept}
    LOOP
      IF it."table" IS NOT NULL THEN
        EXECUTE format('ALTER TABLE ONLY %I.%I REPLICA IDENTITY ', it."schema", it."table") || CASE it.identity
          WHEN 'n' THEN 'NOTHING' WHEN 'i' THEN coalesce('USING INDEX ' || quote_ident(it.index_name), 'DEFAULT')
          ELSE 'DEFAULT' END;
      END IF;
      DELETE FROM svc.identity_before WHERE relation = it.relation;
    END LOOP;`
}

/** Removes the publication and restores identities, before schema `svc` is dropped. */
export const REMOVE_WAL_CAPTURE: string = `DO $$ DECLARE it record; BEGIN
  DROP PUBLICATION IF EXISTS ${PUBLICATION};
  IF to_regclass('svc.identity_before') IS NOT NULL THEN
    ${restoreIdentities('true')}
  END IF;
END $$`

/**
 * Creates the slot unless it exists. It must be the only statement that writes in its transaction. Reading
 * `svc.wal` first lets `svc uninstall`, which locks that table, find the slot afterwards. `major`: the
 * server's version; from 17 on, the slot is copied to standbys that synchronize slots.
 */
export function createSlotStatement(major: number): string {
  const failover = major >= 17 ? ', failover => true' : ''
  return `SELECT (SELECT c.lsn FROM pg_catalog.pg_create_logical_replication_slot(${SLOT_NAME}, 'pgoutput',
    false, false${failover}) AS c)::text FROM svc.wal
  WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_replication_slots WHERE slot_name = ${SLOT_NAME})`
}

/**
 * Ends the session that uses the slot, unless it was replaced: `condition` is about its row `s`. Its own role
 * and superusers may do so.
 */
export function endSlotSession(condition: string): string {
  return `SELECT pg_catalog.pg_terminate_backend(s.active_pid) FROM pg_catalog.pg_replication_slots AS s
  WHERE s.slot_name = ${SLOT_NAME} AND s.active_pid IS NOT NULL AND ${condition}`
}

/** Drops the slot if it is not in use; returns a row if it still exists. `condition`: as above. */
export function dropFreeSlot(condition: string): string {
  return `SELECT CASE WHEN s.active_pid IS NULL THEN pg_catalog.pg_drop_replication_slot(s.slot_name) END
  FROM pg_catalog.pg_replication_slots AS s WHERE s.slot_name = ${SLOT_NAME} AND ${condition}`
}

/**
 * Event triggers, which only a superuser can create (PostgreSQL manual, CREATE EVENT TRIGGER): they notify
 * gateways of schema changes immediately, and extend the capture to new tables, partitions and keys. Any
 * failure in them is only a warning, so that no DDL fails because of them.
 */
export const SCHEMA_EVENT_TRIGGERS: readonly string[] = [
  `CREATE OR REPLACE FUNCTION svc.schema_changed() RETURNS event_trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  changed boolean;
BEGIN
  IF current_setting('svc.repairing', true) = 'on' THEN RETURN; END IF;
  IF TG_EVENT = 'sql_drop' THEN
    changed := EXISTS (SELECT FROM pg_event_trigger_dropped_objects() AS o WHERE NOT o.is_temporary
      AND o.schema_name IS DISTINCT FROM 'svc');
  ELSE
    changed := EXISTS (SELECT FROM pg_event_trigger_ddl_commands() AS o WHERE o.schema_name IS NULL
      OR o.schema_name NOT IN ('pg_temp', 'svc'));
  END IF;
  IF NOT changed THEN RETURN; END IF;
  PERFORM pg_notify('svc_schema', '');
  IF TG_EVENT = 'ddl_command_end'
    AND TG_TAG IN ('CREATE TABLE', 'CREATE TABLE AS', 'SELECT INTO', 'ALTER TABLE',
      'CREATE FOREIGN TABLE', 'ALTER FOREIGN TABLE', 'CREATE SCHEMA', 'ALTER SCHEMA', 'GRANT', 'REVOKE') THEN
    PERFORM svc.repair();
  END IF;
EXCEPTION WHEN OTHERS THEN
  RAISE WARNING 'svc could not adapt to this change of the schema: %',
    SQLERRM USING HINT = 'Run SELECT svc.repair() later.';
END $$`,
  'DROP EVENT TRIGGER IF EXISTS svc_schema_changed',
  'DROP EVENT TRIGGER IF EXISTS svc_schema_dropped',
  'CREATE EVENT TRIGGER svc_schema_changed ON ddl_command_end EXECUTE FUNCTION svc.schema_changed()',
  'CREATE EVENT TRIGGER svc_schema_dropped ON sql_drop EXECUTE FUNCTION svc.schema_changed()',
]

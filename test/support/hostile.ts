/** A table that is an attack on every page that takes texts of the database for HTML or Markdown. */

/** The name of the table. */
export const ATTACK = '<img src=x onerror="window.attacked=1">'
const COMMENT = '</p><script>window.attacked=1</script><svg onload=window.attacked=1>'
const LINK =
  '[a link](javascript:window.attacked=1) <a href="javascript:window.attacked=1">b</a> ' +
  '<iframe src="//attacker.example">'

const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`

/** Creates it. Everyone can use it. */
export const HOSTILE_TABLE: string = `
  CREATE TABLE ${quoted(ATTACK)} (id int PRIMARY KEY, "<svg onload=window.attacked=1>" text DEFAULT '${ATTACK}');
  COMMENT ON TABLE ${quoted(ATTACK)} IS '${COMMENT} ${LINK}';
  COMMENT ON COLUMN ${quoted(ATTACK)}.id IS '${COMMENT} ${LINK}';
  INSERT INTO ${quoted(ATTACK)} VALUES (1, '${COMMENT}');
  CREATE FUNCTION hostile(${quoted(ATTACK)} text) RETURNS text IMMUTABLE LANGUAGE sql AS 'SELECT $1';
  COMMENT ON FUNCTION hostile IS '${COMMENT} ${LINK}';
  GRANT SELECT, INSERT, UPDATE, DELETE ON ${quoted(ATTACK)} TO PUBLIC;
`

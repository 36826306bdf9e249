/** What `svc install` will do, and what stands in its way: asked of the database before anything is changed. */
import type { Query } from '../catalog/introspect.ts'
import { type Choice, INSTALLED_VERSION, type InstallOptions } from './script.ts'

export interface PlanRequest {
  readonly role: string
  /** As resources are named: bare in the first schema; `all`: every table of the schemas, those to come as well. */
  readonly tables: readonly string[] | 'all'
  readonly schemas: readonly string[]
}

export interface InstallPlan extends InstallOptions {
  /** Why it cannot be done at all; a sentence each. */
  readonly errors: readonly string[]
  /** Why it cannot be done with this connection. */
  readonly obstacles: readonly string[]
}

const RIGHTS = `SELECT current_user, rolsuper, has_database_privilege(current_database(), 'CREATE'),
  coalesce(pg_has_role((SELECT nspowner FROM pg_catalog.pg_namespace WHERE nspname = 'svc'), 'USAGE'), true),
  to_regrole(quote_ident($1)) IS NOT NULL, pg_catalog.pg_is_in_recovery()
  FROM pg_catalog.pg_roles WHERE rolname = current_user`

/** A column of the row: whether triggers may be made there. A role that is allowed to everything needs no table to be asked. */
const TABLES = `SELECT n.nspname, c.relname, c.relkind, has_table_privilege(c.oid, 'TRIGGER'),
    EXISTS (SELECT FROM pg_catalog.pg_inherits AS i JOIN pg_catalog.pg_class AS f ON f.oid = i.inhrelid WHERE i.inhparent = c.oid AND f.relkind = 'f')
  FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
  WHERE c.relkind IN ('r', 'p', 'f', 'v', 'm') AND n.nspname = ANY ($1)`

const INSTALLED = `SELECT to_regclass('svc.installation') IS NOT NULL`

export async function planInstall(ask: Query, { role, tables, schemas }: PlanRequest): Promise<InstallPlan> {
  const [[user, superuser, create, owns, roleIsThere, standby] = []] = await ask(RIGHTS, [role])
  const chosen = tables === 'all' ? schemas.map(everything) : tables.map(name => choiceOf(name, schemas))
  const names = [...new Set(chosen.map(({ schema }) => schema))]
  const found = await ask(TABLES, [`{${names.map(name => JSON.stringify(name)).join(',')}}`])
  const errors = [
    ...(standby === 't' ? ['This server is a standby; install on the primary.'] : []),
    ...(roleIsThere === 't' ? [] : [`Role "${role}" of the gateway does not exist in this database.`]),
    ...(await newerVersion(ask)),
    ...chosen.flatMap(choice => errorsOf(choice, found)),
  ]
  const obstacles = [
    ...(create === 't' ? [] : [`Role "${user}" may not create a schema here (GRANT CREATE ON DATABASE).`]),
    ...(owns === 't' ? [] : [`Schema svc belongs to a role that "${user}" is no member of.`]),
    ...(superuser === 't' ? [] : chosen.flatMap(choice => obstaclesOf(choice, found))),
  ]
  return { role, chosen, superuser: superuser === 't', errors, obstacles }
}

function everything(schema: string): Choice {
  return { schema, table: null }
}

/** `schema.table` where that is a published schema; otherwise all of it is the name of a table in the first. */
function choiceOf(name: string, schemas: readonly string[]): Choice {
  const [first = 'public'] = schemas
  const schema = schemas.find(each => name.startsWith(`${each}.`) && name.length > each.length + 1)
  return schema === undefined ? { schema: first, table: name } : { schema, table: name.slice(schema.length + 1) }
}

async function newerVersion(ask: Query): Promise<readonly string[]> {
  const [[present] = []] = await ask(INSTALLED, [])
  if (present !== 't') return []
  const [[version] = []] = await ask('SELECT version FROM svc.installation', []).catch(() => [])
  if (Number(version ?? 0) <= INSTALLED_VERSION) return []
  return [`Schema svc has version ${version}, this program makes version ${INSTALLED_VERSION}; install a newer one.`]
}

const KINDS: Readonly<Record<string, string>> = { f: 'a foreign table', v: 'a view', m: 'a materialised view' }

type Found = readonly (readonly (string | null)[])[]

function errorsOf({ schema, table }: Choice, found: Found): readonly string[] {
  if (table === null) return []
  const relation = found.find(([inSchema, name]) => inSchema === schema && name === table)
  const name = `"${schema}.${table}"`
  if (relation === undefined) return [`There is no table ${name}.`]
  const [, , relkind, , hasForeign] = relation
  const kind = KINDS[relkind ?? '']
  if (kind !== undefined) return [`${name} is ${kind}; its changes cannot be captured.`]
  return hasForeign === 't' ? [`${name} has foreign tables below it; a write that reaches one cannot be captured.`] : []
}

function obstaclesOf({ schema, table }: Choice, found: Found): readonly string[] {
  return found
    .filter(([inSchema, name]) => inSchema === schema && (table === null || name === table))
    .filter(([, , relkind, may]) => (relkind === 'r' || relkind === 'p') && may !== 't')
    .map(([, name]) => `Triggers on "${schema}.${name}" need its owner, or GRANT TRIGGER ON it.`)
}

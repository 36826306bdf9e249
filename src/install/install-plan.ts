/** Plans what `svc install` will do and what prevents it, without changing the database. */
import type { Query } from '../catalog/introspect.ts'
import type { FeedRole } from './feed-role.ts'
import { INSTALLED_VERSION, type InstallOptions, type TableSelection } from './script.ts'
import type { CaptureMode } from './wal-capture.ts'
import { readWalProblems } from './wal-problems.ts'

/** What to install. */
export interface InstallRequest {
  readonly role: string
  readonly feed: FeedRole
  /**
   * Tables named like resources: bare in the first schema. `all`: every table of the schemas, including later
   * ones.
   */
  readonly tables: readonly string[] | 'all'
  readonly schemas: readonly string[]
  /** `auto`: as installed, and by triggers for a new installation. */
  readonly capture: CaptureMode | 'auto'
}

/** The plan. */
export interface InstallPlan extends InstallOptions {
  readonly feed: FeedRole
  readonly capture: CaptureMode
  /** The version of the server. */
  readonly major: number
  /** Why the installation is impossible; one sentence each. */
  readonly errors: readonly string[]
  /** Why it is impossible with this connection. */
  readonly obstacles: readonly string[]
}

const CREATOR = `SELECT current_user, rolsuper, rolsuper
  OR rolcreaterole, has_database_privilege(current_database(), 'CREATE'),
  coalesce(pg_has_role((SELECT nspowner FROM pg_catalog.pg_namespace
    WHERE nspname = 'svc'), 'USAGE'), true), pg_catalog.pg_is_in_recovery()
  FROM pg_catalog.pg_roles WHERE rolname = current_user`

/**
 * The existing roles: their attributes, whether each can become the second, and whether each can become the
 * creating role.
 */
const ROLES = `SELECT r.rolname, r.rolsuper, r.rolbypassrls, f.oid IS NOT NULL
  AND pg_has_role(r.oid, f.oid, 'MEMBER'), pg_has_role(r.oid, current_user, 'MEMBER')
  FROM pg_catalog.pg_roles AS r LEFT JOIN pg_catalog.pg_roles AS f ON f.rolname = $2 WHERE r.rolname IN ($1, $2)`

/**
 * One row per table: whether triggers may be created on it. An unrestricted role needs no query per table.
 */
const TABLES = `SELECT n.nspname, c.relname, c.relkind, has_table_privilege(c.oid, 'TRIGGER'),
    (SELECT has_schema_privilege(r.oid, n.oid, 'USAGE') AND has_any_column_privilege(r.oid, c.oid, 'SELECT')
      FROM pg_catalog.pg_roles AS r WHERE r.rolname = $2),
    EXISTS (SELECT FROM pg_catalog.pg_inherits AS i JOIN pg_catalog.pg_class AS f ON f.oid = i.inhrelid
      WHERE i.inhparent = c.oid AND f.relkind = 'f')
  FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
  WHERE c.relkind IN ('r', 'p', 'f', 'v', 'm') AND n.nspname = ANY ($1)`

const INSTALLED = `SELECT to_regclass('svc.installation') IS NOT NULL`

/** Plans an installation. */
export async function planInstall(ask: Query, request: InstallRequest): Promise<InstallPlan> {
  const { role, feed, tables, schemas } = request
  const [[user, superuser, createsRoles, create, owns, standby] = []] = await ask(CREATOR, [])
  const roles = await ask(ROLES, [role, feed.role])
  const chosen = tables === 'all' ? schemas.map(allOf) : tables.map(name => parseSelection(name, schemas))
  const names = [...new Set(chosen.map(({ schema }) => schema))]
  const found = await ask(TABLES, [`{${names.map(name => JSON.stringify(name)).join(',')}}`, role])
  const gateway = roles.find(([name]) => name === role)
  const hasFeedRole = roles.some(([name]) => name === feed.role)
  const { major, problems } = await readWalProblems(ask, { role, feed: feed.role, isGranted: superuser === 't' })
  const wanted = request.capture === 'auto' ? await installedCapture(ask) : request.capture
  const errors = [
    ...(wanted === 'wal' ? problems : []),
    ...(standby === 't' ? ['This server is a standby; install on the primary.'] : []),
    ...roleErrors(role, feed, roles),
    ...(await newerVersion(ask)),
    ...chosen.flatMap(choice => errorsOf(choice, found, role)),
  ]
  const isCreator = gateway !== undefined && gateway[1] !== 't' && gateway[4] === 't'
  const obstacles = [
    ...(isCreator ? [creatorObstacle(role, user ?? '')] : []),
    ...(create === 't' ? [] : [`Role "${user}" cannot create a schema in this database (GRANT CREATE ON DATABASE).`]),
    ...(owns === 't' ? [] : [`Schema svc belongs to a role that "${user}" is not a member of.`]),
    ...(hasFeedRole || createsRoles === 't' ? [] : [feedObstacle(feed.role, user ?? '')]),
    ...(superuser === 't' ? [] : chosen.flatMap(choice => obstaclesOf(choice, found))),
  ]
  const options = { role, feed, selected: chosen, superuser: superuser === 't', capture: wanted }
  return { ...options, major, errors, obstacles }
}

/** How an existing installation captures changes; by triggers if there is none. */
async function installedCapture(ask: Query): Promise<CaptureMode> {
  const [[hasWal] = []] = await ask("SELECT to_regclass('svc.wal') IS NOT NULL", [])
  if (hasWal !== 't') return 'triggers'
  const [[uses] = []] = await ask('SELECT EXISTS (SELECT FROM svc.wal)', []).catch(() => [])
  return uses === 't' ? 'wal' : 'triggers'
}

/** The separation of rights is useless if one role has both. */
function roleErrors(role: string, feed: FeedRole, roles: Found): readonly string[] {
  const gateway = roles.find(([name]) => name === role)
  if (gateway === undefined) return [`Role "${role}" of the gateway does not exist in this database.`]
  const [, superuser, bypasses, becomesFeed] = gateway
  const another =
    'Give the role that the gateway connects as, with --role or database_url in ' +
    'svc.toml. --admin-url is for the installing role.'
  if (superuser === 't')
    return [`Role "${role}" of the gateway is a superuser; row-level security does not apply to it. ${another}`]
  if (bypasses === 't')
    return [`Role "${role}" of the gateway has BYPASSRLS; row-level security does not apply to it. ${another}`]
  if (role === feed.role)
    return [`The feed role must not be the gateway's role "${role}": SQL of requests could read the change log.`]
  if (becomesFeed === 't')
    return [
      `Role "${role}" of the gateway is a member of the feed role "${feed.role}": SQL of requests could read the ` +
        'change log. REVOKE the membership, or choose another role with --feed-role.',
    ]
  return []
}

function creatorObstacle(role: string, user: string): string {
  const who =
    role === user ? `Role "${role}" of the gateway` : `Role "${role}" of the gateway is a member of "${user}", and`
  return (
    `${who} would own schema svc: SQL of requests could read the change log and forge webhooks. Use ` +
    'another role with --admin-url or SVC_ADMIN_DATABASE_URL.'
  )
}

function feedObstacle(feed: string, user: string): string {
  return `Role "${user}" cannot create roles, and the feed role "${feed}" does not exist (CREATE ROLE … LOGIN,
  with the password of the gateway's role).`
}

function allOf(schema: string): TableSelection {
  return { schema, table: null }
}

/**
 * `schema.table` if the first part is a published schema; otherwise the whole text is a table in the first
 * schema.
 */
function parseSelection(name: string, schemas: readonly string[]): TableSelection {
  const [first = 'public'] = schemas
  const schema = schemas.find(each => name.startsWith(`${each}.`) && name.length > each.length + 1)
  return schema === undefined ? { schema: first, table: name } : { schema, table: name.slice(schema.length + 1) }
}

async function newerVersion(ask: Query): Promise<readonly string[]> {
  const [[present] = []] = await ask(INSTALLED, [])
  if (present !== 't') return []
  const [[version] = []] = await ask('SELECT version FROM svc.installation', []).catch(() => [])
  if (Number(version ?? 0) <= INSTALLED_VERSION) return []
  return [
    `Schema svc has version ${version}, but this program installs version ` +
      `${INSTALLED_VERSION}; use a newer program.`,
  ]
}

const KINDS: Readonly<Record<string, string>> = { f: 'a foreign table', v: 'a view', m: 'a materialized view' }

type Found = readonly (readonly (string | null)[])[]

function errorsOf({ schema, table }: TableSelection, found: Found, role: string): readonly string[] {
  if (table === null) return []
  const relation = found.find(([inSchema, name]) => inSchema === schema && name === table)
  const name = `"${schema}.${table}"`
  if (relation === undefined) return [`Table ${name} does not exist.`]
  const [, , relkind, , readable, hasForeign] = relation
  const kind = KINDS[relkind ?? '']
  if (kind !== undefined) return [`${name} is ${kind}; its changes cannot be captured.`]
  if (readable === 'f') {
    const reason = 'changes are captured for this role, so GRANT it first.'
    return [`Role "${role}" of the gateway cannot SELECT from ${name}; ${reason}`]
  }
  return hasForeign === 't'
    ? [`${name} has foreign tables as partitions or children; writes that reach one cannot be captured.`]
    : []
}

function obstaclesOf({ schema, table }: TableSelection, found: Found): readonly string[] {
  return found
    .filter(([inSchema, name]) => inSchema === schema && (table === null || name === table))
    .filter(([, , relkind, may]) => (relkind === 'r' || relkind === 'p') && may !== 't')
    .map(([, name]) => `Triggers on "${schema}.${name}" require its owner, or GRANT TRIGGER ON the table.`)
}

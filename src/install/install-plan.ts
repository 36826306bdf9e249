/** Plans what `svc install` will do and what prevents it, without changing the database. */
import type { Query } from '../catalog/introspect.ts'
import { toArrayLiteral } from '../text/array-text.ts'
import type { FeedRole } from './feed-role.ts'
import { INSTALLED_VERSION, type InstallOptions, type TableSelection } from './script.ts'
import { type CaptureMode, MAY_REPLICATE } from './wal-capture.ts'
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
  /** `auto`: as installed; for a new installation from the write-ahead log, if nothing prevents it. */
  readonly capture: CaptureMode | 'auto'
  /** True if the feed role can connect only through a pooler, through which it cannot read the log. */
  readonly isPooled: boolean
}

/** The plan. */
export interface InstallPlan extends InstallOptions {
  readonly feed: FeedRole
  readonly capture: CaptureMode
  /** Why changes are captured in this way, one sentence; null if it was requested. */
  readonly reason: string | null
  /** True if the installing role can create the slot. Otherwise the first gateway does. */
  readonly createsSlot: boolean
  /** True if the server does not limit how much of the write-ahead log a slot keeps. */
  readonly keepsAll: boolean
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
    WHERE nspname = 'svc'), 'USAGE'), true), pg_catalog.pg_is_in_recovery(), ${MAY_REPLICATE}
  FROM pg_catalog.pg_roles AS r WHERE rolname = current_user`

/**
 * The existing roles: their attributes, whether each can become the second, and whether each can become the
 * creating role.
 */
const ROLES = `SELECT r.rolname, r.rolsuper, r.rolbypassrls, f.oid IS NOT NULL
  AND pg_has_role(r.oid, f.oid, 'MEMBER'), pg_has_role(r.oid, current_user, 'MEMBER')
  FROM pg_catalog.pg_roles AS r LEFT JOIN pg_catalog.pg_roles AS f ON f.rolname = $2 WHERE r.rolname IN ($1, $2)`

/**
 * One row per table: whether triggers may be created on it, and whether it may be published. An unrestricted
 * role needs no query per table.
 */
const TABLES = `SELECT n.nspname, c.relname, c.relkind, has_table_privilege(c.oid, 'TRIGGER'),
    (SELECT has_schema_privilege(r.oid, n.oid, 'USAGE') AND has_any_column_privilege(r.oid, c.oid, 'SELECT')
      FROM pg_catalog.pg_roles AS r WHERE r.rolname = $2),
    EXISTS (SELECT FROM pg_catalog.pg_inherits AS i JOIN pg_catalog.pg_class AS f ON f.oid = i.inhrelid
      WHERE i.inhparent = c.oid AND f.relkind = 'f'), pg_has_role(c.relowner, 'USAGE')
  FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
  WHERE c.relkind IN ('r', 'p', 'f', 'v', 'm') AND n.nspname = ANY ($1)`

const INSTALLED = `SELECT to_regclass('svc.installation') IS NOT NULL`

/** Plans an installation. */
export async function planInstall(ask: Query, request: InstallRequest): Promise<InstallPlan> {
  const { role, feed, tables, schemas } = request
  const [[user, superuser, createsRoles, create, owns, standby, replicates] = []] = await ask(CREATOR, [])
  const roles = await ask(ROLES, [role, feed.role])
  const chosen = tables === 'all' ? schemas.map(allOf) : tables.map(name => parseSelection(name, schemas))
  const names = [...new Set(chosen.map(({ schema }) => schema))]
  const found = await ask(TABLES, [toArrayLiteral(names), role])
  const gateway = roles.find(([name]) => name === role)
  const hasFeedRole = roles.some(([name]) => name === feed.role)
  const isSuperuser = superuser === 't'
  const { major, keepsAll, problems } = await readWalProblems(ask, { role, feed: feed.role, isGranted: isSuperuser })
  const unpublished = isSuperuser ? [] : unpublishable(chosen, found)
  const against = [...problems, ...unpublished, ...(request.isPooled ? [POOLED] : [])]
  const { capture, reason } = await chooseCapture(ask, request.capture, against)
  const errors = [
    ...(capture === 'wal' ? problems : []),
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
    ...(isSuperuser ? [] : chosen.flatMap(choice => obstaclesOf(choice, found))),
    ...(capture === 'wal' ? unpublished : []),
  ]
  const options = { role, feed, selected: chosen, superuser: isSuperuser, capture, reason }
  return { ...options, createsSlot: replicates === 't', keepsAll, major, errors, obstacles }
}

const POOLED =
  'The feed role would connect through a pooler (prepared_statements = false): set feed_url to a direct connection.'

/** An existing installation never changes its source by itself: its subscribers would have to read again. */
async function chooseCapture(
  ask: Query,
  requested: InstallRequest['capture'],
  against: readonly string[],
): Promise<Pick<InstallPlan, 'capture' | 'reason'>> {
  if (requested !== 'auto') return { capture: requested, reason: null }
  const [[isInstalled] = []] = await ask(INSTALLED, [])
  if (isInstalled === 't')
    return { capture: await installedCapture(ask), reason: 'The existing installation does so; --capture changes it.' }
  if (against.length > 0)
    return { capture: 'triggers', reason: `The write-ahead log cannot be read instead: ${against.join(' ')}` }
  return { capture: 'wal', reason: 'The server and the roles allow it; --capture triggers uses triggers instead.' }
}

/** How an existing installation captures changes. */
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

/** Limit on the tables that a sentence names. */
const NAMED_MAX = 3

/** Only its owner can publish a table with its old rows. */
function unpublishable(chosen: readonly TableSelection[], found: Found): readonly string[] {
  const names = found.flatMap(([inSchema, name, relkind, , readable, , isOwner]) => {
    const isChosen = chosen.some(({ schema, table }) => inSchema === schema && (table === null || name === table))
    const isCaptured = (relkind === 'r' || relkind === 'p') && readable !== 'f'
    return isChosen && isCaptured && isOwner !== 't' ? [`"${inSchema}.${name}"`] : []
  })
  if (names.length === 0) return []
  const left = names.length - NAMED_MAX
  const named = `${names.slice(0, NAMED_MAX).join(', ')}${left > 0 ? ` and ${left} more` : ''}`
  return [`Publishing ${named} requires the owner.`]
}

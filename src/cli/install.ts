/**
 * `svc install` and `svc uninstall` (docs/reference/cli.md#svc-install): create or remove schema `svc` in the
 * configured database, in one transaction.
 */
import { randomBytes } from 'node:crypto'
import { dropSlot } from '../changes/slot.ts'
import type { Config } from '../config/config.ts'
import { type LoadedConfig, loadConfig } from '../config/load.ts'
import { CAPTURED_TABLES } from '../install/captured-tables.ts'
import { type FeedRole, feedRoleOf } from '../install/feed-role.ts'
import { type InstallPlan, planInstall } from '../install/install-plan.ts'
import { CAPTURE_TABLES, installScript, OWNER, printScript, uninstallScript } from '../install/script.ts'
import { type CaptureMode, createSlotStatement } from '../install/wal-capture.ts'
import { scramVerifier } from '../postgres/auth/scram.ts'
import { DatabaseError } from '../postgres/errors.ts'
import type { ConnectionTarget } from '../postgres/target.ts'
import { parseUrl } from '../postgres/url.ts'
import { type DatabaseSession, openDatabase } from './database.ts'
import { UsageError } from './failure.ts'
import { type ShowProgress, withProgress } from './progress.ts'
import { EXIT, type World } from './world.ts'

export interface InstallCommand {
  readonly config: string | undefined
  readonly adminUrl: string | undefined
  readonly dryRun: boolean
}

export interface InstallChoice extends InstallCommand {
  readonly role: string | undefined
  readonly feedRole: string | undefined
  /** The tables by their resource names; `all` selects all tables of the published schemas. */
  readonly tables: readonly string[] | 'all'
  /** How changes are captured. `auto`: as installed, or as the server allows. */
  readonly capture: CaptureMode | 'auto'
}

/** Long enough to create triggers on thousands of tables, each of which may wait for writes in progress. */
const TIMEOUT_MS = 600_000

const LOCK_NOT_AVAILABLE = '55P03'

export async function install(command: InstallChoice, world: World): Promise<number> {
  const loaded = loadConfig({ ...world, file: command.config })
  const { config } = loaded
  const creator = creatorUrl(command, loaded)
  return withDatabase(creator ?? config.gateway.databaseUrl, config, async database => {
    const { role, feed } = await rolesOf(command, loaded)
    const { tables, capture } = command
    const { schemas } = config.gateway
    const isPooled = isPooledOnly(config)
    const plan = await planInstall(database.query, { role, feed, tables, schemas, capture, isPooled })
    if (plan.errors.length > 0) {
      for (const error of plan.errors) world.error(error)
      return EXIT.failed
    }
    const script = installScript(await withPassword(plan, loaded))
    if (command.dryRun) {
      world.out(printedInstall(plan, script))
      return EXIT.ok
    }
    if (creator === null) return refuse([NO_CREATOR], printedInstall(plan, script), world)
    if (plan.obstacles.length > 0) return refuse(plan.obstacles, printedInstall(plan, script), world)
    try {
      await withProgress(world, show =>
        database.transaction(script, count => {
          if (script[count] === CAPTURE_TABLES) show('Changing the captured tables, after writes in progress', null)
          else show('Creating schema svc', count / script.length)
        }),
      )
    } catch (error) {
      if (!(error instanceof DatabaseError)) throw error
      const busy =
        error.sqlstate === LOCK_NOT_AVAILABLE ? ' A table is in use; try again when there is less traffic.' : ''
      world.error(`${error.message}.${busy} Nothing was changed.`)
      return EXIT.failed
    }
    await withProgress(world, show => adjustSlot(database, plan, show))
    for (const line of await report(database, plan)) world.out(line)
    return EXIT.ok
  })
}

export async function uninstall(command: InstallCommand & { readonly force: boolean }, world: World): Promise<number> {
  const { config } = loadConfig({ ...world, file: command.config })
  const url = command.adminUrl ?? config.adminDatabaseUrl ?? config.gateway.databaseUrl
  return withDatabase(url, config, async ({ query, transaction }) => {
    const [[superuser, installed, owns] = []] = await query(
      `SELECT r.rolsuper, n.oid IS NOT NULL, coalesce(pg_has_role(n.nspowner, 'USAGE'), true)
        FROM pg_catalog.pg_roles AS r LEFT JOIN pg_catalog.pg_namespace AS n ON n.nspname = 'svc'
          WHERE r.rolname = current_user`,
      [],
    )
    const script = uninstallScript({ superuser: superuser === 't' })
    if (command.dryRun) {
      world.out(printScript(script).trimEnd())
      return EXIT.ok
    }
    if (installed !== 't') {
      await dropSlot(query)
      world.out('Schema svc does not exist in this database.')
      return EXIT.ok
    }
    if (owns !== 't') {
      world.error(
        'Schema svc belongs to another role. Name the one that installed it: --admin-url, or SVC_ADMIN_DATABASE_URL.',
      )
      return EXIT.failed
    }
    const [[waiting] = []] = await query('SELECT count(*) FROM svc.webhook', [])
    if (waiting !== '0' && !command.force) {
      world.error(
        `${waiting} webhooks have not been delivered and would be lost. Let a gateway deliver them, or use --force.`,
      )
      return EXIT.failed
    }
    await transaction(script)
    await dropSlot(query)
    world.out(
      `Schema svc and its triggers were removed. Role ${OWNER}, if it exists, was not dropped, because other ` +
        'databases may use it.',
    )
    return EXIT.ok
  })
}

/**
 * The URL of the installing role. `DATABASE_URL` is the gateway's own role, unless the file contains another
 * URL for that.
 */
function creatorUrl({ adminUrl }: InstallCommand, { config, fileDatabaseUrl }: LoadedConfig): string | null {
  const named = adminUrl ?? config.adminDatabaseUrl
  if (named !== null) return named
  const { databaseUrl } = config.gateway
  return fileDatabaseUrl !== null && databaseUrl !== fileDatabaseUrl ? databaseUrl : null
}

const NO_CREATOR =
  'The role that should create schema svc is not known: give --admin-url, or set SVC_ADMIN_DATABASE_URL. ' +
  'DATABASE_URL is used for this only if svc.toml contains another database_url; otherwise it is the URL ' +
  "of the gateway's own role."

async function withDatabase(
  url: string | null,
  { gateway }: Config,
  work: (database: DatabaseSession) => Promise<number>,
): Promise<number> {
  if (url === null) {
    throw new UsageError('no database is configured: give --admin-url, or set SVC_ADMIN_DATABASE_URL or DATABASE_URL')
  }
  const database = await openDatabase(url, { ...gateway, timeoutMs: TIMEOUT_MS })
  try {
    return await work(database)
  } finally {
    await database.close()
  }
}

interface Roles {
  readonly role: string
  readonly feed: FeedRole
}

/** The file's `database_url` takes precedence, because `DATABASE_URL` can be the installing role. */
async function rolesOf({ role: named, feedRole }: InstallChoice, loaded: LoadedConfig): Promise<Roles> {
  const role = named ?? gatewayTarget(loaded)?.user
  if (role === undefined) {
    throw new UsageError("the gateway's role is not known: give --role, or set [gateway] database_url or DATABASE_URL")
  }
  const { feedUrl } = loaded.config.gateway
  const own = feedUrl === null ? null : parseUrl(feedUrl)
  if (feedRole !== undefined && feedRole !== own?.user) return { role, feed: { role: feedRole, password: 'kept' } }
  if (own === null) return { role, feed: feedRoleOf(role) }
  return { role, feed: { role: own.user, password: await verified(own.password) } }
}

function gatewayTarget({ config, fileDatabaseUrl }: LoadedConfig): ConnectionTarget | null {
  const url = fileDatabaseUrl ?? config.gateway.databaseUrl
  return url === null ? null : parseUrl(url)
}

/**
 * Only superusers can copy the password of the gateway's role. Other roles know it from the URL, if the URL
 * is for the gateway's role.
 */
async function withPassword(plan: InstallPlan, loaded: LoadedConfig): Promise<InstallPlan> {
  const { role, feed, superuser } = plan
  const target = gatewayTarget(loaded)
  if (superuser || feed.password !== 'copied' || target?.user !== role) return plan
  return { ...plan, feed: { ...feed, password: await verified(target.password) } }
}

async function verified(password: string | null): Promise<FeedRole['password']> {
  return password === null ? 'kept' : { verifier: await scramVerifier(password, randomBytes(16)) }
}

/** True if only a pooler is known, which passes on neither named statements nor replication. */
function isPooledOnly({ gateway: { preparedStatements, realtimeDatabaseUrl, feedUrl } }: Config): boolean {
  return !preparedStatements && realtimeDatabaseUrl === null && feedUrl === null
}

/** A slot cannot be created in a transaction that has changed anything. */
function printedInstall(plan: InstallPlan, script: readonly string[]): string {
  const { capture, major } = plan
  // A name can contain line breaks.
  const comment = sourceLine(plan).replace(/\s+/g, ' ')
  const text = `-- ${comment}\n${printScript(script).trimEnd()}`
  return capture === 'wal' ? `${text}\n\n${createSlotStatement(major)};` : text
}

/** Creates the slot, or removes one that is no longer used. */
async function adjustSlot(
  { query, transaction }: DatabaseSession,
  { capture, createsSlot, major }: InstallPlan,
  show: ShowProgress,
): Promise<void> {
  if (capture === 'triggers') return dropSlot(query)
  if (!createsSlot) return
  show('Creating the replication slot, after transactions in progress', null)
  await transaction([createSlotStatement(major)])
}

function refuse(obstacles: readonly string[], script: string, world: World): number {
  for (const obstacle of obstacles) world.error(obstacle)
  world.error('Nothing was changed. A role with the required privileges can run the SQL printed on standard output.')
  world.out(script)
  return EXIT.failed
}

/**
 * Warns about a feed role without a password. Only a SCRAM verifier can be copied, because an MD5 hash
 * contains the name of its role.
 */
async function withoutPassword(
  query: DatabaseSession['query'],
  role: string,
  feed: FeedRole,
  superuser: boolean,
): Promise<readonly string[]> {
  if (!superuser || feed.password !== 'copied') return []
  const [[missing] = []] = await query('SELECT rolpassword IS NULL FROM pg_catalog.pg_authid WHERE rolname = $1', [
    feed.role,
  ])
  if (missing !== 't') return []
  return [
    `Role ${feed.role} has no password, because role ${role} has no SCRAM password to copy. Set a password ` +
      'and feed_url, unless pg_hba.conf allows the role to connect without one.',
  ]
}

/** How changes are captured, and why. */
function sourceLine({ capture, reason }: InstallPlan): string {
  const source =
    capture === 'wal'
      ? 'Changes are read from the write-ahead log, so writes run no trigger.'
      : 'Changes are captured by triggers.'
  return reason === null ? source : `${source} ${reason}`
}

/** How each table is captured from the write-ahead log, and what that costs. */
async function walLines(
  query: DatabaseSession['query'],
  { capture, keepsAll }: InstallPlan,
): Promise<readonly string[]> {
  if (capture === 'triggers') return []
  const tables = await query(
    `SELECT f."schema" || '.' || f."table", f.source, b.relation IS NOT NULL FROM (${CAPTURED_TABLES}) AS f
      LEFT JOIN svc.identity_before AS b ON b.relation = f.oid WHERE f.relkind = 'r' ORDER BY 1`,
    [],
  )
  const named = (wanted: (row: readonly (string | null)[]) => boolean) =>
    tables
      .filter(wanted)
      .map(([name]) => name)
      .join(', ')
  const full = named(([, , changed]) => changed === 't')
  const byTriggers = named(([, source]) => source === 'triggers')
  return [
    ...(full === ''
      ? []
      : [
          `REPLICA IDENTITY is now FULL for ${full}: each UPDATE and DELETE also writes the old row to the ` +
            'write-ahead log.',
        ]),
    ...(byTriggers === ''
      ? []
      : [
          `Captured by triggers instead, because of generated columns, types that cannot be decoded, or no ` +
            `write-ahead log: ${byTriggers}.`,
        ]),
    ...(keepsAll
      ? [
          'While no gateway runs, the replication slot keeps the write-ahead log without limit: set ' +
            'max_slot_wal_keep_size as well, for example to 10GB.',
        ]
      : []),
  ]
}

async function report({ query }: DatabaseSession, plan: InstallPlan): Promise<readonly string[]> {
  const { role, feed, superuser } = plan
  const [[version, tables] = []] = await query(
    `SELECT version, (SELECT count(*) FROM (${CAPTURED_TABLES}) AS f WHERE f.whole) FROM svc.installation`,
    [],
  )
  return [
    `Schema svc is installed (version ${version}) for role ${role}: the changes of ` +
      `${tables} tables and partitions are captured.`,
    `Gateways read them and deliver webhooks as role ${feed.role}, which has no other privileges.`,
    sourceLine(plan),
    ...(await walLines(query, plan)),
    ...(await withoutPassword(query, role, feed, superuser)),
    superuser
      ? 'Gateways detect schema changes immediately, and new tables and partitions are captured automatically.'
      : 'Event triggers require a superuser and were not created: the schema is checked every schema_poll_secs, and ' +
        'later tables are captured when a gateway starts or detects them.',
    'Running gateways detect it when they next read the schema; send SIGHUP to do that now.',
  ]
}

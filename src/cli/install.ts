/** `svc install` and `svc uninstall` (decisions 9): schema `svc` in the configured database, made or removed in one transaction. */
import type { Config } from '../config/config.ts'
import { loadConfig } from '../config/load.ts'
import { type InstallPlan, planInstall } from '../install/plan.ts'
import { installScript, OWNER, printScript, uninstallScript } from '../install/script.ts'
import { DatabaseError } from '../postgres/errors.ts'
import { parseUrl } from '../postgres/url.ts'
import { type DatabaseSession, openDatabase } from './database.ts'
import { UsageError } from './failure.ts'
import { EXIT, type World } from './world.ts'

export interface InstallCommand {
  readonly config: string | undefined
  readonly adminUrl: string | undefined
  readonly dryRun: boolean
}

export interface InstallChoice extends InstallCommand {
  readonly role: string | undefined
  /** As resources are named; `all`: all tables of the published schemas. */
  readonly tables: readonly string[] | 'all'
}

/** Triggers of thousands of tables, each of which may wait for writes that are under way. */
const TIMEOUT_MS = 600_000

const LOCK_NOT_AVAILABLE = '55P03'

export async function install(command: InstallChoice, world: World): Promise<number> {
  const { config } = loadConfig({ ...world, file: command.config })
  return withDatabase(command, config, async database => {
    const role = command.role ?? roleOf(config)
    const plan = await planInstall(database.query, { role, tables: command.tables, schemas: config.gateway.schemas })
    const script = installScript(plan)
    if (command.dryRun) {
      world.out(printScript(script).trimEnd())
      return EXIT.ok
    }
    if (plan.errors.length > 0) {
      for (const error of plan.errors) world.error(error)
      return EXIT.failed
    }
    if (plan.obstacles.length > 0) return refuse(plan.obstacles, script, world)
    try {
      await database.transaction(script)
    } catch (error) {
      if (!(error instanceof DatabaseError)) throw error
      const busy =
        error.sqlstate === LOCK_NOT_AVAILABLE ? ' A table is being written to; try again when less is going on.' : ''
      world.error(`${error.message}.${busy} Nothing was changed.`)
      return EXIT.failed
    }
    for (const line of await report(database, plan)) world.out(line)
    return EXIT.ok
  })
}

export async function uninstall(command: InstallCommand & { readonly force: boolean }, world: World): Promise<number> {
  const { config } = loadConfig({ ...world, file: command.config })
  return withDatabase(command, config, async ({ query, transaction }) => {
    const [[superuser, installed, owns] = []] = await query(
      `SELECT r.rolsuper, n.oid IS NOT NULL, coalesce(pg_has_role(n.nspowner, 'USAGE'), true)
        FROM pg_catalog.pg_roles AS r LEFT JOIN pg_catalog.pg_namespace AS n ON n.nspname = 'svc' WHERE r.rolname = current_user`,
      [],
    )
    const script = uninstallScript({ superuser: superuser === 't' })
    if (command.dryRun) {
      world.out(printScript(script).trimEnd())
      return EXIT.ok
    }
    if (installed !== 't') {
      world.out('There is no schema svc in this database.')
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
        `${waiting} webhooks have not been delivered and would be lost. Let a gateway deliver them, or say --force.`,
      )
      return EXIT.failed
    }
    await transaction(script)
    world.out(
      `Schema svc and its triggers are gone. Role ${OWNER}, if there is one, stays: other databases may use it.`,
    )
    return EXIT.ok
  })
}

async function withDatabase(
  { adminUrl }: InstallCommand,
  { adminDatabaseUrl, gateway }: Config,
  work: (database: DatabaseSession) => Promise<number>,
): Promise<number> {
  const url = adminUrl ?? adminDatabaseUrl ?? gateway.databaseUrl
  if (url === null) {
    throw new UsageError('no database is named: give --admin-url, or set SVC_ADMIN_DATABASE_URL or DATABASE_URL')
  }
  const database = await openDatabase(url, { ...gateway, timeoutMs: TIMEOUT_MS })
  try {
    return await work(database)
  } finally {
    await database.close()
  }
}

function roleOf({ gateway }: Config): string {
  if (gateway.databaseUrl === null) {
    throw new UsageError("the gateway's role is not known: give --role, or set DATABASE_URL or [gateway] database_url")
  }
  return parseUrl(gateway.databaseUrl).user
}

function refuse(obstacles: readonly string[], script: readonly string[], world: World): number {
  for (const obstacle of obstacles) world.error(obstacle)
  world.error('Nothing was changed. Somebody who may can run the SQL that follows on standard output.')
  world.out(printScript(script).trimEnd())
  return EXIT.failed
}

async function report({ query }: DatabaseSession, { role, superuser }: InstallPlan): Promise<readonly string[]> {
  const [[version, tables] = []] = await query(
    `SELECT version, (SELECT count(DISTINCT tgrelid) FROM pg_catalog.pg_trigger WHERE tgname = 'svc_capture_insert') FROM svc.installation`,
    [],
  )
  return [
    `Schema svc is installed (version ${version}) for role ${role}: the changes of ${tables} tables and partitions are captured.`,
    superuser
      ? 'Changes of the schema are heard at once, and new tables and partitions follow by themselves.'
      : 'Event triggers need a superuser and were left out: the schema is looked at every schema_poll_secs, and tables that come later when a gateway starts or sees them.',
    'Gateways that run notice it by themselves when they next read the schema (SIGHUP does that now).',
  ]
}

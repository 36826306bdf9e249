/** Names, options and help of `svc install` and `svc uninstall`. */
import type { SvcCommand } from './command.ts'
import { UsageError } from './failure.ts'
import { CONFIG } from './help.ts'
import type { World } from './world.ts'

type Finish = (code: number) => void

interface Options {
  readonly config?: string
  readonly adminUrl?: string
  readonly dryRun?: true
}

const adminUrl = (otherwise: string) =>
  [
    '--admin-url <url>',
    'URL of the database, with a role that can create schemas and triggers (default: SVC_ADMIN_DATABASE_URL, then ' +
      `${otherwise})`,
  ] as const

export function addInstallCommands(program: SvcCommand, world: World, finish: Finish): void {
  program
    .command('install')
    .description(
      'Create schema svc in the database: a change log for realtime, an outbox for webhooks, and the triggers ' +
        'that write to them. Can be run again at any time.',
    )
    .option(...adminUrl('DATABASE_URL if svc.toml contains another database_url'))
    .option('--role <name>', "the gateway's role (default: the user of database_url in svc.toml, then of DATABASE_URL)")
    .option(
      '--feed-role <name>',
      'the role that reads the change log and delivers webhooks (default: the role of feed_url, ' +
        "then the name of the gateway's role followed by _feed)",
    )
    .option(
      '-t, --table <name>',
      'capture only this table; repeatable (default: all tables of schemas)',
      (name: string, all: readonly string[] = []) => [...all, name],
    )
    .option('--no-tables', 'capture no tables: install only what stores responses to requests with an Idempotency-Key')
    .option(
      '--capture <source>',
      'how changes are captured: triggers, wal (from the write-ahead log), or auto: as installed; for a new ' +
        'installation wal if the server allows it, else triggers (default: auto)',
    )
    .option('--dry-run', 'print the SQL and change nothing')
    .option(...CONFIG)
    .examples(
      ['svc install --admin-url postgres://postgres@localhost/shop', 'every table of the published schemas'],
      ['svc install --table orders --table invoices', 'only these two; replaces the previous selection'],
      ['svc install --dry-run > install.sql', 'to review, and run with psql'],
    )
    .action(
      async ({
        table,
        tables,
        role,
        feedRole,
        capture = 'auto',
        ...options
      }: Options & {
        readonly capture?: string
        readonly role?: string
        readonly feedRole?: string
        readonly table?: readonly string[]
        readonly tables: boolean
      }) => {
        if (!tables && table !== undefined)
          throw new UsageError('--table and --no-tables contradict each other; give one')
        if (capture !== 'auto' && capture !== 'wal' && capture !== 'triggers')
          throw new UsageError(`--capture is "${capture}"; use auto, wal or triggers`)
        const { install } = await import('./install.ts')
        const selected = tables ? (table ?? 'all') : []
        finish(await install({ ...asked(options), role, feedRole, capture, tables: selected }, world))
      },
    )

  program
    .command('uninstall')
    .description('Remove schema svc with its contents, and the triggers. Your tables and rows are not changed.')
    .option(...adminUrl('DATABASE_URL'))
    .option('--force', 'even if deliveries are waiting')
    .option('--dry-run', 'print the SQL and change nothing')
    .option(...CONFIG)
    .examples(['svc uninstall --dry-run', 'print what it would run'])
    .action(async ({ force, ...options }: Options & { readonly force?: true }) => {
      const { uninstall } = await import('./install.ts')
      finish(await uninstall({ ...asked(options), force: force === true }, world))
    })
}

function asked({ config, adminUrl, dryRun }: Options) {
  return { config, adminUrl, dryRun: dryRun === true }
}

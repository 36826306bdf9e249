/**
 * The command line: names, options and help of every command. Their implementations are in separate files,
 * loaded when called.
 */
import { Argument, CommanderError, InvalidArgumentError, Option } from 'commander'
import { parseMix } from '../capacity/mix.ts'
import type { ExpectedLoad } from '../capacity/plan.ts'
import { WORKERS_MAX } from '../config/worker-share.ts'
import { VERSION } from '../version.ts'
import { helpTitle, SvcCommand } from './command.ts'
import { printCompletion, SHELLS, type Shell } from './completion.ts'
import { parseDuration } from './duration.ts'
import { printFailure, UsageError } from './failure.ts'
import { CONFIG } from './help.ts'
import { IMPORT_FORMATS, type ImportFormat } from './import-format.ts'
import { addInstallCommands } from './install-commands.ts'
import { addLanguageCommands } from './language-commands.ts'
import { addTokenCommands } from './token-commands.ts'
import { addWebhookCommands } from './webhook-commands.ts'
import { EXIT, type World } from './world.ts'

/** Runs one command line (without `node` and the program's name) and returns the exit code. Never rejects. */
export async function run(argv: readonly string[], world: World): Promise<number> {
  let code: number = EXIT.ok
  const program = createProgram(world, result => {
    code = result
  })
  try {
    await program.parseAsync(argv, { from: 'user' })
    return code
  } catch (error) {
    // Commander has printed its own message by then.
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage
    world.error(printFailure(error))
    return error instanceof UsageError ? EXIT.usage : EXIT.failed
  }
}

/** `finish` receives the exit code of the command. */
export function createProgram(world: World, finish: (code: number) => void): SvcCommand {
  const program = new SvcCommand('svc')
    .description(
      'A data gateway: the tables of a PostgreSQL database become a REST API ' +
        'with tenant isolation by row-level security.',
    )
    .version(VERSION, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .helpCommand('help [command]', 'print the help of a command')
    .exitOverride()
    .showHelpAfterError('(run svc --help for a list of commands)')
    .configureOutput({
      writeOut: text => world.out(text.trimEnd()),
      writeErr: text => world.error(text.trimEnd()),
      getOutHasColors: () => world.hasColors,
      getErrHasColors: () => world.terminal?.hasColors ?? false,
    })
    .configureHelp({ styleTitle: helpTitle })
    .examples(
      ['svc demo', 'try it: an embedded PostgreSQL with sample data'],
      ['DATABASE_URL=postgres://app:pw@localhost/shop JWT_SECRET=… svc serve', 'your own database'],
      ['svc check', 'find problems without starting'],
    )
    .addHelpText('after', printExitCodes())

  program
    .command('serve')
    .description(
      'Start the gateway. SIGTERM and SIGINT stop it gracefully, a second one at once. SIGHUP reads the schema, ' +
        'policies, lists and triggers again. With several workers, SIGUSR2 replaces them one after the other.',
    )
    .option(
      '-b, --bind <host:port>',
      'address to listen on (default: SVC_BIND, then [gateway] bind, then 127.0.0.1:8080)',
    )
    .addOption(
      new Option('-p, --port <number>', 'port to listen on, at the configured host')
        .argParser(parsePort)
        .conflicts('bind'),
    )
    .option(
      '-w, --workers <number>',
      'processes that share the address, or "auto" for one per core (default: SVC_WORKERS, then [gateway] workers, ' +
        'then 1)',
      parseWorkers,
    )
    .option(...CONFIG)
    .examples(
      ['DATABASE_URL=postgres://app:pw@localhost/shop JWT_SECRET=… svc serve', 'without a file'],
      ['svc serve --config /etc/svc/svc.toml', 'settings from a file'],
      ['svc serve --port 9000', 'another port'],
      ['svc serve --bind 0.0.0.0:8080', 'on all interfaces'],
      ['svc serve --workers auto', 'one process for each core'],
    )
    .action(async ({ config, bind, port, workers }: ServeOptions) => {
      const { serve } = await import('./serve.ts')
      finish(await serve({ file: config, bind, port, workers }, world))
    })

  program
    .command('demo')
    .description(
      'Start an embedded PostgreSQL with a sample business of three tenants, and a gateway in front of it. ' +
        'Ctrl-C stops both.',
    )
    .option('-p, --port <number>', 'first port to try; the next free one is taken', parsePort)
    .option('--fresh', 'recreate the sample data')
    .examples(
      ['svc demo', 'print tokens and commands to paste'],
      ['svc demo --port 9000 --fresh', 'another port, new data'],
    )
    .action(async (options: { port?: number; fresh?: true }) => {
      const { demo } = await import('./demo.ts')
      await demo({ port: options.port, fresh: options.fresh === true }, world)
    })

  program
    .command('postgres')
    .description(
      'Start an empty PostgreSQL for development, on 127.0.0.1, with a generated password. Prints its URL, and ' +
        'runs until Ctrl-C or SIGTERM.',
    )
    .option('-d, --data <folder>', 'data folder; created at the first start', './pgdata')
    .option('-p, --port <number>', 'port to listen on', parsePort, 5432)
    .examples(
      ['svc postgres', 'data in ./pgdata, port 5432'],
      ['svc postgres --data ~/shop-data --port 5433', 'another folder and port'],
      ['psql "$(cat pgdata/url)"', 'connect to it in another terminal'],
    )
    .action(async (options: { data: string; port: number }) => {
      const { postgres } = await import('./postgres.ts')
      await postgres(options, world)
    })

  const token = program
    .command('token')
    .description('Print a token for development, signed with JWT_SECRET. Standard output contains nothing else.')
    .option('-t, --tenant <id>', 'claim tenant_id')
    .option('-u, --user <id>', 'claim user_id')
    .option('-r, --role <name>', 'claim role')
    .option('-s, --scope <scope>', 'member of the claim scopes; repeatable', collect)
    .option('-a, --agent <id>', 'claim agent_id')
    .addOption(
      new Option('-e, --expires <duration>', 'lifetime: 30s, 15m, 1h, 7d')
        .argParser(parseDurationOption)
        .default(3_600, '1h'),
    )
    .option(...CONFIG)
    .examples(
      ['svc token --tenant 42 --user ann --role clerk', 'valid for an hour'],
      ['svc token -t 42 -s orders:read -s orders:write -e 7d', 'with scopes, valid for a week'],
      ['curl -H "Authorization: Bearer $(svc token -t 42)" localhost:8080/api/orders', 'use it in a request'],
    )
    .action(async ({ config, scope = [], ...request }: TokenOptions) => {
      const { token: print } = await import('./token.ts')
      await print({ file: config, scope, ...request }, world)
    })
  addTokenCommands(token, world, finish)

  program
    .command('check')
    .description(
      'Check the configuration and the database without starting. Prints what is wrong, dangerous or slow, with ' +
        'the fix. Exit code 1 if a finding is an error.',
    )
    .option(...CONFIG)
    .option('--print', 'print the effective settings, without secrets')
    .option('--postgrest', "compare the database with what is served in PostgREST's dialect")
    .addOption(
      new Option(
        '--record [file]',
        'start the gateway, accept every query, and write its shape to an allow-list (default: allow_list_path), ' +
          'until Ctrl-C',
      ).conflicts(['print', 'json', 'postgrest']),
    )
    .addOption(new Option('--json', 'print one JSON object').conflicts('print'))
    .examples(
      ['svc check', 'findings with their fixes'],
      ['svc check --config svc.toml --print', 'effective settings'],
      ['svc check --record allow.txt', 'record the queries of your application'],
      ["svc check --json | jq -r '.findings[].sql[]'", 'all SQL, to review and then run as the owner'],
    )
    .action(async (options: CheckFlags) => {
      if (options.record !== undefined) {
        const { serve } = await import('./serve.ts')
        finish(await serve({ file: options.config, record: options.record }, world))
        return
      }
      const { check } = await import('./check.ts')
      const { config: file, print = false, json = false, postgrest = false } = options
      finish(await check({ file, print, json, postgrest }, world))
    })

  program
    .command('mcp')
    .description(
      'Start the tool server for agents: the query language and the documentation as tools of the Model ' +
        'Context Protocol. Needs no configuration and no database.',
    )
    .option(
      '-b, --bind <host:port>',
      'address to listen on (default: SVC_MCP_BIND, then [mcp] bind, then 127.0.0.1:8090)',
    )
    .option('--stdio', 'use standard input and output instead')
    .option(...CONFIG)
    .examples(
      ['svc mcp', 'at http://127.0.0.1:8090/mcp'],
      ['svc mcp --bind 0.0.0.0:9000', 'on all interfaces'],
      ['svc mcp --stdio', 'as a child process of the agent'],
    )
    .action(async ({ config, bind, stdio }: McpOptions) => {
      const { mcp } = await import('./mcp.ts')
      finish(await mcp({ file: config, bind: bind ?? null, stdio: stdio === true }, world))
    })

  program
    .command('openapi')
    .description('Print the OpenAPI document of the configured database.')
    .option('-r, --role <name>', 'as a caller with this role sees it (default: everything)')
    .option('-s, --scope <scope>', 'with this scope; repeatable', collect)
    .option('-o, --out <file>', 'write to a file instead of standard output')
    .option(...CONFIG)
    .examples(
      ['DATABASE_URL=postgres://… svc openapi --out openapi.json', 'for a client generator'],
      ['svc openapi --role clerk', 'what clerks can use'],
    )
    .action(async ({ scope = [], out, ...options }: OpenApiOptions) => {
      const { openapi } = await import('./openapi.ts')
      finish(await openapi({ config: options.config, role: options.role, scopes: scope, out: out ?? null }, world))
    })

  program
    .command('console')
    .description(
      'Open the console of a running gateway in the browser: the program that BROWSER names, or that of the system. ' +
        'Prints the address.',
    )
    .option(...CONFIG)
    .option('--url <url>', 'URL of the gateway (default: from the configuration)')
    .option('--print', 'only print the address')
    .examples(
      ['svc console', 'of the gateway on this machine'],
      ['svc console --url https://api.example.com --print', 'the address of another gateway'],
    )
    .action(async ({ config, url, print }: { config?: string; url?: string; print?: true }) => {
      const { openConsole } = await import('./console.ts')
      finish(await openConsole({ config, url, opens: print !== true }, world))
    })

  program
    .command('import')
    .description(
      'Send a file of CSV or NDJSON to a running gateway, which inserts its rows in one transaction, with the rights ' +
        'of the token.',
    )
    .argument('<table>', 'the table, by its name in the API')
    .argument('[file]', 'the rows (default: standard input)')
    .option(...CONFIG)
    .option('--url <url>', 'URL of the gateway (default: from the configuration)')
    .option('--token <token>', 'token of the caller (default: SVC_TOKEN)')
    .addOption(
      new Option(
        '-f, --format <format>',
        'format of the file (default: ndjson for .ndjson and .jsonl, otherwise csv)',
      ).choices(IMPORT_FORMATS),
    )
    .option('--skip-failing', 'leave out rows that fail, and print the line and the error of each. Exit code 1 then')
    .option('--upsert', 'change existing rows that have the same primary key')
    .examples(
      ['SVC_TOKEN=… svc import tags tags.csv', 'to the gateway on this machine'],
      ['SVC_TOKEN=… svc import tags tags.csv --skip-failing 2> errors.txt', 'what can be imported'],
      ['zcat orders.ndjson.gz | svc import orders --format ndjson --url https://api.example.com', 'from a pipe'],
    )
    .action(async (table: string, file: string | undefined, options: ImportFlags) => {
      const { importFile } = await import('./import.ts')
      const { config, url, token, format, skipFailing = false, upsert = false } = options
      finish(await importFile({ table, file, config, url, token, format, skipFailing, upsert }, world))
    })

  program
    .command('capacity')
    .description(
      'Calculate the cores, gateways, connections and memory that an expected load needs, from the benchmarks of ' +
        'this version. Needs no configuration and no database.',
    )
    .option('-r, --requests <number>', 'requests per second at the peak', parseAmount, 0)
    .addOption(
      new Option('-m, --mix <kinds>', 'kinds of requests with their proportions: get=60,list=30,insert=10')
        .argParser(parseMixOption)
        .default({ get: 1 }, 'get=1'),
    )
    .option('-s, --sockets <number>', 'WebSockets that are open at the same time', parseAmount, 0)
    .option('-c, --changes <number>', 'changes of captured rows per second', parseAmount, 0)
    .option('-t, --tenants <number>', 'connected tenants; required with --sockets and --changes', parseCount)
    .option('--busy <percent>', 'how busy a core is at the peak', parsePercent, 60)
    .option('--connections <number>', 'max_connections of each gateway (default: 10)', parseCount)
    .option('--json', 'print one JSON object')
    .examples(
      ['svc capacity --requests 5000 --mix get=60,list=30,insert=10', 'for requests'],
      ['svc capacity --changes 500 --sockets 100000 --tenants 2000', 'for realtime'],
    )
    .action(async ({ json, tenants, connections, ...options }: CapacityFlags) => {
      const { capacity } = await import('./capacity.ts')
      finish(capacity({ ...options, tenants, connections, json: json === true }, world))
    })

  addInstallCommands(program, world, finish)
  addWebhookCommands(program, world, finish)
  addLanguageCommands(program, world, finish)
  program
    .command('completion')
    .description('Print a script that completes the commands and options of svc in a shell.')
    .addArgument(new Argument('<shell>', 'bash, zsh or fish').choices(SHELLS))
    .examples(
      ['source <(svc completion bash)', 'in this bash'],
      // biome-ignore lint/suspicious/noTemplateCurlyInString: a variable of the shell
      ['svc completion zsh > "${fpath[1]}/_svc"', 'for zsh'],
      ['svc completion fish > ~/.config/fish/completions/svc.fish', 'for fish'],
    )
    .action((shell: Shell) => world.out(printCompletion(shell, program)))
  return program
}

interface ServeOptions {
  readonly config?: string
  readonly bind?: string
  readonly port?: number
  readonly workers?: number | 'auto'
}

interface McpOptions {
  readonly config?: string
  readonly bind?: string
  readonly stdio?: true
}

interface ImportFlags {
  readonly config?: string
  readonly url?: string
  readonly token?: string
  readonly format?: ImportFormat
  readonly skipFailing?: true
  readonly upsert?: true
}

interface TokenOptions {
  readonly config?: string
  readonly tenant?: string
  readonly user?: string
  readonly role?: string
  readonly scope?: readonly string[]
  readonly agent?: string
  readonly expires: number
}

interface OpenApiOptions {
  readonly config?: string
  readonly role?: string
  readonly scope?: readonly string[]
  readonly out?: string
}

function collect(one: string, all: readonly string[] = []): readonly string[] {
  return [...all, one]
}

export const EXIT_CODES = [
  [
    '0',
    'success, or stopped by a signal; a closed pipe on standard output or standard error does not change the exit code',
  ],
  ['1', 'failure; standard error describes it'],
  ['2', 'invalid command line, or a required value is missing'],
  ['130 or 143', 'stopped immediately, by a second signal or during startup'],
] as const

function printExitCodes(): string {
  const lines = EXIT_CODES.map(([code, meaning]) => `  ${code.padEnd(10)}  ${meaning}`)
  return `\n${helpTitle('Exit codes:')}\n${lines.join('\n')}`
}

function parsePort(text: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0
  if (port < 1 || port > 65_535) throw new InvalidArgumentError('Expected a port from 1 to 65535.')
  return port
}

function parseWorkers(text: string): number | 'auto' {
  if (text === 'auto') return text
  const workers = /^\d{1,3}$/.test(text) ? Number(text) : 0
  if (workers < 1 || workers > WORKERS_MAX)
    throw new InvalidArgumentError(`Expected a number from 1 to ${WORKERS_MAX}, or auto.`)
  return workers
}

/** A number of requests, changes or sockets. */
function parseAmount(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('Expected a whole number from 0 to 999999999.')
  return Number(text)
}

function parseCount(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError('Expected a whole number from 1 to 999999999.')
  return Number(text)
}

function parsePercent(text: string): number {
  if (!/^([1-9]\d?|100)$/.test(text)) throw new InvalidArgumentError('Expected a whole number from 1 to 100.')
  return Number(text)
}

function parseMixOption(text: string): ExpectedLoad['mix'] {
  try {
    return parseMix(text)
  } catch (error) {
    throw new InvalidArgumentError((error as Error).message)
  }
}

function parseDurationOption(text: string): number {
  const seconds = parseDuration(text)
  if (seconds === null)
    throw new InvalidArgumentError('Expected a number and a unit, such as 30s, 15m, 1h or 7d, at most ten years.')
  return seconds
}

/** The options of `svc capacity`. */
interface CapacityFlags {
  readonly requests: number
  readonly mix: ExpectedLoad['mix']
  readonly sockets: number
  readonly changes: number
  readonly tenants?: number
  readonly busy: number
  readonly connections?: number
  readonly json?: true
}

/** The options of `svc check`. */
interface CheckFlags {
  readonly config?: string
  readonly print?: true
  readonly json?: true
  readonly record?: string | true
  readonly postgrest?: true
}

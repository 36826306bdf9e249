/**
 * The command line: names, options and help of every command. What they do is in the file of each, loaded when
 * called.
 */
import { CommanderError, InvalidArgumentError, Option } from 'commander'
import { VERSION } from '../version.ts'
import { SvcCommand } from './command.ts'
import { parseDuration } from './duration.ts'
import { printFailure, UsageError } from './failure.ts'
import { CONFIG } from './help.ts'
import { addInstallCommands } from './install-commands.ts'
import { addLanguageCommands } from './language-commands.ts'
import { addWebhookCommands } from './webhook-commands.ts'
import { EXIT, type World } from './world.ts'

/** Runs one command line (without `node` and the program's name) and answers the exit code. Never rejects. */
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

/** `finish` is told the exit code of whichever command was run. */
export function createProgram(world: World, finish: (code: number) => void): SvcCommand {
  const program = new SvcCommand('svc')
    .description(
      'A data gateway: the tables of a PostgreSQL database become a REST API with tenant isolation by row-level security.',
    )
    .version(VERSION, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .helpCommand('help [command]', 'print the help of a command')
    .exitOverride()
    .showHelpAfterError('(svc --help shows what there is)')
    .configureOutput({
      writeOut: text => world.out(text.trimEnd()),
      writeErr: text => world.error(text.trimEnd()),
    })
    .examples(
      ['svc demo', 'try it: an embedded PostgreSQL with sample data'],
      ['DATABASE_URL=postgres://app:pw@localhost/shop JWT_SECRET=… svc serve', 'your own database'],
      ['svc check', 'what is wrong or dangerous, without starting'],
    )
    .addHelpText('after', printExitCodes())

  program
    .command('serve')
    .description(
      'Start the gateway. SIGTERM and SIGINT stop it gracefully, a second one at once; SIGHUP reads the schema and the lists again.',
    )
    .option('-b, --bind <host:port>', 'address to listen on (else SVC_BIND, else [gateway] bind, else 127.0.0.1:8080)')
    .addOption(
      new Option('-p, --port <number>', 'port to listen on, at the same host').argParser(parsePort).conflicts('bind'),
    )
    .option(...CONFIG)
    .examples(
      ['DATABASE_URL=postgres://app:pw@localhost/shop JWT_SECRET=… svc serve', 'no file needed'],
      ['svc serve --config /etc/svc/svc.toml', 'settings from a file'],
      ['svc serve --port 9000', 'another port'],
      ['svc serve --bind 0.0.0.0:8080', 'reachable from elsewhere'],
    )
    .action(async ({ config, bind, port }: ServeOptions) => {
      const { serve } = await import('./serve.ts')
      finish(await serve({ file: config, bind, port }, world))
    })

  program
    .command('demo')
    .description(
      'Start an embedded PostgreSQL with a sample business of three tenants, and the gateway before it. Ctrl-C leaves nothing running.',
    )
    .option('-p, --port <number>', 'first port to try; the next free one is taken', parsePort)
    .option('--fresh', 'make the sample data anew')
    .examples(
      ['svc demo', 'prints tokens and curl lines to paste'],
      ['svc demo --port 9000 --fresh', 'elsewhere, from scratch'],
    )
    .action(async (options: { port?: number; fresh?: true }) => {
      const { demo } = await import('./demo.ts')
      await demo({ port: options.port, fresh: options.fresh === true }, world)
    })

  program
    .command('postgres')
    .description(
      'Start an empty PostgreSQL for development: on 127.0.0.1, with its data in a folder of yours and a password made for it. Prints its URL, and runs until Ctrl-C or SIGTERM.',
    )
    .option('-d, --data <folder>', 'where its data is kept; made at the first start', './pgdata')
    .option('-p, --port <number>', 'port to listen on', parsePort, 5432)
    .examples(
      ['svc postgres', 'in ./pgdata, at port 5432'],
      ['svc postgres --data ~/shop-data --port 5433', 'elsewhere'],
      ['psql "$(cat pgdata/url)"', 'in another terminal'],
    )
    .action(async (options: { data: string; port: number }) => {
      const { postgres } = await import('./postgres.ts')
      await postgres(options, world)
    })

  program
    .command('token')
    .description('Print a token for development, signed with JWT_SECRET. Nothing else goes to standard output.')
    .option('-t, --tenant <id>', 'claim tenant_id')
    .option('-u, --user <id>', 'claim user_id')
    .option('-r, --role <name>', 'claim role')
    .option('-s, --scope <scope>', 'one of the claim scopes; repeat it for more', collect)
    .option('-a, --agent <id>', 'claim agent_id')
    .addOption(
      new Option('-e, --expires <duration>', 'how long it is good for: 30s, 15m, 1h, 7d')
        .argParser(parseDurationOption)
        .default(3_600, '1h'),
    )
    .option(...CONFIG)
    .examples(
      ['svc token --tenant 42 --user ann --role clerk', 'good for an hour'],
      ['svc token -t 42 -s orders:read -s orders:write -e 7d', 'with scopes, for a week'],
      ['curl -H "Authorization: Bearer $(svc token -t 42)" localhost:8080/api/orders', 'at once'],
    )
    .action(async ({ config, scope = [], ...request }: TokenOptions) => {
      const { token } = await import('./token.ts')
      await token({ file: config, scope, ...request }, world)
    })

  program
    .command('check')
    .description(
      'Check configuration and database without starting, and print what is wrong, dangerous or slow, each with what mends it. Exit code 1 when a finding is an error.',
    )
    .option(...CONFIG)
    .option('--print', 'print the effective settings, without secrets')
    .addOption(
      new Option(
        '--record [file]',
        'start the gateway, let every query pass, and write its shape to an allow-list (else allow_list_path), until Ctrl-C',
      ).conflicts(['print', 'json']),
    )
    .addOption(new Option('--json', 'print one JSON object on standard output, for machines').conflicts('print'))
    .examples(
      ['svc check', 'findings, each with what mends it'],
      ['svc check --config svc.toml --print', 'which settings are in force'],
      ['svc check --record allow.txt', 'then use your application, and read what was written'],
      ["svc check --json | jq -r '.findings[].sql[]'", 'all the SQL, to be read and then run as the owner'],
    )
    .action(async (options: { config?: string; print?: true; json?: true; record?: string | true }) => {
      if (options.record !== undefined) {
        const { serve } = await import('./serve.ts')
        finish(await serve({ file: options.config, record: options.record }, world))
        return
      }
      const { check } = await import('./check.ts')
      const { config: file, print = false, json = false } = options
      finish(await check({ file, print, json }, world))
    })

  program
    .command('mcp')
    .description(
      'Start the tool server for agents: the query language and the documentation as tools of the Model Context Protocol. Needs no configuration and no database.',
    )
    .option('-b, --bind <host:port>', 'where to listen (else SVC_MCP_BIND, else [mcp] bind, else 127.0.0.1:8090)')
    .option('--stdio', 'speak over standard input and output instead')
    .option(...CONFIG)
    .examples(
      ['svc mcp', 'at http://127.0.0.1:8090/mcp'],
      ['svc mcp --bind 0.0.0.0:9000', 'reachable from elsewhere'],
      ['svc mcp --stdio', 'as a child of the agent'],
    )
    .action(async ({ config, bind, stdio }: McpOptions) => {
      const { mcp } = await import('./mcp.ts')
      finish(await mcp({ file: config, bind: bind ?? null, stdio: stdio === true }, world))
    })

  program
    .command('openapi')
    .description('Print the OpenAPI document of the API that the configured database has.')
    .option('-r, --role <name>', 'as a caller with this role may see it (else all of it)')
    .option('-s, --scope <scope>', 'and with this scope; repeat it for more', collect)
    .option('-o, --out <file>', 'write there instead of standard output')
    .option(...CONFIG)
    .examples(
      ['DATABASE_URL=postgres://… svc openapi --out openapi.json', 'for a generator of clients'],
      ['svc openapi --role clerk', 'what clerks may do'],
    )
    .action(async ({ scope = [], out, ...options }: OpenApiOptions) => {
      const { openapi } = await import('./openapi.ts')
      finish(await openapi({ config: options.config, role: options.role, scopes: scope, out: out ?? null }, world))
    })

  addInstallCommands(program, world, finish)
  addWebhookCommands(program, world, finish)
  addLanguageCommands(program, world, finish)
  return program
}

interface ServeOptions {
  readonly config?: string
  readonly bind?: string
  readonly port?: number
}

interface McpOptions {
  readonly config?: string
  readonly bind?: string
  readonly stdio?: true
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
    'done, or stopped by a signal as asked; a closed pipe on standard output or standard error changes no exit code',
  ],
  ['1', 'something is wrong, as it says'],
  ['2', 'the command line was not understood, or what the command needs was not given'],
  ['130 or 143', 'stopped at once: by a second signal, or while it was still starting'],
] as const

function printExitCodes(): string {
  return `\nExit codes:\n${EXIT_CODES.map(([code, meaning]) => `  ${code.padEnd(10)}  ${meaning}`).join('\n')}`
}

function parsePort(text: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0
  if (port < 1 || port > 65_535) throw new InvalidArgumentError('Expected a port from 1 to 65535.')
  return port
}

function parseDurationOption(text: string): number {
  const seconds = parseDuration(text)
  if (seconds === null)
    throw new InvalidArgumentError('Expected a number and a unit, such as 30s, 15m, 1h or 7d, at most ten years.')
  return seconds
}

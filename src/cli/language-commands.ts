/** Names, options and help of the commands about the query language and the schema document. */
import { Option } from 'commander'
import type { SvcCommand } from './command.ts'
import { CONFIG } from './help.ts'
import type { World } from './world.ts'

type Finish = (code: number) => void

interface LanguageOptions {
  readonly json?: true
  readonly parameterized?: true
}

interface TranspileOptions extends LanguageOptions {
  readonly schema?: string
  readonly database?: true
  readonly config?: string
}

interface FormatOptions {
  readonly json?: true
  readonly check?: true
  readonly write?: true
}

interface DocumentOptions {
  readonly config?: string
  readonly out?: string
}

interface TypesOptions extends DocumentOptions {
  readonly url?: string
  readonly token?: string
  readonly jsonTypes?: string
  readonly check?: true
  readonly watch?: true
}

const FILE = ['[file]', 'statements, separated by ; (default: standard input)'] as const
const DOCUMENT = ['[file]', 'a schema document (default: the configured database)'] as const
const OUT = ['-o, --out <file>', 'write to a file instead of standard output'] as const

export function addLanguageCommands(program: SvcCommand, world: World, finish: Finish): void {
  program
    .command('parse')
    .description('Print the tree of queries as JSON. A syntax error goes to standard error, with exit code 1.')
    .argument(...FILE)
    .option(
      '--json',
      'the result of the tool svc_parse_query: tree, canonical text, SQL, parameters, and notes on inferred conditions',
    )
    .option('--parameterized', 'with --json: literals become parameters of the SQL')
    .examples(
      ["echo 'get users where id = $1' | svc parse", 'the tree'],
      ['svc parse --json --parameterized queries.svc', 'with the SQL, one line per statement'],
    )
    .action(async (file: string | undefined, options: LanguageOptions) => {
      const { parseFile: parse } = await import('./language.ts')
      finish(await parse(languageCommand(file, options), world))
    })

  program
    .command('transpile')
    .description('Print queries as SQL for PostgreSQL.')
    .argument(...FILE)
    .option('--json', 'the result of the tool svc_transpile_query: SQL, parameters, and notes on inferred conditions')
    .option('--parameterized', 'literals become parameters')
    .addOption(
      new Option(
        '--schema <file>',
        'find the conditions of joins and nests without "on" in the foreign keys of this schema document',
      ).conflicts(['database', 'config']),
    )
    .option('--database', 'the same, with the foreign keys of the configured database')
    .option(...CONFIG)
    .examples(
      ["echo 'cnt users where active = true' | svc transpile", 'SELECT COUNT(*) FROM users WHERE active = true;'],
      ['svc transpile queries.svc | psql', 'run them with psql'],
      ['svc transpile --schema shop.schema queries.svc', 'joins by the foreign keys of a document'],
      ['DATABASE_URL=postgres://… svc transpile --database queries.svc', 'joins by the foreign keys of the database'],
    )
    .action(async (file: string | undefined, options: TranspileOptions, command: SvcCommand) => {
      const { schema, database, config } = options
      if (config !== undefined && database === undefined) {
        command.error("error: option '--config' selects the database and requires '--database'", { exitCode: 2 })
      }
      if (schema === '-' && (file === undefined || file === '-')) {
        command.error('error: queries and schema cannot both be standard input', { exitCode: 2 })
      }
      const { transpileFile: transpile } = await import('./language.ts')
      const keys = schema === undefined && database === undefined ? null : { file: schema, config }
      finish(await transpile({ ...languageCommand(file, options), keys }, world))
    })

  program
    .command('explain')
    .description('Describe what each part of a query does, and what is easily overlooked.')
    .argument(...FILE)
    .option('--json', 'the result of the tool svc_explain_query')
    .examples(
      ["echo 'get users where id = 1' | svc explain", 'as text'],
      ['svc explain --json queries.svc', 'as JSON, one line per statement'],
    )
    .action(async (file: string | undefined, { json }: Pick<LanguageOptions, 'json'>) => {
      const { explainFile: explain } = await import('./language.ts')
      finish(await explain({ file, json: json === true }, world))
    })

  program
    .command('format')
    .description('Print queries in canonical form; comments are kept.')
    .argument('[files...]', 'statements, separated by ; (default: standard input)')
    .option('--check', 'only list files that are not in canonical form, with exit code 1')
    .option('--write', 'rewrite the files in canonical form')
    .option('--json', 'the result of the tool svc_format_query')
    .examples(
      ["echo 'get users where id=1' | svc format", 'to standard output'],
      ['svc format --write queries/*.svc', 'in place'],
      ['svc format --check queries/*.svc', 'check in a build'],
    )
    .action(async (files: readonly string[], { json, check, write }: FormatOptions, command: SvcCommand) => {
      if (check === true && write === true) {
        command.error("error: options '--check' and '--write' exclude each other", { exitCode: 2 })
      }
      const { formatFiles } = await import('./language.ts')
      const mode = check === true ? 'check' : write === true ? 'write' : 'print'
      finish(await formatFiles({ files, json: json === true, mode }, world))
    })

  addSchemaCommands(program, world, finish)
}

function addSchemaCommands(program: SvcCommand, world: World, finish: Finish): void {
  const schema = program
    .command('schema')
    .description('Work with the schema of a database as a document.')
    .examples(
      ['svc schema pull --out shop.schema', 'write a document from the database'],
      ['svc schema summary shop.schema', 'contents and warnings'],
    )
  schema
    .command('pull')
    .description('Print the schema of the configured database as a document.')
    .option(...CONFIG)
    .option(...OUT)
    .examples(['DATABASE_URL=postgres://… svc schema pull --out shop.schema', 'write to a file'])
    .action(async ({ config, out }: DocumentOptions) => {
      const { pull } = await import('./schema.ts')
      finish(await pull({ config, out: out ?? null }, world))
    })
  schema
    .command('summary')
    .description('Print the contents of a schema document as JSON, with warnings.')
    .argument(...DOCUMENT)
    .option(...CONFIG)
    .option(...OUT)
    .examples(['svc schema summary shop.schema', 'of a document'])
    .action(async (file: string | undefined, { config, out }: DocumentOptions) => {
      const { summary } = await import('./schema.ts')
      finish(await summary({ file, config, out: out ?? null }, world))
    })
  program
    .command('types')
    .description('Print TypeScript types of the rows, bodies and functions of the API, for the client and the builder.')
    .argument(...DOCUMENT)
    .option(...CONFIG)
    .option(...OUT)
    .option('--url <url>', 'of a running gateway, for what the caller of the token can use')
    .option('--token <token>', 'with --url (default: SVC_TOKEN)')
    .option('--json-types <module>', 'the module with the types that comments of JSON columns name with @type')
    .option('--check', 'with --out: write nothing; exit code 1 if the file is not up to date')
    .option('--watch', 'with --out: write the file again whenever the schema changes')
    .examples(
      ['svc types --out src/schema.ts', 'of the configured database'],
      ['svc types shop.schema', 'of a document'],
      ['SVC_TOKEN=… svc types --url https://api.example.com --out src/schema.ts', 'of a gateway'],
      ['svc types --check --out src/schema.ts', 'check in a build'],
    )
    .action(async (file: string | undefined, options: TypesOptions, command: SvcCommand) => {
      const refuse = (message: string) => command.error(`error: ${message}`, { exitCode: 2 })
      const { check, watch, out, url, token } = options
      if (check === true && watch === true) refuse("options '--check' and '--watch' exclude each other")
      if ((check === true || watch === true) && out === undefined) {
        refuse("options '--check' and '--watch' require '--out'")
      }
      if (url !== undefined && file !== undefined) refuse("a document and option '--url' exclude each other")
      if (token !== undefined && url === undefined) refuse("option '--token' requires '--url'")
      const { types } = await import('./types.ts')
      const mode = check === true ? 'check' : watch === true ? 'watch' : 'write'
      const { config, jsonTypes } = options
      finish(await types({ file, config, url, token, jsonTypes, out: out ?? null, mode }, world))
    })
}

function languageCommand(file: string | undefined, { json, parameterized }: LanguageOptions) {
  return { file, json: json === true, parameters: parameterized === true ? 'all' : 'keep' } as const
}

/**
 * Reads `svc.toml` and the environment into a `Config`, or reports all problems at once
 * (docs/reference/configuration.md). The file is `--config`, else `SVC_CONFIG`, else `./svc.toml` if it
 * exists. The environment overrides the file.
 */
import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Config, IssuerConfig, ReplicaConfig, RoleOverride, TableConfig } from './config.ts'
import type { Environment } from './expand.ts'
import { issuerProblems } from './issuer-problems.ts'
import { ConfigError, type Problem } from './problem.ts'
import { replicaProblems } from './replica-problems.ts'
import {
  ACCESS,
  CACHE,
  CONSOLE,
  GATEWAY,
  ISSUER,
  MCP,
  OPENAPI,
  POSTGREST,
  PROCESS,
  REPLICA,
  ROLE_OVERRIDE,
  type Setting,
  type SettingsOf,
  SHAPES,
  SHARED,
  TABLE,
  TRACING,
} from './settings.ts'
import { signInProblems } from './sign-in-problems.ts'
import { isTable, readTomlFile, type TomlFile, valueAt } from './toml-file.ts'
import { unknownKeys } from './unknown-keys.ts'
import { tooManyWorkers } from './worker-share.ts'
import {
  expandWritten,
  parseWritten,
  problemOfWritten,
  type Report,
  type WrittenValue,
  writtenInEnvironment,
  writtenInFile,
} from './written.ts'

/** The inputs for loading the configuration. */
export interface LoadOptions {
  /** `--config FILE`. */
  readonly file?: string | undefined
  readonly environment: Environment
  /** The folder to which the name of the file itself is relative. */
  readonly workingDirectory: string
  /**
   * The purpose, `serve` by default. `record`: the allow-list is being recorded and can be absent. `token`:
   * only the settings that tokens are made from are required, so a variable used in `database_url` can be
   * unset.
   */
  readonly purpose?: 'serve' | 'record' | 'token'
}

/** The configuration, and where its settings come from. */
export interface LoadedConfig {
  readonly config: Config
  /** The settings that are given, as opposed to defaults, in the order of the table. */
  readonly given: readonly Given[]
  /** The `database_url` of the file, even if the environment overrides it; null if the file has none. */
  readonly fileDatabaseUrl: string | null
}

/** A setting that is given, and its source. */
export interface Given {
  readonly setting: Setting<unknown>
  readonly written: WrittenValue
}

const FILE_NAME = 'svc.toml'

const TOKEN_SETTINGS: ReadonlySet<unknown> = new Set([PROCESS.jwtSecret, GATEWAY.jwtIssuer, GATEWAY.jwtAudience])

/** Loads the configuration. Throws `ConfigError` with all problems. */
export function loadConfig(options: LoadOptions): LoadedConfig {
  const problems: Problem[] = []
  const given: Given[] = []
  const report: Report = problem => problems.push(problem)
  const name = fileName(options)
  const file = name === null ? null : readTomlFile(name, options.workingDirectory, report)

  let fileDatabaseUrl: string | null = null
  const read: Read = (setting, name) => {
    if (options.purpose === 'token' && !TOKEN_SETTINGS.has(setting)) return setting.default
    const inFile = file === null ? null : readFromFile(setting, name, file, options.environment, report)
    const inEnvironment = writtenInEnvironment(setting, options.environment, options.workingDirectory)
    const written = inEnvironment ?? inFile
    if (written !== null) given.push({ setting, written })
    // A value that the environment overrides is checked too: it would take effect once the variable is not
    // set.
    const fromFile = inFile === null ? null : parseWritten(inFile, setting, report)
    if ((setting as Setting<unknown>) === GATEWAY.databaseUrl) fileDatabaseUrl = fromFile as string | null
    const fromEnvironment = inEnvironment === null ? null : parseWritten(inEnvironment, setting, report)
    return Object.freeze(fromEnvironment ?? fromFile ?? setting.default)
  }

  const config = readConfig(read, file, given, options.environment)
  if (file !== null) for (const problem of unknownKeys(file)) report(problem)
  // If the file could not be read, settings missing from it are not reported in addition.
  if (problems.length === 0) for (const problem of contradictions(config, given)) report(problem)
  if (problems.length === 0 && file !== null && options.purpose !== 'token') {
    for (const problem of issuerProblems(config.gateway.issuers, file)) report(problem)
    for (const problem of replicaProblems(config.gateway.replicas, file)) report(problem)
    for (const problem of signInProblems(config.gateway, file)) report(problem)
  }
  for (const problem of unreadableFiles(config, given, options)) report(problem)
  if (problems.length > 0) throw new ConfigError(problems.toSorted(byPlace))
  return { config, given, fileDatabaseUrl }
}

/** `name` replaces `<role>`, `<name>` or `<n>` in the key. */
type Read = <T>(setting: Setting<T>, name: string) => T

function fileName(options: LoadOptions): string | null {
  const named = options.file ?? (options.environment.SVC_CONFIG || undefined)
  if (named !== undefined) return named
  return existsSync(resolve(options.workingDirectory, FILE_NAME)) ? FILE_NAME : null
}

/** Reads a setting by its key or its alias; giving both is a problem even if they are equal. */
function readFromFile(
  setting: Setting<unknown>,
  name: string,
  file: TomlFile,
  environment: Environment,
  report: Report,
): WrittenValue | null {
  const [written, again] = writtenInFile(setting, name, file)
  if (written === undefined) return null
  if (again !== undefined)
    report(problemOfWritten(again, `means the same as ${written.key}, which is also set: remove one`))
  return expandWritten(written, setting, environment, report)
}

function readConfig(read: Read, file: TomlFile | null, given: readonly Given[], environment: Environment): Config {
  const process = readTable(PROCESS, read)
  const gateway = readTable(GATEWAY, read)
  const saysRequireExp = given.some(({ setting }) => setting === GATEWAY.requireExp)
  return Object.freeze({
    ...process,
    gateway: Object.freeze({
      ...gateway,
      requireExp: saysRequireExp ? gateway.requireExp : gateway.strict,
      cache: readTable(CACHE, read),
      console: readTable(CONSOLE, read),
      tracing: readTable(TRACING, read),
      shared: readTable(SHARED, read),
      openapi: readTable(OPENAPI, read),
      roleOverrides: readRoleOverrides(read, file),
      tables: readTables(read, file),
      issuers: readIssuers(read, file, environment),
      replicas: readReplicas(read, file),
    }),
    access: readTable(ACCESS, read),
    mcp: readTable(MCP, read),
    postgrest: readTable(POSTGREST, read),
    shapes: readTable(SHAPES, read),
    file: file?.path ?? null,
  })
}

function readTable<T extends object>(table: SettingsOf<T>, read: Read, name = ''): Readonly<T> {
  const fields = Object.entries(table) as [string, Setting<unknown>][]
  return Object.freeze(Object.fromEntries(fields.map(([field, setting]) => [field, read(setting, name)]))) as T
}

function readRoleOverrides(read: Read, file: TomlFile | null): ReadonlyMap<string, RoleOverride> {
  const roles = file === null ? undefined : valueAt(file.root, ['gateway', 'role_overrides'])
  if (!isTable(roles)) return new Map()
  return new Map(Object.keys(roles).map(role => [role, readTable(ROLE_OVERRIDE, read, role)]))
}

function readTables(read: Read, file: TomlFile | null): ReadonlyMap<string, TableConfig> {
  const tables = file === null ? undefined : valueAt(file.root, ['gateway', 'tables'])
  if (!isTable(tables)) return new Map()
  return new Map(Object.keys(tables).map(name => [name, readTable(TABLE, read, name)]))
}

function readIssuers(read: Read, file: TomlFile | null, environment: Environment): readonly IssuerConfig[] {
  const tables = file === null ? undefined : valueAt(file.root, ['gateway', 'issuers'])
  // Anything else than an array of tables is reported with the unknown keys.
  if (!Array.isArray(tables) || !tables.every(isTable)) return []
  return Object.freeze(
    tables.map((_, index) => {
      const issuer = readTable(ISSUER, read, String(index))
      const secret = issuer.secretEnv === null ? null : environment[issuer.secretEnv] || null
      return Object.freeze({ ...issuer, secret })
    }),
  )
}

function readReplicas(read: Read, file: TomlFile | null): readonly ReplicaConfig[] {
  const tables = file === null ? undefined : valueAt(file.root, ['gateway', 'replicas'])
  if (!Array.isArray(tables) || !tables.every(isTable)) return []
  return Object.freeze(
    tables.map((_, index) => {
      const replica = readTable(REPLICA, read, String(index))
      return Object.freeze({ ...replica, url: replica.url ?? '' })
    }),
  )
}

/** Problems between settings that are each valid. */
function contradictions(config: Config, given: readonly Given[]): readonly Problem[] {
  const workers = given.find(({ setting }) => setting === GATEWAY.workers)?.written
  const problem = tooManyWorkers(config.gateway)
  const tooMany = workers === undefined || problem === null ? [] : [problemOfWritten(workers, problem)]
  return [
    ...tooMany,
    ...incompletePolicy(config, given),
    ...doorWithAllowList(config, given),
    ...realtimeWithPreRequest(config, given),
  ]
}

function doorWithAllowList({ postgrest, gateway }: Config, given: readonly Given[]): readonly Problem[] {
  const written = given.find(({ setting }) => setting === POSTGREST.enabled)?.written
  if (!postgrest.enabled || gateway.allowListPath === null || written === undefined) return []
  const message = 'cannot be combined with gateway.allow_list_path, whose lines describe requests below /api only'
  return [problemOfWritten(written, message)]
}

/** Settings that a function makes cannot be compared, so subscribers cannot be grouped by what they see. */
function realtimeWithPreRequest({ postgrest }: Config, given: readonly Given[]): readonly Problem[] {
  const written = given.find(({ setting }) => setting === POSTGREST.realtime)?.written
  if (!postgrest.realtime || postgrest.preRequest === null || written === undefined) return []
  return [problemOfWritten(written, 'cannot be combined with postgrest.pre_request, which subscriptions do not call')]
}

function incompletePolicy(config: Config, given: readonly Given[]): readonly Problem[] {
  if (!config.access.enabled || config.access.path !== null) return []
  const written = given.find(({ setting }) => setting === ACCESS.enabled)?.written
  return written === undefined ? [] : [problemOfWritten(written, 'needs access.path, the file with the policy')]
}

/**
 * Every configured file must exist at startup, except a policy that is not enabled and the list that is
 * being recorded.
 */
function unreadableFiles(
  config: Config,
  given: readonly Given[],
  { purpose }: Pick<LoadOptions, 'purpose'>,
): readonly Problem[] {
  return given.flatMap(({ setting, written }) => {
    if (setting.kind.namesFile !== true || typeof written.value !== 'string') return []
    if (setting === ACCESS.path && !config.access.enabled) return []
    if (setting === GATEWAY.allowListPath && purpose === 'record') return []
    const reason = whyUnreadable(resolve(written.folder, written.value))
    return reason === null ? [] : [problemOfWritten(written, `expected a file that can be read: ${reason}`)]
  })
}

function whyUnreadable(path: string): string | null {
  try {
    accessSync(path, constants.R_OK)
    return statSync(path).isFile() ? null : `${path} is not a file`
  } catch (error) {
    return (error as Error).message
  }
}

/** Sorts by position in the file, then the environment. */
function byPlace(one: Problem, other: Problem): number {
  return (
    Number(one.source === 'environment') - Number(other.source === 'environment') || (one.line ?? 0) - (other.line ?? 0)
  )
}

/**
 * PostgreSQL from Debian's packages: older than the embedded one, built with more features, and with programs
 * such as pg_dump. Other distributions with all programs can be used as well.
 */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { chmod, chown, copyFile, mkdir, realpath, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { freePort } from '../../src/demo/free-port.ts'
import { type RunAs, runAs, spawnAs } from '../../src/demo/run-as.ts'
import { missingPrograms, programPath, type Running, startProgram } from './programs.ts'

/** The reason why it is not available; null if it is. */
export const DEBIAN_POSTGRES_MISSING: string | null = missingPrograms({
  initdb: 'postgresql-15',
  postgres: 'postgresql-15',
})

/** The folder with all programs of a version from PyPI; null if `.ci/programs` has not installed it. */
export function completePostgres(major: 17 | 18): string | null {
  const folder = fileURLToPath(new URL(`../../.cache/postgresql-complete/${major}/bin`, import.meta.url))
  return existsSync(join(folder, 'pg_upgrade')) ? folder : null
}

export interface DebianServer {
  readonly port: number
  /** Connects as superuser, with trust authentication. */
  readonly adminUrl: string
  readonly dataDirectory: string
  /** The folder of its programs. */
  readonly programs: string
  /** Shuts down as `pg_upgrade` needs it. */
  stop(): Promise<void>
  close(): Promise<void>
}

export interface DebianServerOptions {
  /** An existing folder that every user can enter. The server's data directory is created in it. */
  readonly folder: string
  /** Lines of pg_hba.conf. The superuser always has trust authentication. */
  readonly hba: readonly string[]
  /** The folder of the server's programs; Debian's by default. */
  readonly programs?: string
  readonly settings?: Readonly<Record<string, string>>
  readonly environment?: Readonly<Record<string, string>>
  /**
   * Files to copy next to the data directory, readable by the server's user: name to path. Settings refer to
   * them as `{name}`.
   */
  readonly files?: Readonly<Record<string, string>>
  /** A stopped server with the same settings, from which `pg_upgrade` copies. */
  readonly upgradeFrom?: Cluster
}

export async function startDebianPostgres(options: DebianServerOptions): Promise<DebianServer> {
  const { hba, settings = {}, environment = {}, files = {}, upgradeFrom } = options
  const programs = options.programs ?? dirname(await realpath(programPath('postgres')))
  const user = runAs()
  const base = join(options.folder, 'postgresql')
  const data = join(base, 'data')
  await mkdir(base)
  for (const [name, path] of Object.entries(files)) await copyFile(path, join(base, name))
  for (const path of [base, ...Object.keys(files).map(name => join(base, name))]) await own(path, user)
  await chmod(base, 0o755)
  // With checksums, which the versions have different defaults for.
  await promisify(execFile)(
    join(programs, 'initdb'),
    ['-D', data, '-U', 'postgres', '-A', 'trust', '--locale=C.UTF-8', '--encoding=UTF8', '--no-sync', '-k'],
    { ...spawnAs(user), cwd: '/', env: { PATH: process.env.PATH ?? '', LC_ALL: 'C' } },
  )
  const lines = ['local all postgres trust', 'host all postgres 127.0.0.1/32 trust', ...hba]
  await writeFile(join(data, 'pg_hba.conf'), lines.map(line => `${line}\n`).join(''))
  const port = await freePort()
  const all = {
    ...{ listen_addresses: '127.0.0.1', unix_socket_directories: '', fsync: 'off', logging_collector: 'off' },
    ...settings,
  }
  if (upgradeFrom !== undefined) {
    await upgrade({ from: upgradeFrom, to: { dataDirectory: data, programs }, folder: base, settings, user })
  }
  const inPlace = (value: string) => value.replace(/\{([\w.]+)\}/g, (_, name: string) => join(base, name))
  const running: Running = await startProgram(join(programs, 'postgres'), {
    args: [
      ...['-D', data, '-p', String(port)],
      ...Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${inPlace(value)}`]),
    ],
    env: { ...environment, LC_ALL: 'C' },
    ...spawnAs(user),
    ready: /ready to accept connections/,
    // Immediate shutdown, with all processes of the server.
    stopSignal: 'SIGQUIT',
  })
  return {
    ...{ port, adminUrl: `postgres://postgres@127.0.0.1:${port}/postgres`, dataDirectory: data, programs },
    async stop() {
      await promisify(execFile)(join(programs, 'pg_ctl'), ['stop', '-w', '-m', 'fast', '-D', data], {
        ...spawnAs(user),
        cwd: '/',
      })
    },
    close: () => running.close(),
  }
}

type Cluster = Pick<DebianServer, 'dataDirectory' | 'programs'>

interface Upgrade {
  readonly from: Cluster
  readonly to: Cluster
  /** Where the program writes its logs and creates its socket. */
  readonly folder: string
  readonly settings: Readonly<Record<string, string>>
  readonly user: RunAs | null
}

async function upgrade({ from, to, folder, settings, user }: Upgrade): Promise<void> {
  const flags = Object.entries(settings).map(([name, value]) => `-c ${name}=${value}`)
  await promisify(execFile)(
    join(to.programs, 'pg_upgrade'),
    [
      ...['-b', from.programs, '-B', to.programs, '-d', from.dataDirectory, '-D', to.dataDirectory],
      ...['-U', 'postgres', '-s', folder],
      ...['-p', String(await freePort()), '-P', String(await freePort())],
      ...['-o', flags.join(' '), '-O', flags.join(' ')],
    ],
    { ...spawnAs(user), cwd: folder, env: { PATH: process.env.PATH ?? '', LC_ALL: 'C' } },
  ).catch(error => {
    // It reports problems on standard output.
    throw new Error(`${error.message}\n${error.stdout}`, { cause: error })
  })
}

async function own(path: string, user: RunAs | null): Promise<void> {
  if (user !== null) await chown(path, user.uid, user.gid)
}

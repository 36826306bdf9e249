/**
 * PostgreSQL from Debian's packages: older than the embedded one, built with more features, and with programs
 * such as pg_dump.
 */
import { execFile } from 'node:child_process'
import { chmod, chown, copyFile, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { freePort } from '../../src/demo/free-port.ts'
import { type RunAs, runAs, spawnAs } from '../../src/demo/run-as.ts'
import { missingPrograms, programPath, type Running, startProgram } from './programs.ts'

/** The reason why it is not available; null if it is. */
export const DEBIAN_POSTGRES_MISSING: string | null = missingPrograms({
  initdb: 'postgresql-15',
  postgres: 'postgresql-15',
})

export interface DebianServer {
  readonly port: number
  /** Connects as superuser, with trust authentication. */
  readonly adminUrl: string
  close(): Promise<void>
}

export interface DebianServerOptions {
  /** An existing folder that every user can enter. The server's data directory is created in it. */
  readonly folder: string
  /** Lines of pg_hba.conf. The superuser always has trust authentication. */
  readonly hba: readonly string[]
  readonly settings?: Readonly<Record<string, string>>
  readonly environment?: Readonly<Record<string, string>>
  /**
   * Files to copy next to the data directory, readable by the server's user: name to path. Settings refer to
   * them as `{name}`.
   */
  readonly files?: Readonly<Record<string, string>>
}

export async function startDebianPostgres(options: DebianServerOptions): Promise<DebianServer> {
  const { hba, settings = {}, environment = {}, files = {} } = options
  const user = runAs()
  const base = join(options.folder, 'postgresql')
  const data = join(base, 'data')
  await mkdir(base)
  for (const [name, path] of Object.entries(files)) await copyFile(path, join(base, name))
  for (const path of [base, ...Object.keys(files).map(name => join(base, name))]) await own(path, user)
  await chmod(base, 0o755)
  await promisify(execFile)(
    programPath('initdb'),
    ['-D', data, '-U', 'postgres', '-A', 'trust', '--locale=C.UTF-8', '--encoding=UTF8', '--no-sync'],
    { ...spawnAs(user), cwd: '/', env: { PATH: process.env.PATH ?? '', LC_ALL: 'C' } },
  )
  const lines = ['host all postgres 127.0.0.1/32 trust', ...hba]
  await writeFile(join(data, 'pg_hba.conf'), lines.map(line => `${line}\n`).join(''))
  const port = await freePort()
  const all = {
    ...{ listen_addresses: '127.0.0.1', unix_socket_directories: '', fsync: 'off', logging_collector: 'off' },
    ...settings,
  }
  const inPlace = (value: string) => value.replace(/\{([\w.]+)\}/g, (_, name: string) => join(base, name))
  const running: Running = await startProgram(programPath('postgres'), {
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
  return { port, adminUrl: `postgres://postgres@127.0.0.1:${port}/postgres`, close: () => running.close() }
}

async function own(path: string, user: RunAs | null): Promise<void> {
  if (user !== null) await chown(path, user.uid, user.gid)
}

/** Creates a data folder for PostgreSQL. */
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chown, mkdir, rm, writeFile } from 'node:fs/promises'
import type { Binaries } from './binaries.ts'
import { dataPathOf, type Place } from './data-path.ts'
import { EmbeddedError } from './error.ts'
import { spawnAs } from './run-as.ts'

/** Limit on the output of a failed program that an error message quotes. */
const OUTPUT_QUOTED_MAX = 2_000

/** The environment of PostgreSQL's programs, without PG*, LC_* and NODE_*. */
export const CHILD_ENVIRONMENT: NodeJS.ProcessEnv | undefined =
  process.platform === 'win32' ? undefined : { PATH: '/usr/local/bin:/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' }

export interface ClusterOptions {
  readonly dataDirectory: string
  /** The password of the superuser `postgres`. */
  readonly password: string
  /** True to wait until everything is on disk, which tests do not need. */
  readonly durable: boolean
}

/**
 * Creates a cluster that requires a password. Collation is by code point everywhere (`C.UTF-8`, built in), so
 * the same data sorts identically on every system.
 * Objects are created by a running server. Single-user mode would need neither server nor client, but would
 * assign object identifiers below 16384, and PostgreSQL treats such tables as its own: row-level security is
 * never applied to them, even if forced (GetNewObjectId in varsup.c, check_enable_rls in rls.c).
 */
export async function createCluster(binaries: Binaries, options: ClusterOptions): Promise<void> {
  const passwordFile = `${options.dataDirectory}.password`
  await makeServerFolder(binaries, options.dataDirectory)
  const place = dataPathOf(binaries, options.dataDirectory)
  try {
    await writeServerFile(binaries, passwordFile, options.password)
    await runInitdb(binaries, place, [
      ...['-D', place.path, '-U', 'postgres', '--encoding=UTF8', '--no-instructions'],
      ...localeOf(binaries),
      ...['--auth=scram-sha-256', `--pwfile=${place.beside('.password')}`],
      ...(options.durable ? [] : ['--no-sync']),
    ])
  } finally {
    await rm(passwordFile, { force: true })
  }
}

/** PostgreSQL 17 and later have a built-in locale; before that the operating system's is used. */
function localeOf({ major }: Binaries): readonly string[] {
  return major >= 17
    ? ['--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8']
    : ['--lc-collate=C', '--lc-ctype=C.UTF-8']
}

/** Creates a folder that only the server's user may enter. */
export async function makeServerFolder({ runAs }: Binaries, folder: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  if (runAs !== null) await chown(folder, runAs.uid, runAs.gid)
}

/** Creates a file that only the server's user may read. */
export async function writeServerFile({ runAs }: Binaries, path: string, content: string): Promise<void> {
  await writeFile(path, content, { mode: 0o600 })
  if (runAs !== null) await chown(path, runAs.uid, runAs.gid)
}

/** 256 bits in characters that need no escape in a URL or in SQL. */
export function secret(): string {
  return randomBytes(32).toString('base64url')
}

function runInitdb({ initdb, runAs }: Binaries, { cwd }: Place, args: readonly string[]): Promise<void> {
  const child = spawn(initdb, args, {
    ...spawnAs(runAs),
    cwd,
    env: CHILD_ENVIRONMENT,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  return new Promise((resolve, reject) => {
    let output = ''
    for (const pipe of [child.stdout, child.stderr]) {
      pipe.setEncoding('utf8').on('data', (chunk: string) => {
        output = (output + chunk).slice(-OUTPUT_QUOTED_MAX)
      })
    }
    child.once('error', cause => reject(new EmbeddedError(`initdb cannot start: ${cause.message}`, { cause })))
    child.once('close', (code, signal) => {
      if (code === 0) resolve()
      else reject(new EmbeddedError(`initdb failed (${signal ?? `exit ${code}`}):\n${output.trim()}`))
    })
  })
}

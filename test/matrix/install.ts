/** Installs the package of a lane, another PostgreSQL or Node, into a folder of the matrix. */
import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { unreachable } from '../support/npm.ts'
import { ROOT } from '../tidy/tree.ts'
import type { Lane } from './lanes.ts'

/** The registry cannot be reached: the lane is not at fault, but cannot run. */
export class RegistryUnreachable extends Error {}

/** The environment of a lane's tests, and the Node that runs them. */
export interface Installed {
  readonly node: string
  readonly environment: Readonly<Record<string, string>>
}

export interface InstallOptions {
  /** The folder for packages of lanes. */
  readonly cache: string
  readonly signal: AbortSignal
  /** True if the package must be in the folder or in npm's cache. */
  readonly offline?: boolean
  print(line: string): void
}

export async function installLane(lane: Lane, options: InstallOptions): Promise<Installed> {
  if (isPresent(lane)) return { node: process.execPath, environment: {} }
  const folder = await installPackage(lane, options)
  if (lane.kind === 'postgresql') return { node: process.execPath, environment: { SVC_TEST_POSTGRESQL: folder } }
  // Tests and the programs that they start find the lane's Node first.
  return { node: await linkNode(folder, lane), environment: { PATH: `${join(folder, 'bin')}:${process.env.PATH}` } }
}

/** Whether `npm ci` has installed the lane's PostgreSQL, or this process runs on its Node. */
function isPresent({ kind, packageName, version }: Lane): boolean {
  if (kind === 'node') return process.versions.node === version
  const manifest = join(ROOT, 'node_modules', packageName, 'package.json')
  return existsSync(manifest) && JSON.parse(readFileSync(manifest, 'utf8')).version === version
}

async function installPackage(
  { name, packageName, version }: Lane,
  { cache, signal, print, offline = false }: InstallOptions,
): Promise<string> {
  const folder = join(cache, `${name}-${version}`)
  const done = join(folder, 'installed')
  if (existsSync(done)) return folder
  print(`  installing ${packageName}@${version} …`)
  await mkdir(folder, { recursive: true })
  await npmInstall(folder, `${packageName}@${version}`, signal, offline ? '--offline' : '--prefer-offline')
  await writeFile(done, '')
  return folder
}

async function npmInstall(
  folder: string,
  specification: string,
  signal: AbortSignal,
  reach: '--offline' | '--prefer-offline',
): Promise<void> {
  // Install scripts only download or link files that are found without them.
  const args = ['install', '--prefix', folder, '--no-save', '--ignore-scripts', reach, '--no-audit']
  // Gives up an unreachable registry within seconds.
  const patience = ['--fetch-retries=1', '--fetch-retry-mintimeout=1000', '--fetch-retry-maxtimeout=5000']
  const child = spawn('npm', [...args, ...patience, '--no-fund', '--loglevel=error', specification], {
    stdio: ['ignore', 'ignore', 'pipe'],
    shell: process.platform === 'win32',
    signal,
  })
  let said = ''
  child.stderr.setEncoding('utf8').on('data', text => {
    said += text
  })
  // An aborted child process can report this more than once.
  const status = await new Promise<number | null>((resolve, reject) => child.on('error', reject).once('close', resolve))
  if (status === 0) return
  const reason = unreachable(said)
  if (reason !== null) throw new RegistryUnreachable(`${specification} cannot be installed: ${reason}`)
  throw new Error(`npm install ${specification} ended with status ${status}:\n${said}`)
}

async function linkNode(folder: string, { packageName }: Lane): Promise<string> {
  const link = join(folder, 'bin/node')
  if (!existsSync(link)) {
    await mkdir(join(folder, 'bin'), { recursive: true })
    await symlink(join(folder, 'node_modules', packageName, 'bin/node'), link)
  }
  return link
}

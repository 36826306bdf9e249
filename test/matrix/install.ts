/** The package of a lane: another PostgreSQL or Node, installed into a folder of the matrix. */
import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { unreachable } from '../support/npm.ts'
import { ROOT } from '../tidy/tree.ts'
import type { Lane } from './lanes.ts'

/** There is no network, or a registry that does not answer: nothing is wrong with the lane, but it cannot run. */
export class RegistryUnreachable extends Error {}

/** What a lane changes in the environment of its tests, and the Node that runs them. */
export interface Installed {
  readonly node: string
  readonly environment: Readonly<Record<string, string>>
}

export interface InstallOptions {
  /** Where packages of lanes are kept. */
  readonly cache: string
  readonly signal: AbortSignal
  print(line: string): void
}

export async function installLane(lane: Lane, options: InstallOptions): Promise<Installed> {
  if (isPresent(lane)) return { node: process.execPath, environment: {} }
  const folder = await installPackage(lane, options)
  if (lane.kind === 'postgresql') return { node: process.execPath, environment: { SVC_TEST_POSTGRESQL: folder } }
  // Tests and the programs that they start find the lane's Node first.
  return { node: await linkNode(folder, lane), environment: { PATH: `${join(folder, 'bin')}:${process.env.PATH}` } }
}

/** Whether `npm ci` has installed the lane's PostgreSQL, or its Node runs this. */
function isPresent({ kind, packageName, version }: Lane): boolean {
  if (kind === 'node') return process.versions.node === version
  const manifest = join(ROOT, 'node_modules', packageName, 'package.json')
  return existsSync(manifest) && JSON.parse(readFileSync(manifest, 'utf8')).version === version
}

async function installPackage(
  { name, packageName, version }: Lane,
  { cache, signal, print }: InstallOptions,
): Promise<string> {
  const folder = join(cache, `${name}-${version}`)
  const done = join(folder, 'installed')
  if (existsSync(done)) return folder
  print(`  installing ${packageName}@${version} …`)
  await mkdir(folder, { recursive: true })
  await npmInstall(folder, `${packageName}@${version}`, signal)
  await writeFile(done, '')
  return folder
}

async function npmInstall(folder: string, specification: string, signal: AbortSignal): Promise<void> {
  // Install scripts only download or link what is found without them.
  const args = ['install', '--prefix', folder, '--no-save', '--ignore-scripts', '--prefer-offline', '--no-audit']
  // A registry that cannot be reached is given up within seconds.
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
  // A child that is aborted can report that more than once.
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

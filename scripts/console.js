/**
 * Bundles the console: `node scripts/console.js <folder>` writes page.html, console.js, console.css, and the
 * licences of the packages in the bundle. tree.js runs it and compresses the files. Only the build needs the
 * packages, so users do not install them.
 */
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const sources = join(root, 'console')
const folder = resolve(process.argv[2] ?? 'dist/http/console')

mkdirSync(folder, { recursive: true })
const { metafile } = await build({
  absWorkingDir: root,
  entryPoints: ['main.tsx', 'console.css'].map(name => ({ in: join(sources, 'src', name), out: 'console' })),
  outdir: folder,
  bundle: true,
  minify: true,
  format: 'esm',
  platform: 'browser',
  target: 'es2022',
  jsx: 'automatic',
  jsxImportSource: 'preact',
  legalComments: 'none',
  metafile: true,
  logLevel: 'warning',
})
copyFileSync(join(sources, 'page.html'), join(folder, 'page.html'))

const packages = new Set(
  Object.keys(metafile.inputs).flatMap(path => /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1] ?? []),
)
const licences = [...packages].sort().map(name => {
  const home = join(root, 'node_modules', name)
  const file = readdirSync(home).find(one => /^licen[cs]e/i.test(one) && existsSync(join(home, one)))
  if (file === undefined) throw new Error(`the package ${name}, which the console contains, has no licence file`)
  return `${name}\n\n${readFileSync(join(home, file), 'utf8').trim()}\n`
})
writeFileSync(join(folder, 'console.LICENSE'), licences.join('\n---\n\n'))

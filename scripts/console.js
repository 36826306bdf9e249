/**
 * Bundles the console: `node scripts/console.js <folder>` writes page.html, console.js, console.css,
 * layout.js (loaded when a graph is drawn), and the licences of the packages in them. tree.js runs it and
 * compresses the files. Only the build needs the packages, so users do not install them.
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
  entryPoints: [
    { in: join(sources, 'src/main.tsx'), out: 'console' },
    { in: join(sources, 'src/console.css'), out: 'console' },
    { in: join(sources, 'src/graph/layout-worker.ts'), out: 'layout' },
  ],
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
/** By the terms of a licence: the packages, each with its copyright. */
const licences = new Map()
// The module of a package can contain its dependencies.
for (const name of packages) {
  const home = join(root, 'node_modules', name)
  const { dependencies = {} } = JSON.parse(readFileSync(join(home, 'package.json'), 'utf8'))
  for (const dependency of Object.keys(dependencies)) packages.add(dependency)
}
for (const name of [...packages].sort()) {
  const home = join(root, 'node_modules', name)
  const file = readdirSync(home).find(one => /^licen[cs]e/i.test(one) && existsSync(join(home, one)))
  if (file === undefined) throw new Error(`the package ${name}, which the console contains, has no licence file`)
  const text = readFileSync(join(home, file), 'utf8').trim()
  const start = Math.max(text.indexOf('Permission is hereby granted'), 0)
  const terms = text.slice(start).replace(/(?<=\S)\s(?=\S)/g, ' ')
  licences.set(terms, [...(licences.get(terms) ?? []), `${name}\n\n${text.slice(0, start)}`])
}
const texts = [...licences].map(([terms, heads]) => `${heads.join('')}${terms}\n`)
writeFileSync(join(folder, 'console.LICENSE'), texts.join('\n---\n\n'))

/**
 * Bundles the program `svc` and the modules that the package exports. Without a bundle, loading six hundred
 * files takes Node most of the time to the first response. The bundles share their code. Modules that a
 * command loads on demand stay in separate files, and packages are not bundled. The unbundled modules remain
 * for benchmarks and are not published.
 * `node scripts/bundle.js <build>`, run by tree.js.
 */
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, resolve, sep } from 'node:path'
import { build } from 'esbuild'

const dist = resolve(process.argv[2] ?? 'dist')
const program = join(dist, 'cli')

/** Modules that the package exports, by their names in the bundle. */
const EXPORTED = {
  index: 'index.js',
  'query-language': 'language/index.js',
  client: 'client/index.js',
  react: 'client/react/index.js',
}

/** Modules find their data files by their own location, which is different in the bundle. */
const places = {
  name: 'places',
  setup({ onLoad }) {
    onLoad({ filter: /\.js$/ }, ({ path }) => {
      const contents = readFileSync(path, 'utf8')
      if (!path.startsWith(dist) || !contents.includes('import.meta.url')) return undefined
      const place = relative(program, path).split(sep).join('/')
      return {
        contents: contents.replaceAll('import.meta.url', `new URL(${JSON.stringify(place)}, import.meta.url).href`),
        resolveDir: dirname(path),
      }
    })
  },
}

const { metafile } = await build({
  // The names of chunks are hashes of their content, which must not contain a path of this machine.
  absWorkingDir: dist,
  entryPoints: Object.fromEntries([
    ['main', join(program, 'main.js')],
    ...Object.entries(EXPORTED).map(([name, path]) => [name, join(dist, path)]),
  ]),
  outdir: program,
  allowOverwrite: true,
  bundle: true,
  splitting: true,
  packages: 'external',
  platform: 'node',
  format: 'esm',
  target: 'node20',
  // A third less to install. Names and lines are kept, because stack traces show them.
  minifyWhitespace: true,
  minifySyntax: true,
  lineLimit: 240,
  metafile: true,
  plugins: [places],
  logLevel: 'warning',
})

const made = new Set(Object.keys(metafile.outputs).map(path => join(dist, path)))
for (const name of readdirSync(program, { recursive: true, encoding: 'utf8' })) {
  const path = join(program, name)
  if (name.endsWith('.js') && !made.has(path)) rmSync(path)
}

// At the end, because the bundle is made from these modules.
for (const [name, path] of Object.entries(EXPORTED)) {
  const place = relative(dirname(join(dist, path)), join(program, name))
    .split(sep)
    .join('/')
  writeFileSync(join(dist, path), `export * from '${place.startsWith('.') ? '' : './'}${place}.js'\n`)
}

// Types that no exported module refers to are of no use to anyone who installs the package.
const referred = new Set()
const REFERENCE = /(?:\bfrom|\bimport\(|^import)\s*['"](\.[^'"]+)['"]/gm
const refer = path => {
  if (referred.has(path)) return
  referred.add(path)
  for (const [, target] of readFileSync(path, 'utf8').matchAll(REFERENCE))
    refer(join(dirname(path), target.replace(/\.(js|ts)$/, '.d.ts')))
}
for (const path of Object.values(EXPORTED)) refer(join(dist, path.replace(/\.js$/, '.d.ts')))
for (const name of readdirSync(dist, { recursive: true, encoding: 'utf8' })) {
  const path = join(dist, name)
  if (name.endsWith('.d.ts') && !referred.has(path)) rmSync(path)
}

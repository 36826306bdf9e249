/**
 * Bundles the program `svc` and what the package exports: Node takes half a millisecond for each of six hundred files, and most of the time to the first
 * answer. The three share their code. What a command loads when it is called stays in files of its own, and packages stay packages. The modules of the
 * build stay beside the bundle, for benchmarks; the package leaves them out.
 *
 * `node scripts/bundle.js <build>`, run by tree.js.
 */
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, resolve, sep } from 'node:path'
import { build } from 'esbuild'

const dist = resolve(process.argv[2] ?? 'dist')
const program = join(dist, 'cli')

/** Modules that the package exports, by their names in the bundle. */
const EXPORTED = { index: 'index.js', 'query-language': 'language/index.js' }

/** A module finds its files by where it is, which is another place in the bundle. */
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
  // The names of chunks come from what is in them, and that has no path of the machine.
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
  metafile: true,
  plugins: [places],
  logLevel: 'warning',
})

const made = new Set(Object.keys(metafile.outputs).map(path => join(dist, path)))
for (const name of readdirSync(program, { recursive: true, encoding: 'utf8' })) {
  const path = join(program, name)
  if (name.endsWith('.js') && !made.has(path)) rmSync(path)
}

// Only now, since the bundle is made of these modules.
for (const [name, path] of Object.entries(EXPORTED)) {
  const place = relative(dirname(join(dist, path)), join(program, name))
    .split(sep)
    .join('/')
  writeFileSync(join(dist, path), `export * from '${place.startsWith('.') ? '' : './'}${place}.js'\n`)
}

/**
 * Makes one program of the modules that `svc` is: Node takes half a millisecond for each of six hundred files, and most of the time to the first answer. What a
 * command loads when it is called stays in files of its own, packages stay packages, and other modules of the build stay as they are.
 *
 * `node scripts/bundle.js <build>`, run by tree.js.
 */
import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { dirname, join, relative, resolve, sep } from 'node:path'
import { build } from 'esbuild'

const dist = resolve(process.argv[2] ?? 'dist')
const program = join(dist, 'cli')

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
  entryPoints: [join(program, 'main.js')],
  outdir: program,
  allowOverwrite: true,
  bundle: true,
  splitting: true,
  packages: 'external',
  platform: 'node',
  format: 'esm',
  target: 'node20',
  sourcemap: true,
  sourcesContent: false,
  metafile: true,
  plugins: [places],
  logLevel: 'warning',
})

const made = new Set(Object.keys(metafile.outputs).map(path => join(dist, path)))
for (const name of readdirSync(program, { recursive: true, encoding: 'utf8' })) {
  const path = join(program, name)
  if (/\.(js|map)$/.test(name) && !made.has(path)) rmSync(path)
}

/**
 * Bundles the client library for the demo's page: `node scripts/board-client.js <folder>` writes client.js,
 * which tree.js compresses. The query builder is not part of it: the page writes no queries.
 */
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const root = dirname(dirname(fileURLToPath(import.meta.url)))

await build({
  absWorkingDir: root,
  entryPoints: [join(root, 'src/client/index.ts')],
  outfile: join(resolve(process.argv[2] ?? 'dist/demo/board'), 'client.js'),
  external: ['../language/index.ts'],
  bundle: true,
  minify: true,
  format: 'esm',
  platform: 'browser',
  target: 'es2022',
  legalComments: 'none',
  logLevel: 'warning',
})

/**
 * Starts PostgreSQL for an example, from the package that the demo uses: `node ../postgres.js shop.sql`
 * creates an empty database and runs the file in it. Ctrl-C stops and removes it. With your own PostgreSQL,
 * run `psql -f shop.sql` instead.
 */
import { once } from 'node:events'
import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { locateBinaries } from '../dist/demo/binaries.js'
import { createCluster } from '../dist/demo/cluster.js'
import { cacheFolder } from '../dist/demo/folders.js'
import { startServer } from '../dist/demo/server.js'

const PORT = 54320
const PASSWORD = 'example'

const file = process.argv[2]
if (file === undefined) {
  console.error('Say what to run in it: node ../postgres.js shop.sql')
  process.exit(2)
}
const sql = await readFile(file, 'utf8')
const folder = await mkdtemp(join(tmpdir(), 'svc-example-'))
// PostgreSQL refuses to run as root, and its user needs access to the data folder.
await chmod(folder, 0o755)
const dataDirectory = join(folder, 'data')
const binaries = await locateBinaries(await cacheFolder(process.env))
await createCluster(binaries, { dataDirectory, password: PASSWORD, durable: false })
const server = await startServer(binaries, {
  ...{ dataDirectory, port: PORT, logFile: join(folder, 'server.log'), settings: {} },
  removeWhenOrphaned: folder,
})
try {
  const client = new pg.Client({ host: '127.0.0.1', port: PORT, user: 'postgres', password: PASSWORD })
  await client.connect()
  await client.query(sql)
  await client.end()
  console.log(`PostgreSQL listens on 127.0.0.1:${PORT} and has the tables of ${file}`)
  server.hold()
  await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM'), server.ended])
} finally {
  await server.stop('immediate')
  await rm(folder, { recursive: true, force: true, maxRetries: 10 })
}

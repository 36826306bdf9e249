/** A streaming standby of the benchmarks' database, on the same machine. */
import { execFile } from 'node:child_process'
import { appendFile, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import { locateBinaries } from '../../src/demo/binaries.ts'
import { makeServerFolder, writeServerFile } from '../../src/demo/cluster.ts'
import { cacheFolder } from '../../src/demo/folders.ts'
import { spawnAs } from '../../src/demo/run-as.ts'
import { startServer } from '../../src/demo/server.ts'
import type { Database } from './database.ts'

export interface Standby {
  /** Connects as the gateway's role. */
  readonly url: string
  close(): Promise<void>
}

const HBA = 'host replication all 127.0.0.1/32 scram-sha-256'

/** Copies the running server (PostgreSQL manual, 25.3.2) and starts the copy as its standby. */
export async function startStandby(database: Database): Promise<Standby> {
  const primary = new URL(database.adminUrl)
  const source = join(dirname(database.logFile), 'data')
  const hba = join(source, 'pg_hba.conf')
  if (!(await readFile(hba, 'utf8')).includes(HBA)) await appendFile(hba, `${HBA}\n`)
  await database.admin('select pg_reload_conf()')
  const binaries = await locateBinaries(join(await cacheFolder(process.env), 'bench'))
  const base = await mkdtemp(join(tmpdir(), 'svc-standby-'))
  const data = join(base, 'data')
  await promisify(execFile)('chmod', ['755', base])
  await makeServerFolder(binaries, data)
  // The session that begins the backup must end it.
  const session = new pg.Client({ connectionString: database.adminUrl })
  await session.connect()
  try {
    await session.query("select pg_backup_start('standby', true)")
    await promisify(execFile)('cp', ['-R', `${source}/.`, data], { ...spawnAs(binaries.runAs), cwd: '/' })
    const { rows } = await session.query('select labelfile from pg_backup_stop(false)')
    await writeServerFile(binaries, join(data, 'backup_label'), rows[0].labelfile)
  } finally {
    await session.end()
  }
  await rm(join(data, 'postmaster.pid'), { force: true })
  await writeServerFile(binaries, join(data, 'standby.signal'), '')
  const password = decodeURIComponent(primary.password)
  const from = `host=127.0.0.1 port=${primary.port} user=${primary.username} password=${password}`
  await appendFile(join(data, 'postgresql.conf'), `\nprimary_conninfo = '${from}'\n`)
  const server = await startServer(binaries, { dataDirectory: data, logFile: join(base, 'server.log'), settings: {} })
  const url = new URL(database.url)
  url.port = String(server.port)
  return {
    url: url.href,
    async close() {
      await server.stop('fast')
      await rm(base, { recursive: true, force: true })
    },
  }
}

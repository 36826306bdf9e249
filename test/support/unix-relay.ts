/** A database at a Unix socket: what a container may have for a volume, whatever its network is. */
import { once } from 'node:events'
import { chmod, mkdir } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { pipeline } from 'node:stream'

export interface UnixRelay {
  readonly folder: string
  close(): Promise<void>
}

/** Makes the folder, with the socket in it that clients look for. */
export async function unixRelay(folder: string, port: number): Promise<UnixRelay> {
  await mkdir(folder, { recursive: true })
  const server = createServer(socket => {
    const database = connect(port, '127.0.0.1')
    // Whoever goes, the other goes too.
    pipeline(socket, database, socket, () => {})
  })
  const path = join(folder, '.s.PGSQL.5432')
  server.listen(path)
  await once(server, 'listening')
  // As PostgreSQL makes it: whoever comes is asked for the password.
  await chmod(path, 0o777)
  return {
    folder,
    async close() {
      server.close()
      await once(server, 'close')
    },
  }
}

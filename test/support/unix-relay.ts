/** A Unix socket relay to a database, which a container can mount as a volume whatever its network. */
import { once } from 'node:events'
import { chmod, mkdir } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { pipeline } from 'node:stream'

export interface UnixRelay {
  readonly folder: string
  close(): Promise<void>
}

/** Creates the folder with the socket that clients look for. */
export async function unixRelay(folder: string, port: number): Promise<UnixRelay> {
  await mkdir(folder, { recursive: true })
  const server = createServer(socket => {
    const database = connect(port, '127.0.0.1')
    // When one side disconnects, the other is closed too.
    pipeline(socket, database, socket, () => {})
  })
  const path = join(folder, '.s.PGSQL.5432')
  server.listen(path)
  await once(server, 'listening')
  // With PostgreSQL's permissions: anyone can connect, and the server asks for the password.
  await chmod(path, 0o777)
  return {
    folder,
    async close() {
      server.close()
      await once(server, 'close')
    },
  }
}

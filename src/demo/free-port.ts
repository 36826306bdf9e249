/** Finds ports of 127.0.0.1 that are free at the moment; another process may take them. */
import { once } from 'node:events'
import { createServer } from 'node:net'
import { EmbeddedError } from './error.ts'

/** Any. */
export async function freePort(): Promise<number> {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (address === null || typeof address === 'string') throw new EmbeddedError('no free TCP port on 127.0.0.1')
  return address.port
}

/**
 * The reason why this process cannot listen there, as the system's code (`EADDRINUSE`, `EACCES`); null if it
 * can.
 */
export async function obstacleTo(port: number): Promise<string | null> {
  const server = createServer()
  try {
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
    server.close()
    await once(server, 'close')
    return null
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? String(error)
  }
}

/**
 * One PostgreSQL server for a whole vitest run. It starts when the first test needs it, so a run without
 * database tests starts none. Workers get the address of a broker, which answers once the server is ready.
 */

import { once } from 'node:events'
import { chmod, mkdtemp, readdir, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { isAlive } from '../matrix/scratch.ts'
import { loadSample, SAMPLE_TEMPLATE } from './sample-template.ts'
import { createTemplate, startTestServer, type TestServer } from './server.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /**
     * Base URL of the broker. `/template`, `/server` and `/sample` answer with JSON once the named resource
     * exists.
     */
    broker: string
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  await removeAbandoned()
  const base = await mkdtemp(join(tmpdir(), `svc-test-${process.pid}-`))
  await chmod(base, 0o755)
  const servers: TestServer[] = []

  const template = memo(async () => {
    const folder = join(base, 'template')
    await createTemplate(folder)
    return { folder }
  })
  const server = memo(async () => {
    const started = await startTestServer((await template()).folder)
    servers.push(started)
    return { host: started.host, port: started.port }
  })
  const sample = memo(async () => {
    const { port } = await server()
    await loadSample(port)
    return { port, template: SAMPLE_TEMPLATE }
  })
  const routes: Readonly<Record<string, () => Promise<unknown>>> = {
    '/template': template,
    '/server': server,
    '/sample': sample,
  }

  const broker = createServer((request, response) => {
    const prepare = routes[request.url ?? '']
    if (prepare === undefined) {
      response.writeHead(404).end()
      return
    }
    prepare().then(
      value => response.end(JSON.stringify(value)),
      error => response.writeHead(500).end(String(error?.stack ?? error)),
    )
  })
  // The first database test of a run waits while the cluster is created.
  broker.requestTimeout = 0
  broker.listen(0, '127.0.0.1')
  await once(broker, 'listening')
  const address = broker.address()
  if (address === null || typeof address === 'string') throw new Error('the broker has no port')
  project.provide('broker', `http://127.0.0.1:${address.port}`)

  return async () => {
    broker.closeAllConnections()
    broker.close()
    await Promise.all(servers.map(started => started.close()))
    await rm(base, { recursive: true, force: true, maxRetries: 10 })
  }
}

/** Removes folders left behind by killed runs. */
async function removeAbandoned(): Promise<void> {
  for (const name of await readdir(tmpdir())) {
    const pid = Number(/^svc-test-(\d+)-/.exec(name)?.[1] ?? 0)
    if (pid === 0 || isAlive(pid)) continue
    // The folder may belong to another user, who has to remove it.
    await rm(join(tmpdir(), name), { recursive: true, force: true }).catch(() => {})
  }
}

/** Runs the function at the first call. Every call returns that result. */
function memo<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | null = null
  return () => {
    made ??= make()
    return made
  }
}

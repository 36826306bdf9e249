/**
 * One PostgreSQL for a whole vitest run. It starts when the first test asks for it – a run without database tests has none –
 * so the address that workers get is that of a broker, which answers with what it has prepared by then.
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
    /** Base URL of the broker: `/template`, `/server`, `/sample` answer with JSON once what they name exists. */
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
  // The first database test of a run waits while the cluster is made.
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

/** What runs that were killed left behind. */
async function removeAbandoned(): Promise<void> {
  for (const name of await readdir(tmpdir())) {
    const pid = Number(/^svc-test-(\d+)-/.exec(name)?.[1] ?? 0)
    if (pid === 0 || isAlive(pid)) continue
    // Another user's, perhaps: theirs to remove.
    await rm(join(tmpdir(), name), { recursive: true, force: true }).catch(() => {})
  }
}

/** Runs at the first call; every call gets that result. */
function memo<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | null = null
  return () => {
    made ??= make()
    return made
  }
}

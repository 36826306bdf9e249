/** The client library compared with `fetch`: requests of one process, and the size in a page. */
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { createClient } from '../src/client/index.ts'
import type { Benchmark, Lane } from './harness/benchmark.ts'
import { orderIds } from './harness/orders.ts'

const CLIENT = 'client'
const FETCH = 'fetch and JSON.parse'
const CONNECTIONS = 32
const ENTRY = fileURLToPath(new URL('../src/client/index.ts', import.meta.url))

export const client: Benchmark = {
  name: 'client',
  title: 'Get by id with the client library',
  tools: [],
  checks: [
    { kind: 'ratio', unit: '/s', lane: CLIENT, references: [FETCH], better: 'higher', target: null },
    { kind: 'limit', unit: 'KB compressed', lane: CLIENT, atMost: 12 },
  ],
  async prepare(world) {
    const { first, last } = await orderIds(world)
    const { url } = await world.gateway()
    const headers = await world.headers()
    const table = createClient({ url, token: headers.Authorization?.replace('Bearer ', '') ?? null }).from('orders')
    const byFetch = async (id: number) => {
      const response = await fetch(`${url}/api/orders/${id}`, { headers })
      return JSON.parse(await response.text()).data
    }
    const lane = (name: string, get: (id: number) => Promise<{ id: number }>, more: object = {}): Lane => ({
      name,
      async measure() {
        const ends = performance.now() + world.seconds * 1_000
        let answered = 0
        await Promise.all(
          Array.from({ length: CONNECTIONS }, async () => {
            while (performance.now() < ends) {
              const id = first + Math.floor(Math.random() * (last - first + 1))
              if ((await get(id)).id !== id) throw new Error(`the order ${id} was not answered`)
              answered += 1
            }
          }),
        )
        return { '/s': answered / world.seconds, ...more }
      },
    })
    return [
      lane(CLIENT, id => table.get(id) as Promise<{ id: number }>, { 'KB compressed': await compressedKb() }),
      lane(FETCH, byFetch),
    ]
  },
}

/** Without the query builder, which is loaded when it is used. */
async function compressedKb(): Promise<number> {
  const { outputFiles } = await build({
    ...{ entryPoints: [ENTRY], external: ['../language/index.ts'], bundle: true, minify: true, write: false },
    ...{ platform: 'browser', format: 'esm', target: 'es2022' },
  })
  return gzipSync(outputFiles[0]?.contents ?? '').length / 1_000
}

/** A Valkey or Redis server from Debian's packages. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { createInterface } from 'node:readline'
import { findProgram } from './programs.ts'

export interface RedisServer {
  readonly port: number
  readonly url: string
  kill(): Promise<void>
  /** Starts it again on the same port, without data. */
  start(): Promise<void>
  close(): Promise<void>
}

const PROGRAM = ['valkey-server', 'redis-server'].map(findProgram).find(path => path !== null) ?? null

/** The reason why there is no server here; null if there is one. */
export const REDIS_MISSING: string | null =
  PROGRAM === null ? 'valkey-server and redis-server missing (Debian: apt-get install redis-server)' : null

export async function redisServer(): Promise<RedisServer> {
  const port = await freePort()
  let running: ChildProcess | null = null
  const start = async () => {
    const flags = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', '/tmp']
    running = spawn(PROGRAM ?? '', flags, { stdio: ['ignore', 'pipe', 'ignore'] })
    for await (const line of createInterface({ input: running.stdout as NodeJS.ReadableStream }))
      if (line.includes('Ready to accept connections')) return
    throw new Error('the server ended before it was ready')
  }
  const kill = async () => {
    if (running === null) return
    const ended = once(running, 'exit')
    running.kill('SIGKILL')
    running = null
    await ended
  }
  await start()
  return { port, url: `redis://127.0.0.1:${port}`, kill, start, close: kill }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (address === null || typeof address === 'string') throw new Error('no port')
  return address.port
}

/** Child processes of a run: started, polled until they respond, and ended with the run. */
import { type ChildProcess, execFile, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { get } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'

export interface Service {
  readonly url: string
  readonly pid: number
  /** Sends SIGTERM, and waits until the process has exited. */
  stop(): Promise<void>
}

export interface ServiceOptions {
  readonly name: string
  /** The program; `node` by default. */
  readonly program?: string
  readonly args: readonly string[]
  readonly environment: Readonly<Record<string, string>>
  readonly port: number
  /** Polled until it returns `status`. */
  readonly path: string
  /** 200 by default. */
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  /** The file for standard output and error. */
  readonly logFile: string
}

const START_TIMEOUT_MS = 20_000
const STOP_TIMEOUT_MS = 15_000
/** Often enough to measure a start, and rarely enough not to slow it down. */
const POLL_MS = 4
const LOG_QUOTED_MAX = 2_000
/** The arguments can include a request body. */
const COMMAND_QUOTED_MAX = 500

const running = new Set<ChildProcess>()
/** They end before the services, whose end they would report as errors of their requests. */
const clients = new Set<ChildProcess>()
process.once('exit', () => {
  for (const child of [...clients, ...running]) child.kill('SIGKILL')
})

/** Starts a TypeScript program that sends requests and reports to this process. */
export function startClients(script: string, args: readonly string[]): ChildProcess {
  const child = fork(script, args, { execArgv: ['--import', 'tsx'] })
  clients.add(child)
  child.once('exit', () => clients.delete(child))
  return child
}

/** The process gets only PATH from this environment: NODE_OPTIONS and PG* would change the measurement. */
export async function startService(options: ServiceOptions): Promise<Service> {
  const log = openSync(options.logFile, 'a')
  const child = spawn(options.program ?? process.execPath, options.args, {
    env: { PATH: process.env.PATH, ...options.environment },
    stdio: ['ignore', log, log],
  })
  closeSync(log)
  running.add(child)
  let over = false
  let stopping = false
  const ended = once(child, 'exit').then(([code, signal]) => {
    over = true
    running.delete(child)
    if (!stopping)
      process.stderr.write(`${options.name} (process ${child.pid}) has ended: ${signal ?? `exit ${code}`}\n`)
  })
  const url = `http://127.0.0.1:${options.port}`
  const deadline = Date.now() + START_TIMEOUT_MS
  while (!(await answers(url + options.path, options.headers ?? {}, options.status ?? 200))) {
    if (over || Date.now() > deadline) {
      child.kill('SIGKILL')
      const log = readFileSync(options.logFile, 'utf8')
      throw new Error(`${options.name} did not start (${options.logFile}):\n${log.slice(-LOG_QUOTED_MAX)}`)
    }
    await delay(POLL_MS)
  }
  return {
    url,
    pid: child.pid ?? 0,
    async stop() {
      stopping = true
      const force = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS)
      child.kill('SIGTERM')
      await ended
      clearTimeout(force)
    },
  }
}

function answers(url: string, headers: Readonly<Record<string, string>>, status: number): Promise<boolean> {
  return new Promise(resolve => {
    const request = get(url, { agent: false, headers }, response => {
      response.resume()
      response.once('close', () => resolve(response.statusCode === status))
    })
    request.once('error', () => resolve(false))
  })
}

export interface Output {
  readonly stdout: string
  readonly stderr: string
}

/** Runs a program to its end. If the exit code is not `expected`, throws an error with its output. */
export async function runProgram(
  program: string,
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
  expected: readonly number[] = [0],
): Promise<Output> {
  const ran = promisify(execFile)(program, args, {
    env: { PATH: process.env.PATH, LC_ALL: 'C', ...environment },
    maxBuffer: 64 * 1024 * 1024,
  })
  return ran.catch(({ stdout, stderr, message, code }) => {
    if (expected.includes(code)) return { stdout, stderr }
    const command = message.split('\n')[0].slice(0, COMMAND_QUOTED_MAX)
    throw new Error(`${program} failed: ${[command, stderr, stdout].join('\n').slice(0, LOG_QUOTED_MAX)}`)
  })
}

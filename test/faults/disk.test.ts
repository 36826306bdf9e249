/**
 * The destination of the log can be full, or not be read. This loses lines of the log, but costs neither the
 * process nor its memory.
 * Standard output is what fails, so each test writes the log in a separate process and communicates with it
 * over another channel.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { afterEach, expect, test } from 'vitest'
import { residentBytes } from '../support/process.ts'

const MIB = 1024 * 1024

/**
 * Lines of one kilobyte, so that retained lines are visible in memory. Between two batches, the process runs
 * its other tasks.
 */
const LOGGING = `
import { setImmediate } from 'node:timers/promises'
import { createLog } from '${new URL('../../src/ops/log.ts', import.meta.url).href}'
const log = createLog('info')
const event = { kind: 'warning', message: 'x'.repeat(1000), fix: null }
process.on('message', async ({ events, end }) => {
  for (let i = 0; i < events; i++) {
    log.emit(event)
    if (i % 100 === 99) await setImmediate()
  }
  if (end) {
    log.flush()
    process.disconnect()
  } else process.send('logged')
})
process.send('ready')
`

interface Logging {
  readonly pid: number
  readonly exited: Promise<readonly [code: number | null, signal: NodeJS.Signals | null]>
  readonly complaints: () => string
  /** Resolves when the process has logged this many events and reports that it continues. */
  log(events: number): Promise<void>
  end(): void
}

let running: ChildProcess | undefined
afterEach(() => {
  running?.kill('SIGKILL')
})

async function startLogging(standardOutput: number | 'pipe'): Promise<Logging> {
  const child = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '--eval', LOGGING], {
    stdio: ['ignore', standardOutput, 'pipe', 'ipc'],
  })
  running = child
  let complaints = ''
  child.stderr?.on('data', (chunk: Buffer) => {
    complaints += chunk.toString()
  })
  const exited = once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>
  const says = async (expected: string): Promise<void> => {
    const message = await Promise.race([once(child, 'message').then(([said]) => said), exited.then(() => 'exited')])
    if (message !== expected) throw new Error(`expected "${expected}", got "${message}": ${complaints}`)
  }
  await says('ready')
  return {
    pid: child.pid ?? 0,
    exited,
    complaints: () => complaints,
    async log(events) {
      child.send({ events, end: false })
      await says('logged')
    },
    end: () => void child.send({ events: 0, end: true }),
  }
}

test('a full disk costs only log lines', async context => {
  if (!existsSync('/dev/full')) context.skip('/dev/full exists only on Linux')
  const full: FileHandle = await open('/dev/full', 'w')
  try {
    const logging = await startLogging(full.fd)
    await logging.log(2_000)
    const before = await residentBytes(logging.pid)
    await logging.log(200_000)
    expect((await residentBytes(logging.pid)) - before).toBeLessThan(64 * MIB)
    logging.end()
    expect(await logging.exited).toEqual([0, null])
    expect(logging.complaints()).toBe('')
  } finally {
    await full.close()
  }
})

test('a pipe that is not read costs only log lines', async context => {
  if (process.platform !== 'linux') context.skip('the capacity of a pipe is known for Linux only')
  const logging = await startLogging('pipe')
  await logging.log(2_000)
  const before = await residentBytes(logging.pid)
  // 200 MB of log lines.
  await logging.log(200_000)
  expect((await residentBytes(logging.pid)) - before).toBeLessThan(64 * MIB)
  expect(logging.complaints()).toBe('')
})

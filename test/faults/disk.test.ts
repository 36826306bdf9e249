/**
 * Where the log goes may be full, or read by nobody. That costs lines of the log: not the process, not its memory.
 *
 * Standard output is what fails, so each test writes the log in a process of its own, and asks it over another channel.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { afterEach, expect, test } from 'vitest'
import { residentBytes } from '../support/process.ts'

const MIB = 1024 * 1024

/** Lines of a kilobyte, so that what is kept of them shows. Between two batches the process does what else it has to do. */
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
  /** Resolves when the process has logged so many events and says that it goes on. */
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

test('a full disk', async context => {
  if (!existsSync('/dev/full')) context.skip('there is no /dev/full, which only Linux has')
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

test('a pipe that nobody reads', async context => {
  if (process.platform !== 'linux') context.skip('how much a pipe holds is known for Linux only')
  const logging = await startLogging('pipe')
  await logging.log(2_000)
  const before = await residentBytes(logging.pid)
  // 200 MB of lines.
  await logging.log(200_000)
  expect((await residentBytes(logging.pid)) - before).toBeLessThan(64 * MIB)
  expect(logging.complaints()).toBe('')
})

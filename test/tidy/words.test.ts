/** Text that must not be committed: notes about unfinished work, disabled tests, paths of one machine. */
import { expect, test } from 'vitest'
import { filesBelow, read } from './tree.ts'

const files = ['src', 'test', 'bench', 'scripts', 'docs', 'examples']
  .flatMap(filesBelow)
  .filter(path => /\.(ts|js|md|sql|json|toml|yaml)$/.test(path) && !path.startsWith('test/tidy/'))

const FORBIDDEN: readonly (readonly [RegExp, string])[] = [
  [/\bTODO\b|\bFIXME\b|\bXXX\b/, 'do it or open an issue'],
  [/\b(?:test|it|describe)\.only\(/, 'it switches every other test off'],
  [/\bconsole\.(?:debug|trace)\(/, 'left from debugging'],
  [/@ts-(?:ignore|nocheck)/, 'use @ts-expect-error with a reason'],
  [/\/(?:home|Users|work)\/[a-z]+\//, 'a path of one machine'],
]

test('no file contains a forbidden word', () => {
  expect(files.length).toBeGreaterThan(100)
  const found = files.flatMap(path =>
    read(path)
      .split('\n')
      .flatMap((line, index) =>
        FORBIDDEN.filter(([pattern]) => pattern.test(line)).map(
          ([, why]) => `${path}:${index + 1} ${line.trim()} – ${why}`,
        ),
      ),
  )
  expect(found).toEqual([])
})

test('a skipped test gives the reason in a comment before it or in the message of the skip', () => {
  const found = files
    .filter(path => path.endsWith('.test.ts'))
    .flatMap(path => {
      const text = read(path)
      if (/skipped[:,] /.test(text)) return []
      const lines = text.split('\n')
      const isUnexplained = (index: number): boolean =>
        /\.(?:skip|todo)\(|\.skipIf\(|\.runIf\(/.test(lines[index] ?? '') &&
        !/^\s*if \(.*\.skip\(/.test(lines[index] ?? '') &&
        !/^\s*(?:\/\/|\*)/.test(lines[index - 1] ?? '')
      return lines.flatMap((_, index) => (isUnexplained(index) ? [`${path}:${index + 1}`] : []))
    })
  expect(found).toEqual([])
})

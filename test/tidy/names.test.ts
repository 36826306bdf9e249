/**
 * The title of a test, including the titles of its groups, is a sentence: at least three words, and not
 * "should …" or "test …".
 */
import { expect, test } from 'vitest'
import { filesBelow, read } from './tree.ts'

interface Named {
  readonly line: number
  /** The title including those of its groups. */
  readonly title: string
}

const TEXT = /(['"`])((?:\\.|(?!\1)[\s\S])*)\1/

/**
 * The title of a group or test, from its first line and the following lines; `indent` is the formatter's
 * indentation. Null if the title is not a literal.
 */
function nameOf(lines: readonly string[], indent: string, rest: string): string | null {
  const isTable = /^\.(?:\w+\(.*\)\.)?(?:each|for)\b/.test(rest)
  // The title of a table test follows the table, whose last line is indented like its first.
  const end = isTable
    ? lines.findIndex(
        (line, at) =>
          (at === 0 ? /\)\(['"`]?/ : /^\W*\)\(/).test(line.slice(indent.length)) &&
          (at === 0 || (line.startsWith(indent) && !line.startsWith(`${indent} `))),
      )
    : 0
  if (end < 0) return null
  const from = lines.slice(end, end + 3).join('\n')
  const start = isTable || /^\.\w+If\(/.test(rest) ? from.indexOf(')(') + 2 : 0
  return TEXT.exec(from.slice(start))?.[2] ?? null
}

function testsOf(source: string): readonly Named[] {
  const lines = source.split('\n')
  const groups: { readonly depth: number; readonly name: string }[] = []
  return lines.flatMap((line, at) => {
    const [, indent = '', kind, rest = ''] = /^( *)(describe|test)([.(].*)$/.exec(line) ?? []
    if (kind === undefined) return []
    while ((groups.at(-1)?.depth ?? -1) >= indent.length) groups.pop()
    const name = nameOf(lines.slice(at), indent, rest)
    if (kind === 'describe') groups.push({ depth: indent.length, name: name ?? '' })
    if (kind === 'describe' || name === null) return []
    return [{ line: at + 1, title: [...groups.map(group => group.name), name].join(' ').trim() }]
  })
}

/** True if a title is not a sentence with a subject. */
function isFragment(title: string): boolean {
  return title.split(/\s+/).length < 3 || /^(should|tests?)\b/i.test(title)
}

test('the title of every test is a sentence with a subject', () => {
  // The tests in these files are text: input of another vitest run, and of the test below.
  const files = ['src', 'test']
    .flatMap(filesBelow)
    .filter(
      path => path.endsWith('.test.ts') && !['test/matrix/reporter.test.ts', 'test/tidy/names.test.ts'].includes(path),
    )
  const named = files.flatMap(path => testsOf(read(path)).map(one => ({ ...one, path })))
  expect(named.length).toBeGreaterThan(3_000)
  const fragments = named.filter(({ title }) => isFragment(title))
  expect(fragments.map(({ path, line, title }) => `${path}:${line} ${title}`)).toEqual([])
})

test('a fragment is recognized in groups and after tables', () => {
  const source = `
describe('a list', () => {
  test('is sorted', () => {})
  test.each([
    ['a)('],
  ])('%s', () => {})
})
test.skipIf(process.platform === 'win32')('works', () => {})
test.each(CASES)('%s', () => {})
test('should answer every request', () => {})
test.each<[string]>([
  ['x'],
])(
  'a row of a table is read: %s',
  () => {},
)
`
  expect(testsOf(source).map(({ line, title }) => [line, title, isFragment(title)])).toEqual([
    [3, 'a list is sorted', false],
    [4, 'a list %s', false],
    [8, 'works', true],
    [9, '%s', true],
    [10, 'should answer every request', true],
    [11, 'a row of a table is read: %s', false],
  ])
})

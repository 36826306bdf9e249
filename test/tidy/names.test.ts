/** The name of a test, behind those of the groups around it, says something of somebody: three words at least, and not only that it is a test. */
import { expect, test } from 'vitest'
import { filesBelow, read } from './tree.ts'

interface Named {
  readonly line: number
  /** With the names of the groups around it. */
  readonly title: string
}

const TEXT = /(['"`])((?:\\.|(?!\1)[\s\S])*)\1/

/** What a group or test is called, by its first line and those that follow; `indent` is the formatter's. Null: by nothing that is written there. */
function nameOf(lines: readonly string[], indent: string, rest: string): string | null {
  const isTable = /^\.(?:\w+\(.*\)\.)?(?:each|for)\b/.test(rest)
  // The name of a table's tests stands behind the table, whose last line is indented like its first.
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

/** Whether a title is no sentence with a subject. */
function isFragment(title: string): boolean {
  return title.split(/\s+/).length < 3 || /^(should|tests?)\b/i.test(title)
}

test('every test is called by a sentence with a subject', () => {
  // Their tests are texts as well: for another vitest, and for the test below.
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

test('a fragment is recognised, in groups and behind tables', () => {
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

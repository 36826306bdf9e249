/** The formatter keeps all comments, each next to the tokens that it was next to. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { anyStatement } from '../../../test/support/trees.ts'
import { parseMany } from '../syntax/parse.ts'
import { format, formatStatement } from './format.ts'
import { alignedTokens } from './format-comments.ts'

function commentsOf(source: string): readonly string[] {
  return parseMany(source).flatMap(({ comments }) => comments.map(({ text }) => text))
}

function treesOf(source: string): string {
  return JSON.stringify(
    parseMany(source).map(one => one.statement),
    (name, value: unknown) => (name === 'span' ? undefined : value),
  )
}

const comment = fc.oneof(
  fc.constantFrom('/**/', '/* x */', '/* a\n b */', "/* ' */", '/* /* in */ */', '/* { */', '/* -- */'),
  fc.constantFrom('-- x\n', '--\n', '-- a /* b\n', "-- it's\n", '-- { [ (\n'),
)
const blank = fc.constantFrom('', ' ', '\n', '\n\n  ')

/** A text with comments inserted between its tokens. `at` is the position as a fraction of the length. */
function sprinkled(source: string, comments: readonly { readonly at: number; readonly text: string }[]): string {
  const tokens = alignedTokens(source)
  const starts = [...tokens.map(token => token.start), source.length]
  const sorted = comments
    .map(({ at, text }) => ({ at: starts[Math.floor(at * starts.length)] ?? source.length, text }))
    .sort((a, b) => a.at - b.at)
  let out = ''
  let copied = 0
  for (const { at, text } of sorted) {
    out += source.slice(copied, at) + text
    copied = at
  }
  return out + source.slice(copied)
}

const place = fc.noBias(fc.nat({ max: 9_999 })).map(part => part / 10_000)
const inserted = fc
  .tuple(place, blank, comment, blank)
  .map(([at, before, text, after]) => ({ at, text: `${before}${text}${after}` }))

test('formatting any query keeps all comments wherever they are, keeps the tree, and is idempotent', {
  timeout: 60_000,
}, () => {
  let seen = 0
  fc.assert(
    fc.property(
      fc.array(anyStatement, { minLength: 1, maxLength: 2 }),
      fc.array(inserted, { minLength: 1, maxLength: 6 }),
      (statements, comments) => {
        const source = sprinkled(statements.map(formatStatement).join(';\n'), comments)
        const formatted = format(source)
        expect([...commentsOf(formatted)].sort(), formatted).toEqual([...commentsOf(source)].sort())
        expect(treesOf(formatted)).toBe(treesOf(source))
        expect(format(formatted), source).toBe(formatted)
        seen += commentsOf(source).length
      },
    ),
    { numRuns: 500 },
  )
  expect(seen).toBeGreaterThan(1_000)
})

interface Neighbours {
  readonly before: string | undefined
  readonly after: string | undefined
  /** The tokens before the comment on its line. */
  readonly line: readonly string[]
}

/** The tokens around the only comment. */
function neighbours(source: string): Neighbours {
  const { start, end } = parseMany(source).flatMap(one => one.comments)[0]?.span ?? { start: 0, end: 0 }
  const tokens = alignedTokens(source)
  const before = tokens.filter(token => token.end <= start)
  const isBreak = (index: number): boolean =>
    source.slice(before[index]?.end, before[index + 1]?.start ?? start).includes('\n')
  const line = before.filter((_, index) => !before.some((_other, later) => later >= index && isBreak(later)))
  return {
    before: before.at(-1)?.key,
    after: tokens.find(token => token.start >= end)?.key,
    line: line.map(token => token.key),
  }
}

test('a comment inside a line stays before its token, and one at the end of a line stays on the line of its token', {
  timeout: 60_000,
}, () => {
  let seen = 0
  fc.assert(
    fc.property(anyStatement, place, fc.boolean(), (statement, at, isInline) => {
      // On one line, so that formatting moves most comments to other lines.
      const text = formatStatement(statement)
      fc.pre(!text.includes('`') && !text.includes("'") && !text.includes('{'))
      const source = sprinkled(text.replaceAll(/\s+/g, ' '), [{ at, text: isInline ? '/* c */ ' : ' -- c\n' }])
      const given = neighbours(source)
      fc.pre(given.before !== undefined && given.after !== undefined)
      const formatted = format(source)
      if (isInline) expect(neighbours(formatted).after, formatted).toBe(given.after)
      else expect(neighbours(formatted).line, formatted).toContain(given.before)
      seen += 1
    }),
    { numRuns: 200 },
  )
  expect(seen).toBe(200)
})

describe('examples', () => {
  test.each([
    [
      'separate lines, ends of lines, and between',
      `-- head
get users -- the users
-- only active
where active = true /* and */ and role = 'a' /* why */
-- newest first
order by id desc -- last
limit 10
-- tail`,
      `-- head
get users -- the users
-- only active
where active = true /* and */ and role = 'a' /* why */
-- newest first
order by id desc -- last
limit 10
-- tail`,
    ],
    [
      'a comment at the end of an item breaks the list',
      `get users fields id, -- the key
        name, email -- mail
        where ((a = 1)) -- one
        or (/* two */ b = 2)`,
      `get users
fields
  id, -- the key
  name,
  email -- mail
where a = 1 -- one
  or /* two */ b = 2`,
    ],
    [
      'in braces and parentheses',
      `get users nest many posts { -- posts
        fields id -- id
        -- condition
        where a = 1 } where id in (1, -- one
        2)`,
      `get users
  nest many posts { -- posts
    fields id -- id
    -- condition
    where a = 1
  }
where id in (
  1, -- one
  2
)`,
    ],
    [
      'beside what canonical text leaves out or adds',
      'get a join b -- b\n order by c asc -- up\n /* end */;',
      'get a\n  left join b -- b\norder by c -- up\n/* end */',
    ],
    [
      'between statements',
      '-- one\nget a; -- after a\n-- two\nget b -- b\n;\n-- end',
      '-- one\nget a; -- after a\n\n-- two\nget b -- b\n-- end',
    ],
    [
      'comment signs in texts, names and JSON are not comments',
      'get a where b = "--x" /* c */ and `/*` = {"d": "\\"--"} -- e',
      'get a\nwhere b = \'--x\' /* c */ and `/*` = {"d": "\\"--"} -- e',
    ],
    ['two at the end of one line', 'get a where b + -- one\n c -- two\n', 'get a\nwhere b + c -- one\n-- two'],
  ])('comments stay next to the same tokens: %s', (_, source, expected) => {
    expect(format(source)).toBe(expected)
    expect(format(expected)).toBe(expected)
  })
})

test('a text with thousands of comments is formatted in less than two seconds', () => {
  const many = `get t fields ${Array.from({ length: 3_000 }, (_, index) => `c${index} -- ${index}\n`).join(', ')}`
  const started = performance.now()
  const formatted = format(many)
  expect(performance.now() - started).toBeLessThan(2_000)
  expect(formatted.split('\n')).toHaveLength(3_002)
})

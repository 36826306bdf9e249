/**
 * Any input, however hostile, is parsed in linear time and yields a tree or one syntax error with the
 * position, the text found and what was expected.
 */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { assertNesting, NESTING_MAX } from '../tree/nesting.ts'
import { TEXT_BYTES_MAX, TOKENS_MAX } from './lexer.ts'
import { parse, parseCondition, parseMany, parseWithComments } from './parse.ts'
import { QuerySyntaxError } from './syntax-error.ts'

const QUERIES = [
  'get users fields id, email where active = true order by created_at desc limit 10',
  'get distinct on (role) users u left join posts p on u.id = p.user_id nest many tags {fields name ' +
    'where a limit 3} where p.a is not null',
  'with recursive t (n) as (get one fields 1 union all get t fields n + 1 where n < 5) get t for update skip locked',
  "add users fields name, email values ('A', 'a@x.io'), ('B', null) conflict (email) update name = " +
    'excluded.name returning id',
  'set users u inner join x on u.a = x.a values n = u.n + 1 where u.id = $1 returning *',
  'merge stock s using (get d) x on s.id = x.id when matched and a then update set n = 1 when not ' +
    'matched then insert (id) values (1)',
  'make orders id:i64:pk, n:numeric(10, 2):default=0:check=n > 0, u:uuid:ref=users.id unique (n) ; ',
  'get t fields case when a then [1, 2] else {"a": [1, "x\\u00e9"]} end as c, sum(x) filter (where y) ' +
    'over (partition by z rows 1 preceding)',
  "get `Order Details` where a -> 'b' ->> \"c\" = '''raw''' or not (d between 1.5e3 and :e) -- note\n " +
    'and x in :ids /* y */',
] as const

const ENTRIES = [parse, parseWithComments, parseMany, parseCondition] as const

/**
 * Parses a text through every entry point: returns null for a tree, or a complete syntax error. Any other
 * exception fails the test.
 */
function answer(text: string): QuerySyntaxError | null {
  let refused: QuerySyntaxError | null = null
  for (const entry of ENTRIES) {
    try {
      const tree = entry(text)
      assertNesting(tree)
    } catch (error) {
      if (!(error instanceof QuerySyntaxError)) throw error
      assertComplete(error, text)
      refused ??= error
    }
  }
  return refused
}

function assertComplete(error: QuerySyntaxError, text: string): void {
  const lines = text.split('\n')
  expect(error.offset).toBeGreaterThanOrEqual(0)
  expect(error.offset).toBeLessThanOrEqual(text.length)
  expect(error.line).toBe(text.slice(0, error.offset).split('\n').length)
  expect(error.column).toBeLessThanOrEqual((lines[error.line - 1] ?? '').length + 1)
  expect(error.found).not.toBe('')
  expect(error.problem).not.toBe('')
  expect(error.message).toContain(error.sourceLine)
  expect(error.message.split('\n')[2]).toMatch(/^\s*\^$/)
  expect(error.message.length).toBeLessThan(1000)
  // A message may be printed to a terminal or embedded in JSON.
  expect(error.message).not.toMatch(/[\x00-\x08\x0b-\x1f\x7f]|\p{Surrogate}/u)
}

describe('invalid texts with one clear error', () => {
  test.each([
    ['parentheses', `get t where ${'('.repeat(10_000)}`, `nested more than ${NESTING_MAX}`],
    ['substring', `get t where ${'substring('.repeat(1000)}a${')'.repeat(1000)}`, `nested more than ${NESTING_MAX}`],
    ['brackets', `get t where ${'['.repeat(10_000)}`, `nested more than ${NESTING_MAX}`],
    ['braces', `get t where ${'{"a":'.repeat(10_000)}`, 'invalid JSON'],
    ['nests', `get t ${'nest a {'.repeat(5000)}`, `nested more than ${NESTING_MAX}`],
    ['queries', `get ${'(get '.repeat(5000)}`, `nested more than ${NESTING_MAX}`],
    ['not', `get t where ${'not '.repeat(10_000)}a`, `nested more than ${NESTING_MAX}`],
    ['minus', `get t where ${'- '.repeat(10_000)}a`, `nested more than ${NESTING_MAX}`],
    ['sums', `get t where 1${' + 1'.repeat(8000)}`, `nested more than ${NESTING_MAX}`],
    ['casts', `get t where a${'::int'.repeat(8000)}`, `nested more than ${NESTING_MAX}`],
    ['cases', `get t where ${'case '.repeat(10_000)}`, `nested more than ${NESTING_MAX}`],
    ['explain', 'explain '.repeat(8000), `nested more than ${NESTING_MAX}`],
    ['with', 'with a as ('.repeat(4000), `nested more than ${NESTING_MAX}`],
    ['compounds in parentheses', `get a ${'union (get a '.repeat(4000)}`, `nested more than ${NESTING_MAX}`],
    ['text', `get t where a = '${'x'.repeat(60_000)}`, 'unterminated'],
    ['raw text', `get t where a = '''${'x'.repeat(60_000)}`, 'unterminated'],
    ['name', `get \`${'``'.repeat(30_000)}`, 'unterminated'],
    ['comment', `get t ${'/*'.repeat(30_000)}`, 'unterminated'],
    ['JSON', `get t where a = {"${'x'.repeat(60_000)}`, 'invalid JSON'],
    ['an unpaired surrogate', 'get t where \ude00', 'an unpaired surrogate'],
  ])('an invalid text yields one error: %s', (_name, text, problem) => {
    expect(answer(text)?.problem).toContain(problem)
  })

  test('a text of the maximum number of bytes parses, and one more byte is an error', () => {
    const head = "get t where a = '"
    const text = `${head}${'€'.repeat(20_000)}${'x'.repeat(TEXT_BYTES_MAX - head.length - 60_001)}'`
    expect(Buffer.byteLength(text)).toBe(TEXT_BYTES_MAX)
    expect(() => parse(text)).not.toThrow()
    expect(answer(`${text} `)?.problem).toBe(`the query has more than ${TEXT_BYTES_MAX} bytes`)
    expect(() => parse(`${head}${'🙂'.repeat(16_300)}'`)).not.toThrow()
  })

  test('a text of the maximum number of tokens parses, and one more token is an error', () => {
    const text = `get t where a in (1${', 1'.repeat((TOKENS_MAX - 8) / 2)})`
    expect(() => parse(text)).not.toThrow()
    expect(answer(`${text};`)?.problem).toBe(`the query has more than ${TOKENS_MAX} tokens`)
  })

  test('comments do not count as tokens', () => {
    expect(parseWithComments(`get t ${'--\n'.repeat(20_000)}`).comments).toHaveLength(20_000)
  })
})

describe('random texts yield a tree or one error', () => {
  /** Parts of the grammar, to be joined at random. */
  const fragments = [...new Set(QUERIES.flatMap(query => query.split(/(\s+|[(){}[\],:.=])/)))].filter(
    part => part !== '',
  )

  test('random bytes yield a tree or one error', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), bytes => void answer(Buffer.from(bytes).toString('latin1'))),
    )
    fc.assert(fc.property(fc.string({ unit: 'binary', maxLength: 100 }), text => void answer(text)))
  })

  test('random UTF-16 units, including unpaired surrogates, yield a tree or one error', () => {
    const unit = fc.integer({ min: 0xd700, max: 0xe0ff }).map(code => String.fromCharCode(code))
    const texts = fc
      .array(fc.oneof(unit, fc.constantFrom(...'\'"`{[ a-/*')))
      .map(parts => `get t where a = ${parts.join('')}`)
    fc.assert(fc.property(texts, text => void answer(text)))
  })

  test('fragments of the grammar in random order yield a tree or one error', () => {
    const texts = fc.array(fc.constantFrom(...fragments), { maxLength: 40 }).map(parts => parts.join(' '))
    fc.assert(
      fc.property(texts, text => void answer(text)),
      { numRuns: 1000 },
    )
  })

  test('queries with random deletions, duplications, swaps and insertions yield a tree or one error', () => {
    const edit = fc.record({
      at: fc.double({ min: 0, max: 1, noNaN: true }),
      length: fc.nat(12),
      put: fc.oneof(fc.constant(''), fc.constantFrom(...fragments), fc.string({ maxLength: 4 })),
    })
    const texts = fc
      .tuple(fc.constantFrom(...QUERIES), fc.array(edit, { minLength: 1, maxLength: 4 }))
      .map(([query, edits]) =>
        edits.reduce<string>((text, { at, length, put }) => {
          const start = Math.floor(at * text.length)
          return text.slice(0, start) + put + text.slice(start + length)
        }, query),
      )
    fc.assert(
      fc.property(texts, text => void answer(text)),
      { numRuns: 2000 },
    )
  })

  test('every prefix of a query yields a tree or one error', () => {
    for (const query of QUERIES) {
      parse(query)
      for (let length = 0; length < query.length; length++) answer(query.slice(0, length))
    }
  })
})

describe('linear time', () => {
  /** CPU time in milliseconds, so that other load on the machine does not count. The best of a few runs. */
  function milliseconds(text: string): number {
    let best = Number.POSITIVE_INFINITY
    for (let run = 0; run < 5; run++) {
      const start = process.cpuUsage()
      try {
        parse(text)
      } catch (error) {
        if (!(error instanceof QuerySyntaxError)) throw error
      }
      const { user, system } = process.cpuUsage(start)
      best = Math.min(best, (user + system) / 1000)
    }
    return best
  }

  const HEADS = [
    '',
    'get t where ',
    'get t where a in (',
    'get t where [',
    'get t where a = "',
    'get t fields ',
    'with ',
    'make t ',
  ] as const
  const FRAGMENTS = [
    ...[
      '(',
      ')',
      '[',
      '[1,',
      '[[1],',
      '{',
      '{"a":',
      '["',
      '"',
      "'",
      "''",
      '`',
      '``',
      '/*',
      '*/',
      '--',
      '--\n',
      ' ',
      '\n',
      ',',
    ],
    ...[
      '1',
      '1 ',
      '1e',
      '.',
      'a.',
      'a,',
      'a ',
      'é',
      '🙂',
      '$1,',
      ':a,',
      '::int',
      '->a',
      '- ',
      'not ',
      'and a ',
      'a and ',
      'a or ',
    ],
    ...[
      '1 + ',
      '{"a":1},',
      '[{"a":1}],',
      '[1, {"a":1}],',
      'limit ',
      'order ',
      'order /* */',
      'f(',
      'f(a),',
      'case when ',
      'a as (get b),',
    ],
    ...[
      'join a ',
      'nest a {',
      'nest a ',
      'union get t ',
      'get (',
      '(get a), ',
      "'a' || ",
      'a:int,',
      'x as ',
      'over (',
      '\\',
      '#',
      '?',
      '@@ ',
    ],
  ] as const

  test('64 KiB of any repeated fragment parse in linear time', () => {
    const slow: string[] = []
    for (const head of HEADS) {
      for (const fragment of FRAGMENTS) {
        const repeated = fragment.repeat(Math.floor((TEXT_BYTES_MAX - head.length) / Buffer.byteLength(fragment)))
        const took = milliseconds(head + repeated)
        if (took >= 100) slow.push(`${head}${fragment}…: ${took.toFixed(0)} ms`)
      }
    }
    expect(slow).toEqual([])
  }, 120_000)

  test('parsing time grows linearly with the length of the text', () => {
    const slow: string[] = []
    for (const fragment of [
      '[1, [2], ',
      '[[[1], ',
      'a and (b or c) and ',
      'order /* long */ , ',
      "'a''b' || x, ",
      'f(a, [1]), ',
    ]) {
      const small = milliseconds(`get t fields ${fragment.repeat(500)}1`)
      const large = milliseconds(`get t fields ${fragment.repeat(2000)}1`)
      // The text is four times as long; quadratic time would be sixteen times. Very short times have no
      // meaningful ratio.
      if (large > 5 && large > small * 10) slow.push(`${fragment}: ${small.toFixed(2)} ms, ${large.toFixed(2)} ms`)
    }
    expect(slow).toEqual([])
  })
})

/** The lexer by itself: which token stands where, what it holds, and each refusal with its place. What tokens mean is tested with the parser. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { BINDING } from './binding.ts'
import { advance, type Comment, createLexer, type Lexer, refuseLongText, TEXT_BYTES_MAX, TOKENS_MAX } from './lexer.ts'
import { QuerySyntaxError } from './syntax-error.ts'
import { ROLE } from './vocabulary.ts'

/** Each token of a text as it stood when the lexer was at it. */
function lex(text: string): readonly Lexer[] {
  const lexer = createLexer(text)
  const seen: Lexer[] = []
  for (advance(lexer); lexer.token !== '#end'; advance(lexer)) seen.push({ ...lexer })
  return seen
}

/** `token` alone for keywords and signs, which are their own text; `token text` for the classes. */
function tokens(text: string): readonly string[] {
  return lex(text).map(({ token, start, end }) =>
    token.startsWith('#') ? `${token} ${text.slice(start, end)}` : token,
  )
}

function commentsOf(text: string): readonly Comment[] {
  const lexer = createLexer(text)
  lexer.comments = []
  do advance(lexer)
  while (lexer.token !== '#end')
  return lexer.comments
}

function refusal(text: string): { problem: string; span: unknown; hint: string | null; expected: readonly string[] } {
  try {
    lex(text)
  } catch (error) {
    if (!(error instanceof QuerySyntaxError)) throw error
    const { problem, span, hint, expected } = error
    return { problem, span, hint, expected }
  }
  throw new Error(`${JSON.stringify(text)} was not refused`)
}

describe('words', () => {
  test('a keyword is its own text in lower case, whatever its letters; another word is a word', () => {
    expect(tokens('GET users wHere x')).toEqual(['get', '#word users', 'where', '#word x'])
  })

  test('a keyword says what it is besides itself, and how tightly it binds', () => {
    const [where, order, not, cast, count, name] = lex('where order not cast count users')
    expect([where, order, not, cast, count, name].map(one => one?.role)).toEqual([
      ROLE.clause,
      ROLE.beforeBy,
      ROLE.opening,
      ROLE.call,
      ROLE.name,
      0,
    ])
    expect(lex('or and is like where x').map(({ infix }) => infix)).toEqual([
      BINDING.or,
      BINDING.and,
      BINDING.comparison,
      BINDING.comparison,
      0,
      0,
    ])
  })

  test('words and keywords may be names; back-ticks, texts and signs are no words', () => {
    expect(lex("users get `a` 'a' (").map(({ isWord }) => isWord)).toEqual([true, true, false, false, false])
  })

  test('letters, marks and digits of every script belong to a word, halves of a pair together', () => {
    expect(tokens('_a1 größe نام e\u0301 𝒳𝒴2')).toEqual([
      '#word _a1',
      '#word größe',
      '#word نام',
      '#word e\u0301',
      '#word 𝒳𝒴2',
    ])
  })

  test('a keyword is not found inside a longer word, nor by a letter that only looks like one', () => {
    expect(tokens('wheres get_ ın ſet')).toEqual(['#word wheres', '#word get_', '#word ın', '#word ſet'])
  })
})

describe('numbers', () => {
  test.each(['0', '007', '12345678901234567890'])('%s is an integer', text => {
    expect(tokens(text)).toEqual([`#integer ${text}`])
  })

  test.each(['1.5', '.5', '5.', '1e3', '1E+3', '2.5e-10'])('%s is a decimal', text => {
    expect(tokens(text)).toEqual([`#decimal ${text}`])
  })

  test.each(['1s', '30m', '24h', '7d', '2w', '6mo', '1y'])('%s is a duration', text => {
    expect(tokens(text)).toEqual([`#duration ${text}`])
  })

  test('a sign before a number is a token of its own', () => {
    expect(tokens('-1 a-1')).toEqual(['-', '#integer 1', '#word a', '-', '#integer 1'])
  })

  test('an exponent without digits is none', () => {
    expect(refusal('1e').problem).toBe('this is neither a number nor a duration')
    expect(tokens('1.e5 1..5')).toEqual(['#decimal 1.e5', '#decimal 1.', '#decimal .5'])
  })

  test.each([
    ['x = 24hours', 4, 11],
    ['1.5h', 0, 4],
    ['1_000', 0, 5],
    ['3é', 0, 2],
    ['1mon', 0, 4],
    ['5M', 0, 2],
  ])('%s is refused from its first digit to its last letter', (text, start, end) => {
    expect(refusal(text)).toEqual({
      problem: 'this is neither a number nor a duration',
      span: { start, end },
      hint: 'a duration is whole digits and one of s, m, h, d, w, mo, y, as in 24h; a name that begins with a digit stands in back-ticks',
      expected: [],
    })
  })
})

describe('signs', () => {
  const SIGNS = [
    ...[
      '(',
      ')',
      '[',
      ']',
      '{',
      '}',
      ',',
      ';',
      '.',
      '.*',
      ':',
      '::',
      '=',
      '<>',
      '<',
      '<=',
      '>',
      '>=',
      '~',
      '~*',
      '@>',
      '<@',
      '&&',
    ],
    ...['?', '?|', '?&', '@@', '||', '+', '-', '*', '/', '%', '->', '->>', '#>', '#>>'],
  ]

  test.each(SIGNS)('%s is one token, of that length', sign => {
    expect(lex(` ${sign} `).map(({ token, start, end }) => [token, start, end])).toEqual([[sign, 1, 1 + sign.length]])
  })

  test('the longest sign wins, and != is written <>', () => {
    expect(tokens('a->>b<=c||d::e')).toEqual([
      '#word a',
      '->>',
      '#word b',
      '<=',
      '#word c',
      '||',
      '#word d',
      '::',
      '#word e',
    ])
    expect(lex('a!=b')[1]).toMatchObject({ token: '<>', start: 1, end: 3 })
    expect(tokens('.*.')).toEqual(['.*', '.'])
  })

  test.each([
    ['::', BINDING.cast],
    ['->', BINDING.step],
    ['*', BINDING.multiply],
    ['+', BINDING.add],
    ['||', BINDING.concatenate],
    ['=', BINDING.comparison],
    ['(', 0],
    [',', 0],
  ])('%s binds by the table of the language: %i', (sign, infix) => {
    expect(lex(sign)[0]?.infix).toBe(infix)
  })

  test.each(['!', '@', '&', '|', '#', '$', '^', '\\', '“', '😀'])(
    '%s begins nothing and is a token of its own',
    sign => {
      expect(tokens(`a ${sign} b`)).toEqual(['#word a', `#unknown ${sign}`, '#word b'])
    },
  )
})

describe('parameters', () => {
  test('a dollar with digits is a position, with a name a claim', () => {
    expect(tokens('$1 $23 $tenant_id $claims.app.org')).toEqual([
      '#position $1',
      '#position $23',
      '#dollar $tenant_id',
      '#dollar $claims.app.org',
    ])
    expect(lex('$claims.app.org')[0]?.value).toBe('claims.app.org')
    expect(tokens('$a.1')).toEqual(['#dollar $a', '#decimal .1'])
  })

  test('a colon and a name are two tokens: the parser sees whether they touch', () => {
    expect(lex(':ids').map(({ token, start, end, before }) => [token, start, end, before])).toEqual([
      [':', 0, 1, 0],
      ['#word', 1, 4, 1],
    ])
  })
})

describe('texts and names in quotes', () => {
  test.each([
    ["'it''s'", "it's"],
    ['"say ""hi"""', 'say "hi"'],
    ["'\"'", '"'],
    ["''", ''],
    ["'\\n'", '\\n'],
    ["'a\nb'", 'a\nb'],
    ["'-- /* '", '-- /* '],
    ["'''it's ''raw'''", "it's ''raw"],
    ['"""a"b"""', 'a"b'],
    ["''''''", ''],
    ["'😀'", '😀'],
  ])('%s holds %j', (text, value) => {
    expect(lex(text).map(one => [one.token, one.value, one.end])).toEqual([['#text', value, text.length]])
  })

  test('back-ticks make a name of anything; a doubled one is the back-tick itself', () => {
    expect(lex('`order` `a``b` `a b`').map(({ token, value }) => [token, value])).toEqual([
      ['#quoted', 'order'],
      ['#quoted', 'a`b'],
      ['#quoted', 'a b'],
    ])
  })

  test.each([
    ["get t where a = 'b", 16, 17, 'the text that begins here has no end', "it ends with '", "'"],
    ['x "a""', 2, 3, 'the text that begins here has no end', 'it ends with "', '"'],
    ["'''a''", 0, 3, 'the raw text that begins here has no end', "it ends with '''", "'''"],
    ['get `t', 4, 5, 'the name that begins here has no end', 'it ends with `', '`'],
    ['``', 0, 2, 'a name is empty', null, 'a name'],
  ])('%s is refused at %i', (text, start, end, problem, hint, expected) => {
    expect(refusal(text)).toEqual({ problem, span: { start, end }, hint, expected: [expected] })
  })
})

describe('JSON', () => {
  test('braces, colons and the texts of plain JSON are tokens like others', () => {
    expect(tokens('{"a": [1, true]}')).toEqual(['{', '#text "a"', ':', '[', '#integer 1', ',', 'true', ']', '}'])
  })

  test('who has read JSON by other rules moves the end, and the lexer goes on behind it', () => {
    const lexer = createLexer('{"a": "\\""} and')
    advance(lexer)
    lexer.end = 11
    advance(lexer)
    expect([lexer.token, lexer.before, lexer.start]).toEqual(['and', 11, 12])
  })
})

describe('blanks and comments', () => {
  test('blanks of every kind separate tokens, and nothing else', () => {
    expect(tokens('a\tb\r\nc\u00a0d\u2003e\ufefff')).toEqual(
      ['a', 'b', 'c', 'd', 'e', 'f'].map(name => `#word ${name}`),
    )
  })

  test('a line comment ends before its line break, of one character or two', () => {
    expect(commentsOf('a -- one\r\nb --two')).toEqual([
      { text: '-- one', span: { start: 2, end: 8 } },
      { text: '--two', span: { start: 12, end: 17 } },
    ])
  })

  test('a block comment may hold comments; between two tokens it is a blank', () => {
    expect(commentsOf('a/* x /* y */ z */b')).toEqual([{ text: '/* x /* y */ z */', span: { start: 1, end: 18 } }])
    expect(tokens('a/**/b')).toEqual(['#word a', '#word b'])
    expect(tokens('1 - -1 / 2')).toEqual(['#integer 1', '-', '-', '#integer 1', '/', '#integer 2'])
  })

  test('a comment that is passed twice is kept once', () => {
    const lexer = createLexer('a /* c */ b')
    lexer.comments = []
    advance(lexer)
    const { end } = lexer
    advance(lexer)
    lexer.end = end
    advance(lexer)
    expect(lexer.comments).toHaveLength(1)
  })

  test('a block comment without an end is refused where it begins', () => {
    expect(refusal('get t /* a /* b */')).toEqual({
      problem: 'the comment that begins here has no end',
      span: { start: 6, end: 8 },
      hint: 'it ends with */',
      expected: ['*/'],
    })
  })
})

describe('positions', () => {
  test('each token knows where it begins and ends and where the one before it ended', () => {
    expect(lex('get  users').map(({ start, end, before, count }) => [start, end, before, count])).toEqual([
      [0, 3, 0, 1],
      [5, 10, 3, 2],
    ])
  })

  test('the end stands where the last token ended, and stays there', () => {
    const lexer = createLexer('a -- c\n\n')
    for (let times = 0; times < 3; times++) advance(lexer)
    expect([lexer.token, lexer.start, lexer.before, lexer.count]).toEqual(['#end', 1, 1, 1])
  })

  test('whatever the text: tokens follow each other, none is empty, and the work ends', () => {
    const piece = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.constantFrom("'", '`', '"', '--', '/*', '*/', '$', '.', '1e', '\n', 'get'),
    )
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), pieces => {
        const text = pieces.join('')
        const lexer = createLexer(text)
        try {
          for (advance(lexer); lexer.token !== '#end'; advance(lexer)) {
            expect(lexer.before).toBeLessThanOrEqual(lexer.start)
            expect(lexer.start).toBeLessThan(lexer.end)
            expect(lexer.end).toBeLessThanOrEqual(text.length)
          }
        } catch (error) {
          if (!(error instanceof QuerySyntaxError)) throw error
        }
      }),
      { numRuns: 2_000 },
    )
  })
})

describe('hostile texts', () => {
  test.each([
    ['a NUL in a text', "'a\0'", 2, 3, 'a text has no NUL'],
    ['a NUL between tokens', 'a \0', 2, 3, 'a text has no NUL'],
    ['a NUL in a comment', '-- \0', 3, 4, 'a text has no NUL'],
    ['a NUL in a raw text', "'''\0'''", 3, 4, 'a text has no NUL'],
    ['half a pair in a word', 'a\ud835', 1, 2, 'half a surrogate pair is no character'],
    ['the other half in a name', '`\udcb3`', 1, 2, 'half a surrogate pair is no character'],
    ['half a pair in a comment', '/*\ud835*/', 2, 3, 'half a surrogate pair is no character'],
    ['half a pair between tokens', 'a \udcb3', 2, 3, 'half a surrogate pair is no character'],
  ])('%s is refused at its character', (_, text, start, end, problem) => {
    expect(refusal(text)).toEqual({ problem, span: { start, end }, hint: null, expected: [] })
  })

  test('a text may have as many tokens as the limit says, and the next one is refused', () => {
    const many = '+'.repeat(TOKENS_MAX)
    expect(lex(many)).toHaveLength(TOKENS_MAX)
    expect(refusal(`${many} x`)).toEqual({
      problem: `the query has more than ${TOKENS_MAX} words and signs`,
      span: { start: TOKENS_MAX + 1, end: TOKENS_MAX + 2 },
      hint: null,
      expected: [],
    })
  })

  test.each([
    ['a', 1],
    ['é', 2],
    ['名', 3],
    ['😀', 4],
  ])('%s counts as its bytes of UTF-8 towards the longest text', (character, bytes) => {
    const fits = character.repeat(Math.floor(TEXT_BYTES_MAX / bytes))
    expect(() => refuseLongText(fits)).not.toThrow()
    expect(() => refuseLongText(fits + character)).toThrow(`the query has more than ${TEXT_BYTES_MAX} bytes`)
  })
})

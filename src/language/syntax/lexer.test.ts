/**
 * The lexer on its own: the position, content and errors of each token. The meaning of tokens is tested with
 * the parser.
 */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { BINDING } from './binding.ts'
import {
  advance,
  assertTextLength,
  type Comment,
  createLexer,
  type Lexer,
  TEXT_BYTES_MAX,
  TOKENS_MAX,
} from './lexer.ts'
import { QuerySyntaxError } from './syntax-error.ts'
import { ROLE } from './vocabulary.ts'

/** A copy of the lexer's state at each token of a text. */
function lex(text: string): readonly Lexer[] {
  const lexer = createLexer(text)
  const seen: Lexer[] = []
  for (advance(lexer); lexer.token !== '#end'; advance(lexer)) seen.push({ ...lexer })
  return seen
}

/** `token` alone for keytokens, which are their own text; `token text` for the other classes. */
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
  test('a keyword token is the keyword in lower case; any other word is a #word', () => {
    expect(tokens('GET users wHere x')).toEqual(['get', '#word users', 'where', '#word x'])
  })

  test('a keyword token has its role and its precedence', () => {
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

  test('only words and keywords are words, not backticked names, texts or signs', () => {
    expect(lex("users get `a` 'a' (").map(({ isWord }) => isWord)).toEqual([true, true, false, false, false])
  })

  test('a word can contain letters, marks and digits of any script, and surrogate pairs', () => {
    expect(tokens('_a1 größe نام e\u0301 𝒳𝒴2')).toEqual([
      '#word _a1',
      '#word größe',
      '#word نام',
      '#word e\u0301',
      '#word 𝒳𝒴2',
    ])
  })

  test('a keyword does not match as part of a longer word, or with a look-alike letter', () => {
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

  test('a sign before a number is a separate token', () => {
    expect(tokens('-1 a-1')).toEqual(['-', '#integer 1', '#word a', '-', '#integer 1'])
  })

  test('an exponent without digits is not an exponent', () => {
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
  ])('the error for %s covers it from the first digit to the last letter', (text, start, end) => {
    expect(refusal(text)).toEqual({
      problem: 'this is neither a number nor a duration',
      span: { start, end },
      hint:
        'a duration is a whole number and one of s, m, h, d, w, mo, y, as in 24h; put a name that starts with ' +
        'a digit in backticks',
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

  test.each(SIGNS)('%s is one token of its full length', sign => {
    expect(lex(` ${sign} `).map(({ token, start, end }) => [token, start, end])).toEqual([[sign, 1, 1 + sign.length]])
  })

  test('the longest sign matches, and != is read as <>', () => {
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
  ])('%s has the precedence %i', (sign, infix) => {
    expect(lex(sign)[0]?.infix).toBe(infix)
  })

  test.each(['!', '@', '&', '|', '#', '$', '^', '\\', '“', '😀'])(
    '%s begins no token and becomes an #unknown token',
    sign => {
      expect(tokens(`a ${sign} b`)).toEqual(['#word a', `#unknown ${sign}`, '#word b'])
    },
  )
})

describe('parameters', () => {
  test('a dollar with digits is a position; with a name it is a claim', () => {
    expect(tokens('$1 $23 $tenant_id $claims.app.org')).toEqual([
      '#position $1',
      '#position $23',
      '#dollar $tenant_id',
      '#dollar $claims.app.org',
    ])
    expect(lex('$claims.app.org')[0]?.value).toBe('claims.app.org')
    expect(tokens('$a.1')).toEqual(['#dollar $a', '#decimal .1'])
  })

  test('a colon and a name are two tokens, with offsets that show whether they are adjacent', () => {
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
  ])('%s has the content %j', (text, value) => {
    expect(lex(text).map(one => [one.token, one.value, one.end])).toEqual([['#text', value, text.length]])
  })

  test('backticks quote any name; a doubled backtick is a backtick', () => {
    expect(lex('`order` `a``b` `a b`').map(({ token, value }) => [token, value])).toEqual([
      ['#quoted', 'order'],
      ['#quoted', 'a`b'],
      ['#quoted', 'a b'],
    ])
  })

  test.each([
    ["get t where a = 'b", 16, 17, 'unterminated text', "close it with '", "'"],
    ['x "a""', 2, 3, 'unterminated text', 'close it with "', '"'],
    ["'''a''", 0, 3, 'unterminated raw text', "close it with '''", "'''"],
    ['get `t', 4, 5, 'unterminated name', 'close it with `', '`'],
    ['``', 0, 2, 'a name is empty', null, 'a name'],
  ])('%s is an error at offset %i', (text, start, end, problem, hint, expected) => {
    expect(refusal(text)).toEqual({ problem, span: { start, end }, hint, expected: [expected] })
  })
})

describe('JSON', () => {
  test('the braces, colons and strings of plain JSON are ordinary tokens', () => {
    expect(tokens('{"a": [1, true]}')).toEqual(['{', '#text "a"', ':', '[', '#integer 1', ',', 'true', ']', '}'])
  })

  test('the lexer continues after JSON if the parser moves its end', () => {
    const lexer = createLexer('{"a": "\\""} and')
    advance(lexer)
    lexer.end = 11
    advance(lexer)
    expect([lexer.token, lexer.before, lexer.start]).toEqual(['and', 11, 12])
  })
})

describe('blanks and comments', () => {
  test('whitespace of every kind separates tokens and has no other meaning', () => {
    expect(tokens('a\tb\r\nc\u00a0d\u2003e\ufefff')).toEqual(
      ['a', 'b', 'c', 'd', 'e', 'f'].map(name => `#word ${name}`),
    )
  })

  test('a line comment ends before its line break, LF or CRLF', () => {
    expect(commentsOf('a -- one\r\nb --two')).toEqual([
      { text: '-- one', span: { start: 2, end: 8 } },
      { text: '--two', span: { start: 12, end: 17 } },
    ])
  })

  test('block comments can be nested, and one between two tokens is whitespace', () => {
    expect(commentsOf('a/* x /* y */ z */b')).toEqual([{ text: '/* x /* y */ z */', span: { start: 1, end: 18 } }])
    expect(tokens('a/**/b')).toEqual(['#word a', '#word b'])
    expect(tokens('1 - -1 / 2')).toEqual(['#integer 1', '-', '-', '#integer 1', '/', '#integer 2'])
  })

  test('a comment that is read twice is kept once', () => {
    const lexer = createLexer('a /* c */ b')
    lexer.comments = []
    advance(lexer)
    const { end } = lexer
    advance(lexer)
    lexer.end = end
    advance(lexer)
    expect(lexer.comments).toHaveLength(1)
  })

  test('an unterminated block comment is an error at its start', () => {
    expect(refusal('get t /* a /* b */')).toEqual({
      problem: 'unterminated comment',
      span: { start: 6, end: 8 },
      hint: 'close it with */',
      expected: ['*/'],
    })
  })
})

describe('positions', () => {
  test('each token has its start, its end and the end of the token before it', () => {
    expect(lex('get  users').map(({ start, end, before, count }) => [start, end, before, count])).toEqual([
      [0, 3, 0, 1],
      [5, 10, 3, 2],
    ])
  })

  test('the end of the query is where the last token ends, however often it is read', () => {
    const lexer = createLexer('a -- c\n\n')
    for (let times = 0; times < 3; times++) advance(lexer)
    expect([lexer.token, lexer.start, lexer.before, lexer.count]).toEqual(['#end', 1, 1, 1])
  })

  test('for any text, tokens do not overlap, none is empty, and the lexer terminates', () => {
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
    ['a NUL in a text', "'a\0'", 2, 3, 'a text cannot contain NUL'],
    ['a NUL between tokens', 'a \0', 2, 3, 'a text cannot contain NUL'],
    ['a NUL in a comment', '-- \0', 3, 4, 'a text cannot contain NUL'],
    ['a NUL in a raw text', "'''\0'''", 3, 4, 'a text cannot contain NUL'],
    ['half a pair in a word', 'a\ud835', 1, 2, 'an unpaired surrogate is not a character'],
    ['the other half in a name', '`\udcb3`', 1, 2, 'an unpaired surrogate is not a character'],
    ['half a pair in a comment', '/*\ud835*/', 2, 3, 'an unpaired surrogate is not a character'],
    ['half a pair between tokens', 'a \udcb3', 2, 3, 'an unpaired surrogate is not a character'],
  ])('%s is an error at that character', (_, text, start, end, problem) => {
    expect(refusal(text)).toEqual({ problem, span: { start, end }, hint: null, expected: [] })
  })

  test('a text can have as many tokens as the limit, and the next one is an error', () => {
    const many = '+'.repeat(TOKENS_MAX)
    expect(lex(many)).toHaveLength(TOKENS_MAX)
    expect(refusal(`${many} x`)).toEqual({
      problem: `the query has more than ${TOKENS_MAX} tokens`,
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
  ])('%s counts with its UTF-8 bytes towards the length limit', (character, bytes) => {
    const fits = character.repeat(Math.floor(TEXT_BYTES_MAX / bytes))
    expect(() => assertTextLength(fits)).not.toThrow()
    expect(() => assertTextLength(fits + character)).toThrow(`the query has more than ${TEXT_BYTES_MAX} bytes`)
  })
})

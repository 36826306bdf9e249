import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { JSON_TEXTS } from '../../test/support/json-texts.ts'
import { GatewayError } from '../errors.ts'
import {
  JSON_DEPTH_MAX,
  type JsonArray,
  type JsonBody,
  type KnownKeys,
  type ObjectOutline,
  parseJsonBody,
  partBytes,
} from './json-body.ts'

const ITEMS_MAX = 10_000

const parse = (text: string): JsonBody => parseJsonBody(Buffer.from(text), ITEMS_MAX)

const parseObject = (text: string): ObjectOutline => {
  const body = parse(text)
  if (body.kind !== 'object') throw new Error(`${body.kind} is not an object`)
  return body
}

const parseArray = (text: string): JsonArray => {
  const body = parse(text)
  if (body.kind !== 'array') throw new Error(`${body.kind} is not an array`)
  return body
}

describe('the outline', () => {
  test.each(['', ' ', '\n\t\r '])('%j is empty', text => {
    expect(parse(text)).toEqual({ kind: 'empty' })
  })

  test.each([
    ['"a"', 'string'],
    ['12345678901234567890', 'integer'],
    ['-1.50', 'number'],
    ['1e400', 'number'],
    ['true', 'boolean'],
    ['false', 'boolean'],
    ['null', 'null'],
  ])('%s is a scalar of type %s with its bytes unchanged', (text, type) => {
    expect(parse(` ${text}\n`)).toEqual({ kind: 'scalar', type, bytes: Buffer.from(text) })
  })

  test('members of an object, in order, with decoded keys and untouched values', () => {
    const body = parseObject(
      ' {"id" : 9007199254740993, "\\u0061\\"é": 1.50,"":"\\u0041", "o":{"x":[1]},"l":[ ],"n":null,"t":true} ',
    )
    expect(body.bytes.toString()).toMatch(/^\{.*\}$/)
    expect(body.members.map(member => [member.key, member.type, partBytes(body, member).toString()])).toEqual([
      ['id', 'integer', '9007199254740993'],
      ['a"é', 'number', '1.50'],
      ['', 'string', '"\\u0041"'],
      ['o', 'object', '{"x":[1]}'],
      ['l', 'array', '[ ]'],
      ['n', 'null', 'null'],
      ['t', 'boolean', 'true'],
    ])
  })

  test('items of an array, with the keys of objects', () => {
    const body = parseArray(' [ 1, -0.10,"a" , {"b":{"c":1},"a":2}, [{"x":1}], {} , null, false]\n')
    expect(body.items.map(item => [item.type, partBytes(body, item).toString(), item.keys])).toEqual([
      ['integer', '1', []],
      ['number', '-0.10', []],
      ['string', '"a"', []],
      ['object', '{"b":{"c":1},"a":2}', ['b', 'a']],
      ['array', '[{"x":1}]', []],
      ['object', '{}', []],
      ['null', 'null', []],
      ['boolean', 'false', []],
    ])
  })

  test.each([
    ['{}', 'object', 'members'],
    ['[]', 'array', 'items'],
  ])('%s has no parts', (text, kind, parts) => {
    expect(parse(text)).toEqual({ kind, bytes: Buffer.from(text), [parts]: [] })
  })

  test('keys that JavaScript objects treat specially are ordinary', () => {
    const { members } = parseObject('{"__proto__":1,"constructor":2,"10":3,"9":4,"":5}')
    expect(members.map(member => member.key)).toEqual(['__proto__', 'constructor', '10', '9', ''])
  })

  test('a body can begin anywhere in its buffer', () => {
    const body = parseJsonBody(Buffer.from('xx[{"é":1}]yy').subarray(2, -2), ITEMS_MAX)
    expect(body).toMatchObject({ kind: 'array', items: [{ start: 1, end: 9, keys: ['é'] }] })
  })
})

describe('rows of an array', () => {
  const keysOf = (text: string): readonly (readonly string[])[] => parseArray(text).items.map(item => item.keys)

  test('adjacent rows with the same keys share one array', () => {
    const [first, second, third] = keysOf('[{"a":1,"\\u0062":2}, { "a" : {"a":1} , "\\u0062":"x" },{"a":3,"b":4}]')
    expect(first).toEqual(['a', 'b'])
    expect(second).toBe(first)
    expect(third).toEqual(['a', 'b'])
  })

  test('rows with fewer, more, other or no keys have separate arrays', () => {
    const rows =
      '[{"a":1,"b":1},{"a":1},{"a":1},{"a":1,"b":1},{"a":1,"b":1,"c":1},{"b":1,"a":1},{},{},{"a":1},5,{"a":1}]'
    const keys = keysOf(rows)
    expect(keys).toEqual([['a', 'b'], ['a'], ['a'], ['a', 'b'], ['a', 'b', 'c'], ['b', 'a'], [], [], ['a'], [], ['a']])
    expect(keys[2]).toBe(keys[1])
    expect(keys[10]).toBe(keys[8])
  })

  test('keys with a common prefix differ', () => {
    expect(keysOf('[{"ab":1},{"a":1},{"abc":1},{"a\\"":1},{"a\\\\":1}]')).toEqual([
      ['ab'],
      ['a'],
      ['abc'],
      ['a"'],
      ['a\\'],
    ])
  })

  test('the maximum number of items is accepted, one more is too large', () => {
    const array = (count: number): Buffer => Buffer.from(`[${Array(count).fill('{"a":1}').join(',')}]`)
    expect(parseJsonBody(array(3), 3)).toMatchObject({ kind: 'array', items: { length: 3 } })
    expect(() => parseJsonBody(array(4), 3)).toThrow(
      expect.objectContaining({
        code: 'PAYLOAD_TOO_LARGE',
        message: 'the array in the body has more than 3 items; send fewer at a time',
      }),
    )
  })

  test('only items of the outermost array are counted', () => {
    expect(parseJsonBody(Buffer.from('{"a":[1,2,3,4],"b":1,"c":2,"d":3}'), 2)).toMatchObject({ kind: 'object' })
    expect(parseJsonBody(Buffer.from('[[1,2,3,4]]'), 2)).toMatchObject({ kind: 'array', items: { length: 1 } })
  })
})

describe('known keys', () => {
  const known = (inItems: boolean) => {
    const asked: string[] = []
    const keys: KnownKeys = {
      inItems,
      has(key) {
        asked.push(key)
        return key === 'a' || key === 'é'
      },
      refuse(key) {
        throw new Error(`refused ${key}`)
      },
    }
    return { keys, asked }
  }

  test.each([
    ['{"a":{"x":1},"\\u00e9":[{"y":1}]}', true],
    ['{"a":1}', false],
    ['[{"a":1},{"a":2,"é":{"z":1}},[{"x":1}]]', true],
    ['[{"x":1}]', false],
    ['"x"', true],
  ])('%s can contain any keys at deeper levels', (text, inItems) => {
    expect(() => parseJsonBody(Buffer.from(text), ITEMS_MAX, known(inItems).keys)).not.toThrow()
  })

  test('parsing ends at the first unknown key', () => {
    const { keys, asked } = known(true)
    const many = Array.from({ length: 1_000 }, (_, n) => `"k${n}":1`).join(',')
    expect(() => parseJsonBody(Buffer.from(`[{"a":1},{"a":2},{"a":3,${many}}]`), ITEMS_MAX, keys)).toThrow('refused k0')
    expect(asked).toEqual(['a', 'k0'])
  })
})

describe('an error has the position, the problem and the fix', () => {
  test.each([
    ['{"a":1,}', 'line 1, column 8 of the body: found "}", expected a key in double quotes after the comma'],
    ['[1,\n  ]', 'line 2, column 3 of the body: found "]", expected a JSON value after the comma'],
    ['["é", NaN]', 'line 1, column 7 of the body: found "NaN", expected a JSON value after the comma'],
    [
      '{"a":undefined}',
      'line 1, column 6 of the body: found "undefined", expected a JSON value: an object, an array, a string in ' +
        'double quotes, a number, true, false or null',
    ],
    ['[1', 'line 1, column 3 of the body: found the end of the body, expected "," or "]"'],
    ['{"a":1]', 'line 1, column 7 of the body: found "]", expected "," or "}"'],
    ['{a:1}', 'line 1, column 2 of the body: found "a", expected a key in double quotes or "}"'],
    ["{'a':1}", 'line 1, column 2 of the body: found "\'", expected a key in double quotes or "}"; use double quotes'],
    ['{"a" 1}', 'line 1, column 6 of the body: found "1", expected ":" after a key'],
    ['[01]', 'line 1, column 2 of the body: found "01", expected a number written like 0, -12.5 or 1e-3'],
    [
      '{} {}',
      'line 1, column 4 of the body: found "{" after the JSON value, expected the end of the body; send one value',
    ],
    [
      '[1, // one\n2]',
      'line 1, column 5 of the body: found "/", expected a JSON value after the comma; remove the comment',
    ],
    ['"a', 'line 1, column 1 of the body: the string that begins here has no closing double quote; add it'],
    [
      '"a\tb"',
      'line 1, column 3 of the body: found the control character U+0009 in a string, expected it escaped; write ' +
        'it as \\t',
    ],
    [
      '"\x1b"',
      'line 1, column 2 of the body: found the control character U+001B in a string, expected it escaped; write ' +
        'it as \\u001b',
    ],
    [
      '"\\x41"',
      'line 1, column 2 of the body: found "x41" after a backslash, expected one of "\\/bfnrt or u; write \\\\ ' +
        'for a backslash',
    ],
    [
      '"\\u12"',
      'line 1, column 2 of the body: found a double quote in an escape, expected \\u and four hexadecimal digits',
    ],
    [
      '"\\ud800"',
      'line 1, column 2 of the body: found \\ud800, one half of a surrogate pair; write both halves, or the ' +
        'character itself',
    ],
    [
      '"\\u0000"',
      'line 1, column 2 of the body: found \\u0000; leave it out, PostgreSQL has no text with the character U+0000',
    ],
    [
      '"\0"',
      'line 1, column 2 of the body: found the control character U+0000 in a string, expected it escaped; leave ' +
        'it out, PostgreSQL has no text with the character U+0000',
    ],
    [
      '{"a":{"é":1,\n"\\u00e9":2}}',
      'line 2, column 1 of the body: key "é" is given twice in one object; keep one of them',
    ],
    ['\ufeff{}', 'line 1, column 1 of the body: found a byte order mark, expected JSON; send the body without it'],
    [
      '{\0"\0',
      'line 1, column 2 of the body: found U+0000, expected a key in double quotes or "}"; encode the body as UTF-8',
    ],
    [
      '['.repeat(65),
      'line 1, column 65 of the body: found a value nested more than 64 deep; flatten it, or send it as a string',
    ],
  ])('%j', (text, message) => {
    expect(() => parse(text)).toThrow(expect.objectContaining({ code: 'PARSE_ERROR', message }))
  })

  test('a long key is shortened in the message', () => {
    const key = 'k'.repeat(100_000)
    expect(() => parse(`{"${key}":1,"${key}":2}`)).toThrow(`key "${'k'.repeat(80)}…" is given twice`)
  })
})

test('the shared table of JSON texts', () => {
  const verdicts = JSON_TEXTS.map(({ name, bytes }) => [name, verdictOf(bytes)])
  expect(verdicts).toEqual(JSON_TEXTS.map(({ name, verdict }) => [name, verdict]))
  expect(JSON_TEXTS.filter(({ verdict }) => verdict === 'accept').length).toBeGreaterThan(100)
  expect(JSON_TEXTS.filter(({ verdict }) => verdict === 'refuse').length).toBeGreaterThan(150)
})

test('the table agrees with the reference check', () => {
  const verdicts = JSON_TEXTS.map(({ name, bytes }) => [name, slowVerdict(bytes)])
  expect(verdicts).toEqual(JSON_TEXTS.map(({ name, verdict }) => [name, verdict]))
})

function verdictOf(bytes: Buffer): 'accept' | 'refuse' {
  try {
    parseJsonBody(bytes, Number.POSITIVE_INFINITY)
    return 'accept'
  } catch (error) {
    if (error instanceof GatewayError && error.code === 'PARSE_ERROR') return 'refuse'
    throw error
  }
}

/**
 * The same rules implemented differently: JSON.parse, plus a check of each token for texts that JSON.parse
 * accepts.
 */
function slowVerdict(bytes: Buffer): 'accept' | 'refuse' {
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
    if (/^[ \t\r\n]*$/.test(text)) return 'accept'
    JSON.parse(text)
  } catch {
    return 'refuse'
  }
  const tokens = text.match(/"(?:[^"\\]|\\.)*"|[[\]{}:,]|[^\s[\]{}:,"]+/g) ?? []
  const open: (Set<string> | null)[] = []
  for (const [index, token] of tokens.entries()) {
    if (token === '{') open.push(new Set())
    if (token === '[') open.push(null)
    if (token === '}' || token === ']') open.pop()
    if (open.length > JSON_DEPTH_MAX) return 'refuse'
    if (!token.startsWith('"')) continue
    const content = JSON.parse(token) as string
    if (/[\0\p{Surrogate}]/u.test(content)) return 'refuse'
    if (tokens[index + 1] !== ':') continue
    if (open.at(-1)?.has(content)) return 'refuse'
    open.at(-1)?.add(content)
  }
  return 'accept'
}

/** The outline of an accepted text, compared with the result of JSON.parse. */
function expectOutline(text: string): void {
  const body = parseJsonBody(Buffer.from(text), Number.POSITIVE_INFINITY)
  const value: unknown = JSON.parse(text)
  const typeOf = (part: unknown): string =>
    part === null ? 'null' : Array.isArray(part) ? 'array' : typeof part === 'number' ? 'number' : typeof part
  const expectPart = (
    whole: ObjectOutline | JsonArray,
    part: ObjectOutline['members'][number] | JsonArray['items'][number],
    expected: unknown,
  ) => {
    const bytes = partBytes(whole, part).toString()
    expect(JSON.parse(bytes)).toEqual(expected)
    expect(bytes.trim()).toBe(bytes)
    expect(part.type === 'integer' ? 'number' : part.type).toBe(typeOf(expected))
    if (part.type === 'integer' || part.type === 'number') expect(part.type === 'integer').toBe(/^-?\d+$/.test(bytes))
  }
  switch (body.kind) {
    case 'empty':
      throw new Error('JSON.parse takes no empty text')
    case 'scalar':
      expect(JSON.parse(body.bytes.toString())).toEqual(value)
      return
    case 'object': {
      const expected = value as Readonly<Record<string, unknown>>
      expect(body.members.map(member => member.key).toSorted()).toEqual(Object.keys(expected).toSorted())
      for (const member of body.members) expectPart(body, member, expected[member.key])
      return
    }
    case 'array': {
      const expected = value as readonly unknown[]
      expect(body.items.length).toBe(expected.length)
      for (const [index, item] of body.items.entries()) {
        expectPart(body, item, expected[index])
        const keys = item.type === 'object' ? Object.keys(expected[index] as object) : []
        expect(item.keys.toSorted()).toEqual(keys.toSorted())
      }
    }
  }
}

describe('the outline agrees with JSON.parse', () => {
  const jsonText = fc
    .tuple(
      fc.oneof(fc.jsonValue({ maxDepth: 5, stringUnit: 'grapheme' }), fc.jsonValue({ stringUnit: 'binary' })),
      fc.constantFrom(undefined, 1, '\t'),
    )
    .map(([value, indent]) => JSON.stringify(value, null, indent))

  test('any output of JSON.stringify', () => {
    fc.assert(
      fc.property(jsonText, text => {
        if (slowVerdict(Buffer.from(text)) === 'accept') expectOutline(text)
        else expect(() => parse(text)).toThrow(GatewayError)
      }),
      { numRuns: 500 },
    )
  })

  test('batches of rows', () => {
    const row = fc.dictionary(fc.string({ unit: 'grapheme', maxLength: 3 }), fc.jsonValue({ maxDepth: 2 }), {
      maxKeys: 12,
    })
    fc.assert(
      fc.property(fc.array(fc.oneof(row, fc.constant({ id: 1, name: 'a' }), fc.constant({ id: 1 }))), rows => {
        const text = JSON.stringify(rows)
        fc.pre(!text.includes('\\u0000'))
        expectOutline(text)
      }),
      { numRuns: 300 },
    )
  })

  // Few keys in all spellings, so that they repeat in one object, in the next, and at deeper levels.
  const KEYS = ['"a"', '"\\u0061"', '"b"', '"ab"', '"é"', '"\\u00e9"', '"\\u00E9"', '""', '"1"', '"__proto__"', '"\\""']
  const spelled = fc.letrec<{ value: string; object: string }>(tie => ({
    value: fc.oneof(
      { maxDepth: 4 },
      fc.constantFrom('1', '-0.5e3', '"x"', 'null', '[]', '{}'),
      tie('object'),
      fc.array(tie('object'), { maxLength: 4 }).map(items => `[${items.join(', ')}]`),
    ),
    object: fc
      .array(
        fc.tuple(
          fc.oneof(
            fc.constantFrom(...KEYS),
            fc.integer({ min: 0, max: 60 }).map(index => `"k${index}"`),
          ),
          tie('value'),
        ),
        { maxLength: 14 },
      )
      .map(members => `{${members.map(([key, value]) => `${key}:${value}`).join(',')}}`),
  }))

  test('objects with repeated keys in different spellings', () => {
    const seen = { accept: 0, refuse: 0 }
    fc.assert(
      fc.property(
        fc.oneof(
          spelled.value,
          fc.array(spelled.object, { maxLength: 5 }).map(rows => `[${rows.join()}]`),
        ),
        text => {
          const verdict = slowVerdict(Buffer.from(text))
          seen[verdict] += 1
          expect(verdictOf(Buffer.from(text))).toBe(verdict)
          if (verdict === 'accept') expectOutline(text)
        },
      ),
      { numRuns: 1000 },
    )
    expect(seen.accept).toBeGreaterThan(100)
    expect(seen.refuse).toBeGreaterThan(100)
  })

  test('mutated texts', () => {
    const scrap = fc.oneof(
      fc
        .constantFrom(
          ...'[]{},:"\\ \n\t01-+.eEu/\'',
          '\\u',
          '\\ud83d',
          '\\ude00',
          '\\u0000',
          'null',
          '"a":1,',
          '\ufeff',
          '\0',
        )
        .map(text => Buffer.from(text)),
      fc.uint8Array({ minLength: 1, maxLength: 2 }).map(bytes => Buffer.from(bytes)),
    )
    const mutation = fc.record({ at: fc.nat(), cut: fc.constantFrom(0, 0, 1, 2), scrap })
    const seen = { accept: 0, refuse: 0 }
    fc.assert(
      fc.property(fc.oneof(jsonText, spelled.value), fc.array(mutation, { maxLength: 2 }), (text, mutations) => {
        let bytes = Buffer.from(text)
        for (const { at, cut, scrap } of mutations) {
          const from = at % (bytes.length + 1)
          bytes = Buffer.concat([bytes.subarray(0, from), scrap, bytes.subarray(from + cut)])
        }
        const verdict = slowVerdict(bytes)
        seen[verdict] += 1
        expect(verdictOf(bytes)).toBe(verdict)
      }),
      { numRuns: 5000 },
    )
    expect(seen.accept).toBeGreaterThan(100)
    expect(seen.refuse).toBeGreaterThan(100)
  })

  test('arbitrary bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 20 }), bytes => {
        expect(verdictOf(Buffer.from(bytes))).toBe(slowVerdict(Buffer.from(bytes)))
      }),
      { numRuns: 2000 },
    )
  })
})

describe('2 MiB of the most expensive input is parsed quickly', () => {
  const BODY_BYTES_MAX = 2 * 1024 * 1024
  /** A quadratic parser would need minutes. */
  const TIMEOUT_MS = 30_000

  const filled = (open: string, close: string, part: (index: number) => string): Buffer => {
    const parts: string[] = []
    let left = BODY_BYTES_MAX - open.length - close.length
    for (let index = 0; ; index += 1) {
      const text = part(index)
      left -= Buffer.byteLength(text) + 1
      if (left < 0) return Buffer.from(open + parts.join(',') + close)
      parts.push(text)
    }
  }
  const array = (part: (index: number) => string): Buffer => filled('[', ']', part)
  const object = (part: (index: number) => string): Buffer => filled('{', '}', part)
  const nineKeys = (index: number): string =>
    `{${Array.from({ length: 9 }, (_, key) => `"${index * 9 + key}":1`).join()}}`

  test.each<[string, Buffer, 'accept' | 'refuse']>([
    ['opening brackets', Buffer.alloc(BODY_BYTES_MAX, '['), 'refuse'],
    ['one string', Buffer.from(`"${'x'.repeat(BODY_BYTES_MAX - 2)}"`), 'accept'],
    ['one string without end', Buffer.from(`"${'x'.repeat(BODY_BYTES_MAX - 1)}`), 'refuse'],
    ['one number', Buffer.alloc(BODY_BYTES_MAX, '7'), 'accept'],
    ['numbers', array(() => '1e400'), 'accept'],
    ['objects with the same keys', array(() => '{"a":1,"b":2}'), 'accept'],
    ['objects with different keys', array(nineKeys), 'accept'],
    ['such objects deeper', filled('[[', ']]', nineKeys), 'accept'],
    ['keys in one object', object(index => `"${index.toString(36)}":1`), 'accept'],
    // The hashes of all keys are 0 in their lower 16 bits: a hash table of numbers would put them into one
    // bucket.
    [
      'keys that would collide as numbers',
      object(index => `"${(index % 256) * 2 ** 24 + (index >> 8) * 2 ** 16}${' '.repeat(index >> 16)}":1`),
      'accept',
    ],
    ['escaped keys in one object', object(index => `"\\n${index}":1`), 'accept'],
    ['long keys that begin alike', object(index => `"${'p'.repeat(16_400)}${index}":1`), 'accept'],
    ['8 very long keys that begin alike', object(index => `"${'p'.repeat(250_000)}${index}":1`), 'accept'],
    ['white space', Buffer.alloc(BODY_BYTES_MAX, ' '), 'accept'],
    [
      'an invalid UTF-8 byte at the end',
      Buffer.concat([Buffer.alloc(BODY_BYTES_MAX - 1, 'é'), Buffer.from([0xff])]),
      'refuse',
    ],
  ])(
    '%s',
    (_, bytes, verdict) => {
      expect(verdictOf(bytes)).toBe(verdict)
    },
    TIMEOUT_MS,
  )
})

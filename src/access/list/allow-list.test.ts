/** docs/guides/allow-list.md: one query shape per line, `#` comments, and all errors reported together. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { GatewayError } from '../../errors.ts'
import { parse } from '../../language/syntax/parse.ts'
import { loadQueryList, parseQueryList, SHAPES_MAX } from './allow-list.ts'
import { AllowListError } from './list-file.ts'
import { shapeOfQuery } from './query-shape.ts'

/**
 * A stand-in for the request parser: a request is its text, and one that contains the word `wrong` is
 * rejected.
 */
function parseRequest(line: string) {
  if (line.includes('wrong')) throw new GatewayError('PARSE_ERROR', `"${line}" is wrong`)
  return { key: line, values: [] }
}

const list = (text: string) => parseQueryList(text, 'allow.txt', parseRequest)
const has = (text: string, query: string) => list(text).has(shapeOfQuery(parse(query)))
const hasRequest = (text: string, key: string) => list(text).has({ key, values: [] })

test('a line is a request or a query-language text', () => {
  const text = '# orders\n\nGET /api/orders?status.eq\n  get orders where id = ?\n\tDELETE orders where id = ?\n'
  expect(list(text).size).toBe(3)
  expect(hasRequest(text, 'GET /api/orders?status.eq')).toBe(true)
  expect(has(text, 'get orders where id = 7')).toBe(true)
  expect(has(text, 'del orders where id = 7')).toBe(true)
  expect(has(text, 'get orders')).toBe(false)
})

test('# starts a comment anywhere except within quotes or as an operator', () => {
  expect(hasRequest('GET /api/a?b.eq# the b\n', 'GET /api/a?b.eq')).toBe(true)
  expect(has("get t where a = ? # don't ask\n#get u", 'get t where a = 1')).toBe(true)
  expect(has('get `a#b` # x', 'get `a#b`')).toBe(true)
  expect(
    has("get t where a #>> ? = 'b#c' and d #> ? is null#", "get t where a #>> '{x}' = 'b#c' and d #> '{y}' is null"),
  ).toBe(true)
})

test('all kinds of line ends and a byte order mark are accepted', () => {
  for (const end of ['\n', '\r\n', '\r']) {
    expect(has(`\ufeffget t${end}get u${end}`, 'get t')).toBe(true)
    expect(has(`get t${end}get u`, 'get u')).toBe(true)
  }
})

test('an empty list allows nothing', () => {
  expect(list('# nothing\n').size).toBe(0)
  expect(has('', 'get t')).toBe(false)
})

test('names of Object.prototype members are ordinary names', () => {
  expect(hasRequest('GET /api/__proto__', 'GET /api/__proto__')).toBe(true)
  expect(hasRequest('GET /api/a', 'constructor')).toBe(false)
  expect(has('get __proto__', 'get constructor')).toBe(false)
})

describe('errors', () => {
  test('all errors are reported together, each with its line and column', () => {
    const text = 'get t\nget t where\nGET /api/wrong\nget t limit ? limit ?\nget u where a in (1, ?)\nget "a'
    expect(() => list(text)).toThrow(AllowListError)
    expect(() => list(text)).toThrow(
      new RegExp(
        [
          /^allow\.txt:2: .*\(column 12\).*\n/,
          /allow\.txt:3: "GET \/api\/wrong" is wrong\n/,
          /allow\.txt:4: .*\(column 15\).*\n/,
          /allow\.txt:5: the list .*\(column 19\)\n/,
          /allow\.txt:6: /,
        ]
          .map(line => line.source)
          .join(''),
      ),
    )
  })
  test('the number of reported errors is bounded', () => {
    expect(() => list('nonsense\n'.repeat(1_000))).toThrow(/and 980 more$/)
  })
  test('a NUL character is rejected', () => {
    expect(() => list('get t\nget \0')).toThrow('allow.txt:2: the line contains a NUL character')
  })
  test('a line that is too long is rejected', () => {
    expect(() => list(`get t${' '.repeat(200_000)}where a`)).toThrow('at most 196608')
    expect(() => list(`get t where a = ${'#>'.repeat(90_000)}`)).toThrow(AllowListError)
    expect(() => list(`get t where a = '${'x'.repeat(70_000)}'`)).toThrow(/^allow\.txt:1: .*65536/)
  })
  test('more shapes than the limit are rejected', () => {
    const many = Array.from({ length: SHAPES_MAX }, (_, n) => `GET /api/t${n}\n`).join('')
    expect(list(many).size).toBe(SHAPES_MAX)
    expect(() => list(`${many}# the end\nGET /api/more\nGET /api/more\n`)).toThrow(
      /^allow\.txt:10002: there are more than 10000 shapes[^\n]*$/,
    )
  })
  test('any text is either a valid list or one error', () => {
    fc.assert(
      fc.property(fc.string(), text => {
        try {
          list(text)
        } catch (error) {
          expect(error).toBeInstanceOf(AllowListError)
        }
      }),
    )
  })
})

describe('the list file', () => {
  test('is parsed in slices, so that requests are served while a long one is read', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'svc-allow-'))
    let turns = 0
    let isLoading = true
    const count = () => {
      turns += 1
      if (isLoading) setImmediate(count)
    }
    try {
      const file = join(folder, 'allow.txt')
      await writeFile(file, Array.from({ length: 5_000 }, (_, n) => `get t${n} where a = ?\n`).join(''))
      setImmediate(count)
      expect((await loadQueryList(file, parseRequest)).patterns.size).toBe(5_000)
      expect(turns).toBeGreaterThan(90)
      await writeFile(file, 'nonsense\n'.repeat(1_000))
      await expect(loadQueryList(file, parseRequest)).rejects.toThrow(/allow\.txt:20: .*\nand 980 more$/)
    } finally {
      isLoading = false
      await rm(folder, { recursive: true })
    }
  })
  test('must be UTF-8 and at most a few megabytes', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'svc-allow-'))
    try {
      const file = join(folder, 'allow.txt')
      await writeFile(file, 'get größen\n')
      expect((await loadQueryList(file, parseRequest)).patterns.has(shapeOfQuery(parse('get größen')))).toBe(true)
      await writeFile(file, Buffer.from([0x67, 0xff, 0xfe]))
      await expect(loadQueryList(file, parseRequest)).rejects.toThrow(`allow_list_path: ${file} is not UTF-8 text`)
      await writeFile(file, Buffer.alloc(5 * 1024 * 1024, '#\n'))
      await expect(loadQueryList(file, parseRequest)).rejects.toThrow('at most 4194304 are read')
      await expect(loadQueryList(folder, parseRequest)).rejects.toThrow(AllowListError)
      await expect(loadQueryList(join(folder, 'gone'), parseRequest)).rejects.toThrow('gone cannot be read: ENOENT')
    } finally {
      await rm(folder, { recursive: true })
    }
  })
})

import fc from 'fast-check'
import { parse } from 'smol-toml'
import { describe, expect, test } from 'vitest'
import { indexTomlLines } from './toml-lines.ts'

function lines(toml: string): Record<string, number | null> {
  // These tests use valid TOML only.
  parse(toml)
  const index = indexTomlLines(toml)
  return new Proxy({}, { get: (_, path: string) => index.lineOf(path === '' ? [] : path.split('/')) })
}

describe('lines of keys', () => {
  test('keys, tables and keys in tables have their lines', () => {
    const at = lines('a = 1\n\n# comment\n[t]\nb = "x" # b\n  c.d = true\n[t.u]\ne = 1\n')
    expect([at.a, at.t, at['t/b'], at['t/c'], at['t/c/d'], at['t/u'], at['t/u/e']]).toEqual([1, 4, 5, 6, 6, 7, 8])
  })

  test('a missing key has no line', () => {
    const at = lines('a = 1\n')
    expect(at.b).toBe(null)
    expect(at['a/b']).toBe(null)
  })

  test('a table without a header has the line of its sub-table', () => {
    expect(lines('x = 1\n[a.b.c]\nd = 1\n')['a/b']).toBe(2)
  })

  test('a table has the line of its first mention', () => {
    expect(lines('[a.b]\nx = 1\n[a]\ny = 1\n').a).toBe(1)
  })

  test('elements of multi-line arrays with comments and a trailing comma have their lines', () => {
    const at = lines('a = [\n  "x", # ] "\n  # nothing here ]\n  "y",\n  ["z",\n   1],\n]\nb = 2\n')
    expect([at.a, at['a/0'], at['a/1'], at['a/2'], at['a/2/1'], at['a/3'], at.b]).toEqual([1, 2, 4, 5, 6, null, 8])
  })

  test('inline tables, nested and empty, have their lines', () => {
    const at = lines('p = 0\na = { b = 1, "c d".e = { f = "}" }, g = {} }\nh = 1\n')
    expect([at['a/b'], at['a/c d/e/f'], at['a/g'], at.h]).toEqual([2, 2, 2, 3])
  })

  test('quoted keys have their lines: basic with escapes, literal, empty, with dots and brackets inside', () => {
    const at = lines('"a.b" = 1\n\'c]d\' = 2\n["x\\u0041.y"."#"]\n"" = 3\n')
    expect([at['a.b'], at['c]d'], at['xA.y/#'], at['xA.y/#/']]).toEqual([1, 2, 3, 4])
  })

  test('text inside strings that looks like keys is ignored', () => {
    const at = lines('a = """\nb = 1\n[c]\n\\""" d = "" = 2\n"""\ne = \'\'\'\n\'\' f = 3\n\'\'\'\'\'\ng = "#"\n')
    expect([at.a, at.b, at.c, at.d, at.e, at.f, at.g]).toEqual([1, null, null, null, 6, null, 9])
  })

  test('an empty multi-line string and one that ends with quotes are skipped', () => {
    const at = lines('a = """"""\nb = """x"""""\nc = 1\n')
    expect([at.a, at.b, at.c]).toEqual([1, 2, 3])
  })

  test('arrays of tables and tables in their last element have their lines', () => {
    const at = lines('[[a]]\nx = 1\n[[a]]\nx = 2\n[a.b]\ny = 3\n[[a.c]]\nz = 4\n')
    expect([at.a, at['a/0/x'], at['a/1'], at['a/1/x'], at['a/1/b/y'], at['a/1/c/0/z']]).toEqual([1, 2, 3, 4, 6, 8])
  })

  test('Windows line ends, dates, numbers with signs and underscores are skipped', () => {
    const at = lines('a = 1979-05-27 07:32:00Z # x\r\nb = +1_000.5e-3\r\n\r\nc = [ 0x1F,\r\n inf ]\r\nd = 1\r\n')
    expect([at.a, at.b, at.c, at['c/1'], at.d]).toEqual([1, 2, 4, 5, 6])
  })

  test('names of Object.prototype members are ordinary keys', () => {
    const at = lines('[__proto__]\nconstructor = 1\n')
    expect([at['__proto__/constructor'], at.toString]).toEqual([2, null])
  })
})

/** A TOML text with every form of key and value, and the line of each path. */
interface Written {
  readonly toml: string
  readonly paths: readonly (readonly [path: readonly string[], line: number])[]
}

const bareKey = fc.stringMatching(/^[A-Za-z0-9_-]{1,6}$/)
const keyPart = fc.oneof(bareKey, fc.string({ unit: 'grapheme', maxLength: 5 }))
const quoteKey = (part: string, literal: boolean): string =>
  literal && !/['\u0000-\u001f\u007f]/.test(part) ? `'${part}'` : JSON.stringify(part).replaceAll('\u007f', '\\u007f')
const scalar = fc.constantFrom(
  '1',
  'true',
  '"a # \\" ] } ="',
  "'[x]'",
  '1979-05-27T07:32:00Z',
  '-0.5',
  '"""\nx = 1\n\\""""""',
  "'''\n[y]\n''''",
)
const gap = fc.constantFrom('', ' ', '\n', ' # ] "\n', '\n\n\t')

const entry = fc.record({
  key: keyPart,
  literal: fc.boolean(),
  values: fc.array(fc.record({ value: scalar, before: gap, after: gap }), { maxLength: 4 }),
  form: fc.constantFrom('scalar', 'array', 'inline'),
  scalar,
  comment: fc.constantFrom('', ' # = "', '\n\n# [no]'),
})

const document = fc
  .uniqueArray(
    fc.record({ table: keyPart, entries: fc.uniqueArray(entry, { selector: ({ key }) => key, maxLength: 5 }) }),
    {
      selector: ({ table }) => table,
      maxLength: 5,
    },
  )
  .map((tables): Written => {
    const paths: [readonly string[], number][] = []
    let toml = ''
    const here = (): number => toml.split('\n').length
    for (const { table, entries } of tables) {
      paths.push([[table], here()])
      toml += `[ ${quoteKey(table, false)} ]\n`
      for (const { key, literal, form, values, scalar: single, comment } of entries) {
        const path = [table, key]
        paths.push([path, here()])
        toml += `${quoteKey(key, literal)} = `
        if (form === 'scalar') toml += single
        if (form === 'inline')
          toml += `{ ${quoteKey(key, !literal)}.x = ${single}, ${quoteKey(`${key}2`, literal)} = [] }`
        if (form === 'array') {
          toml += '['
          for (const [index, { value, before, after }] of values.entries()) {
            toml += before
            paths.push([[...path, String(index)], here()])
            toml += `${value}${after},`
          }
          toml += ']'
        }
        toml += `${comment}\n`
      }
    }
    return { toml, paths }
  })

describe('fuzz', () => {
  test('every key of a generated document has its line', () => {
    fc.assert(
      fc.property(document, ({ toml, paths }) => {
        parse(toml)
        const index = indexTomlLines(toml)
        for (const [path, line] of paths) expect([path, index.lineOf(path)]).toEqual([path, line])
      }),
      { numRuns: 300 },
    )
  })

  test('a text that is not TOML is still read to its end', () => {
    const noise = fc.string({
      unit: fc.constantFrom('[', ']', '{', '}', '=', ',', '.', '"', "'", '\\', '\n', '#', 'a', ' ', '\r', '"""'),
    })
    fc.assert(
      fc.property(noise, toml => {
        try {
          indexTomlLines(toml)
        } catch (error) {
          // A quoted key with an invalid escape is reported by the parser.
          expect((error as Error).name).toBe('Error')
        }
      }),
      { numRuns: 2_000 },
    )
  })

  test('a long string and a long array are read in linear time', () => {
    const strings = `a = "${'x'.repeat(500_000)}"\nb = """${'y"'.repeat(200_000)}\n"""`
    const toml = `${strings}\nc = [${'1,\n'.repeat(20_000)}]\nd = 1\n`
    const at = indexTomlLines(toml)
    expect(at.lineOf(['d'])).toBe(20_005)
  })
})

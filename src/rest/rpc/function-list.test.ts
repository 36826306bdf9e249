/**
 * The file in `rpc_allowlist_path` (docs/reference/functions.md#transactions-and-rights): one function per
 * line, case-insensitive, `#` comments, compared with the schema.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { AllowListError } from '../../access/list/list-file.ts'
import { loadFunctionList, parseFunctionList } from './function-list.ts'

const list = (text: string) => parseFunctionList(text, 'shop', 'rpc.txt')
const has = (text: string, schema: string, name: string) => list(text).has({ schema, name })

test('a bare name belongs to the first schema, and comments are ignored', () => {
  const text = '# functions\n\n  add  # the sum\nsales.report\n\t\n#sales.hidden\nlast'
  expect(has(text, 'shop', 'add')).toBe(true)
  expect(has(text, 'sales', 'report')).toBe(true)
  expect(has(text, 'shop', 'last')).toBe(true)
  expect(has(text, 'sales', 'add')).toBe(false)
  expect(has(text, 'shop', 'report')).toBe(false)
  expect(has(text, 'sales', 'hidden')).toBe(false)
  expect(has(text, 'shop', 'sales.report')).toBe(false)
})

test('names are case-insensitive in the list and in calls', () => {
  expect(has('SALES.Report', 'sales', 'rePORT')).toBe(true)
  expect(has('größe', 'SHOP', 'GRÖSSE'.replace('SS', 'ß'))).toBe(true)
})

test('line breaks of all systems and a byte order mark are accepted', () => {
  for (const end of ['\n', '\r\n', '\r']) {
    expect(has(`\ufeffone${end}two${end}`, 'shop', 'one')).toBe(true)
    expect(has(`one${end}two`, 'shop', 'two')).toBe(true)
  }
})

test('names with dots, blanks and punctuation are written in double quotes', () => {
  expect(has('sales."a.b # c"', 'sales', 'a.b # c')).toBe(true)
  expect(has('"a ""b"""', 'shop', 'a "b"')).toBe(true)
  expect(has('"sales.report"', 'shop', 'sales.report')).toBe(true)
  expect(has('"sales.report"', 'sales', 'report')).toBe(false)
  expect(has('"my schema" . "f"', 'my schema', 'f')).toBe(true)
})

test('an empty list allows no function', () => {
  expect(has('', 'shop', 'add')).toBe(false)
})

describe('a malformed line is an error with its line number', () => {
  test.each(['add(int)', 'a.b.c', 'two names', '.add', 'add.', '"open', 'add, sub', 'a"b"'])('%s', line => {
    expect(() => list(`ok\n${line}`)).toThrow(AllowListError)
    expect(() => list(`ok\n${line}`)).toThrow(/^rpc\.txt:2: .* is not a function; expected schema\.function/)
  })
  test('all malformed lines are reported together, up to a limit', () => {
    expect(() => list('a b\nok\nc d')).toThrow(/rpc\.txt:1: .*\nrpc\.txt:3: /)
    expect(() => list('a b\n'.repeat(1_000))).toThrow(/and 980 more$/)
  })
})

test('a quoted name allows exactly the function with that name', () => {
  const name = fc.string({ minLength: 1, unit: 'grapheme' }).filter(text => !/[\r\n\0\u2028\u2029]/.test(text))
  const quoted = (text: string) => `"${text.replaceAll('"', '""')}"`
  fc.assert(
    fc.property(name, name, (schema, of) => {
      expect(has(`${quoted(schema)}.${quoted(of)} # x`, schema, of)).toBe(true)
    }),
  )
})

test('any text is a list or causes one error, in linear time', () => {
  fc.assert(
    fc.property(fc.string(), text => {
      try {
        list(text)
      } catch (error) {
        expect(error).toBeInstanceOf(AllowListError)
      }
    }),
  )
  expect(() => list('"'.repeat(100_001))).toThrow(AllowListError)
  expect(() => list(`${' '.repeat(100_000)}(`)).toThrow(AllowListError)
})

describe('the file', () => {
  test('is read and parsed', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'svc-rpc-'))
    try {
      const file = join(folder, 'rpc.txt')
      await writeFile(file, 'add\n')
      expect((await loadFunctionList(file, 'shop')).has({ schema: 'shop', name: 'add' })).toBe(true)
      await writeFile(file, Buffer.alloc(5 * 1024 * 1024, 'x\n'))
      await expect(loadFunctionList(file, 'shop')).rejects.toThrow('at most 4194304 are read')
      await expect(loadFunctionList(folder, 'shop')).rejects.toThrow('cannot be read')
    } finally {
      await rm(folder, { recursive: true })
    }
  })
  test('that is missing is an error with its path', async () => {
    await expect(loadFunctionList('/nowhere/rpc.txt', 'shop')).rejects.toThrow(
      'rpc_allowlist_path: /nowhere/rpc.txt cannot be read',
    )
  })
})

/**
 * Any text as a request gets a statement or an ordinary error quickly. Everything between the socket and the
 * database is covered – path, query string, notations, tree, check, printer – so no part may throw an
 * internal error, or need more time than is linear in the length of the text.
 */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { GatewayError } from '../../src/errors.ts'
import { parseId, parsePath, printId } from '../../src/rest/path.ts'
import { createCursorCodec } from '../../src/rest/read/cursor.ts'
import { recordingReader } from './reader.ts'

const reader = recordingReader('nothing')

/** Rethrows every error that is not a rejection. */
async function refusal(sent: string): Promise<GatewayError | null> {
  const { error } = await reader(sent)
  if (error === null) return null
  expect(error.status, sent).toBeGreaterThanOrEqual(400)
  expect(error.status, sent).toBeLessThan(500)
  expect(error.message.length, sent).toBeLessThan(1_000)
  return error
}

const PARAMETERS = ['select', 'sort', 'expand', 'distinct', 'search', 'search_columns', 'cursor', 'limit', 'or', 'name']
const WORDS = [
  ...[
    'name',
    'meta',
    'id',
    'orders',
    'nested:',
    'a:',
    '*',
    '->',
    '->>',
    '-',
    '!',
    '.',
    ',',
    ':',
    '"',
    '""',
    '(',
    ')',
    '{',
  ],
  ...[
    '}',
    '\\',
    "'",
    ' ',
    '+',
    '%',
    '%25',
    '%00',
    '%ff',
    '%c3%bc',
    '=',
    '&',
    ';',
    '#',
    '?',
    '/',
    '0',
    '-1',
    'eq.',
    'in.',
  ],
  ...[
    'not.',
    'or(',
    'and(',
    'is_null',
    'asc',
    'desc',
    '.nullsfirst',
    '--',
    '$1',
    '\u{1f600}',
    '\ud800',
    '\u0000',
    '\n',
  ],
]

test('random words in every parameter are answered', async () => {
  const text = fc.array(fc.constantFrom(...WORDS), { maxLength: 12 }).map(words => words.join(''))
  const query = fc
    .array(fc.tuple(fc.constantFrom(...PARAMETERS, ...WORDS), text), { minLength: 1, maxLength: 3 })
    .map(pairs => pairs.map(([name, value]) => `${name}=${value}`).join('&'))
  let answered = 0
  await fc.assert(
    fc.asyncProperty(query, async sent => {
      if ((await refusal(`/api/customers?${sent}`)) === null) answered += 1
    }),
    { numRuns: 3_000 },
  )
  expect(answered).toBeGreaterThan(30)
})

describe('a request of the maximum length is answered quickly', () => {
  /** The HTTP server's limit (`HEADER_BYTES_MAX`). */
  const LONGEST = 32 * 1024
  const fill = (unit: string, start = '', end = '') =>
    start + unit.repeat(Math.floor((LONGEST - start.length - end.length) / unit.length)) + end
  const many = (name: (n: number) => string) => {
    const names: string[] = []
    for (let length = 0, n = 0; length < LONGEST; n += 1) {
      names.push(name(n))
      length += (names.at(-1)?.length ?? 0) + 1
    }
    return names.join(',')
  }
  test.each<[what: string, query: string]>([
    ['parameters', fill('&')],
    ['parameters with names', fill('a=1&')],
    ['a name', `${fill('x')}=1`],
    ['dots in a name', fill('a.', '', 'eq=1')],
    ['a value', `name=${fill('x')}`],
    ['percent signs', `name=${fill('%25')}`],
    ['group brackets', `or=${'('.repeat(LONGEST / 2)}${')'.repeat(LONGEST / 2)}`],
    ['groups', `or=${fill('or(', '(')}`],
    ['closed groups', `or=(${'or('.repeat(6_000)}name.eq.1${')'.repeat(6_001)}`],
    ['quotes in a group', `or=${fill('"', '(', ')')}`],
    ['quoted names in a group', `or=${fill('"a".', '(', ')')}`],
    ['dots in a group', `or=${fill('.', '(', ')')}`],
    ['not in a group', `or=${fill('not.', '(', ')')}`],
    ['back-slashes in a group', `or=${fill('\\', '(name.eq."', '")')}`],
    ['list', `id=in.${fill('1,', '(', ')')}`],
    ['quoted list', `id=in.${fill('"a",', '(', ')')}`],
    ['open quote in a list', `id=in.${fill('\\"', '("', ')')}`],
    ['selected names', `select=${many(n => n.toString(36))}`],
    ['aliases', `select=${many(n => `${n.toString(36)}:id`)}`],
    ['steps', `select=${fill('->a', 'meta')}`],
    ['commas', `select=${fill(',')}`],
    ['sort', `sort=${many(n => n.toString(36))}`],
    ['minus', `sort=${fill('-')}`],
    ['searched columns', `search=x&search_columns=${many(n => n.toString(36))}`],
    ['one searched column', `search=x&search_columns=${fill('name,')}`],
    ['expand', `expand=${fill('nested:orders,')}`],
    ['expand with aliases', `expand=${many(n => `${n.toString(36)}:nested:orders`)}`],
    ['expand deep', `expand=${fill('nested:orders.')}`],
    ['colons', `expand=${fill(':')}`],
    ['a cursor', `cursor=${fill('W')}`],
    ['digits', `limit=${fill('9')}`],
  ])('%s', async (_, query) => {
    const started = performance.now()
    await refusal(`/api/customers?${query}`)
    // On an idle machine most take 1 to 20 ms, and the slowest 100.
    expect(performance.now() - started).toBeLessThan(3_000)
  })
  test('as a path', async () => {
    expect((await refusal(`/api/${fill('x')}`))?.status).toBe(404)
    expect((await refusal(`/api/customers/1/${fill('x')}`))?.status).toBe(404)
    expect(await refusal(`/api/customers/${fill('1')}`)).toMatchObject({ status: 404, message: /^.{0,200}$/ })
  })
})

test('random paths have a route, no route, or are rejected', () => {
  const part = fc.constantFrom(
    '/',
    '/api',
    '/api/',
    'a',
    '%2f',
    '%',
    '%zz',
    '%00',
    '..',
    ',',
    '!',
    '%2525',
    '_schema',
    'ü',
  )
  fc.assert(
    fc.property(fc.array(part, { maxLength: 8 }), parts => {
      try {
        parsePath(`/${parts.join('')}`)
      } catch (error) {
        expect(error).toMatchObject({ name: 'GatewayError', code: 'PARSE_ERROR' })
      }
    }),
    { numRuns: 2_000 },
  )
})

test('a printed id is parsed to the same key values', () => {
  const value = fc.string({
    unit: fc.constantFrom(',', '%', '%2C', '%25', '/', 'a', ' ', 'ü', '+', '25', '2c'),
    minLength: 1,
  })
  fc.assert(
    fc.property(fc.array(value, { minLength: 1, maxLength: 3 }), values => {
      const path = parsePath(`/api/t/${printId(values)}`)
      expect(path).toMatchObject({ kind: 'one' })
      expect(parseId(path?.kind === 'one' ? path.id : '', values)).toEqual(values)
    }),
  )
})

describe('cursors', () => {
  const codec = createCursorCodec('a key')
  const values = fc.array(fc.option(fc.string({ unit: 'binary', maxLength: 8 }).filter(text => !text.includes('\0'))), {
    minLength: 1,
    maxLength: 4,
  })
  const accepts = (cursor: string, scope: string) => {
    try {
      const decoded = codec.decode(cursor)
      codec.verify(scope, decoded.digest, decoded.values)
      return decoded.values
    } catch (error) {
      expect(error).toMatchObject({ name: 'GatewayError', code: 'PARSE_ERROR' })
      return null
    }
  }
  test('are accepted only unmodified, and only for the list they were made for', () => {
    fc.assert(
      fc.property(values, fc.nat(), fc.constantFrom(...'AZaz09-_.=+/ \n'), (position, at, letter) => {
        const cursor = codec.encode('orders\nid', position) ?? ''
        expect(accepts(cursor, 'orders\nid')).toEqual(position)
        expect(accepts(cursor, 'orders\n-id')).toBeNull()
        const place = at % (cursor.length + 1)
        expect(accepts(cursor.slice(0, place) + letter + cursor.slice(place), 'orders\nid')).toBeNull()
        const other = cursor.slice(0, place) + letter + cursor.slice(place + 1)
        expect(accepts(other, 'orders\nid')).toEqual(other === cursor ? position : null)
        expect(accepts(cursor.slice(0, place), 'orders\nid')).toEqual(place === cursor.length ? position : null)
      }),
      { numRuns: 500 },
    )
  })
  test.each([
    '"x"',
    'null',
    '{}',
    '[]',
    '["a"]',
    '["a",1]',
    '[1,"a"]',
    '["a",["b"]]',
    '["a",{}]',
    '["a","\\u0000"]',
    '['.repeat(4_000),
  ])('are rejected with the content %s', json => {
    expect(accepts(Buffer.from(json).toString('base64url'), 'orders\nid')).toBeNull()
  })
  test('with the same JSON in another notation are different cursors', () => {
    const cursor = codec.encode('orders\nid', ['1']) ?? ''
    const spaced = Buffer.from(cursor, 'base64url').toString().replace(',', ', ')
    expect(accepts(Buffer.from(spaced).toString('base64url'), 'orders\nid')).toBeNull()
    expect(accepts(`${cursor}=`, 'orders\nid')).toBeNull()
  })
})

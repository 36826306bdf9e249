import { expect, test } from 'vitest'
import { parseSnapshot, printToken, readToken, TOKEN_OPEN_MAX } from './snapshot.ts'

test('a snapshot is parsed as PostgreSQL prints it', () => {
  expect(parseSnapshot('738:738:')).toEqual({ xmin: 738n, xmax: 738n, open: [] })
  expect(parseSnapshot('4294967296:4294967300:4294967296,4294967299')).toEqual({
    ...{ xmin: 4294967296n, xmax: 4294967300n, open: [4294967296n, 4294967299n] },
  })
})

test.each(['738:738:', '738:741:738,740', '9007199254740993:9007199254740999:9007199254740995'])(
  'the token of %s is that snapshot',
  text => {
    const token = printToken('epoch', parseSnapshot(text))
    expect(token).toMatch(/^[\w.-]+$/)
    expect(readToken(token, 'epoch')).toEqual(parseSnapshot(text))
    expect(readToken(token, 'other')).toBeNull()
  },
)

test('the token of a snapshot with many open transactions is an earlier position', () => {
  const open = Array.from({ length: TOKEN_OPEN_MAX + 1 }, (_, n) => 100n + BigInt(n) * 2n)
  const token = printToken('e', { xmin: 100n, xmax: 500n, open })
  expect(readToken(token, 'e')).toEqual({ xmin: 100n, xmax: 100n, open: [] })
})

test.each([
  '',
  'e',
  'e.1',
  'e..1',
  'e.1.-1',
  'e.1.2.2',
  'e.zzzzzzzzzzzzz.1',
  'e.1.1 ',
  'e.A.1',
  `e.1.z${'.1'.repeat(TOKEN_OPEN_MAX + 1)}`,
])('"%s" is not a token', token => {
  expect(readToken(token, 'e')).toBeNull()
})

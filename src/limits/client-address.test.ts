import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseIp, toAddress } from './address.ts'
import { createClientAddress, createProxyCheck } from './client-address.ts'

const PROXY = '10.0.0.1'
const CLIENT = '203.0.113.7'

/** The address as words, behind `trusted` proxies. */
function seen(socket: string | undefined, forwarded?: string, trusted: readonly string[] = ['10.0.0.0/8']): number[] {
  return [...createClientAddress(trusted)(socket, forwarded)]
}

function words(text: string): number[] {
  const ip = parseIp(text)
  if (ip === null) throw new Error(`${text} is not an address`)
  return [...toAddress(ip)]
}

describe('without trusted proxies', () => {
  test('the client address is that of the socket, whatever the header contains', () => {
    expect(seen(CLIENT, '198.51.100.1', [])).toEqual(words(CLIENT))
  })
  test('an IPv4 client of a socket for both families is the same client', () => {
    expect(seen(`::ffff:${CLIENT}`, undefined, [])).toEqual(words(CLIENT))
  })
  test('a socket that has been closed has no address', () => {
    expect(seen(undefined)).toEqual([0, 0, 0, 0])
  })
})

describe('behind trusted proxies', () => {
  test.each([
    ['no header', undefined, PROXY],
    ['an empty header', '', PROXY],
    ['nothing but commas', ' , ,\t,', PROXY],
    ['the client', CLIENT, CLIENT],
    ['the client through two proxies', `${CLIENT}, 10.9.9.9`, CLIENT],
    ['what the client forged itself', `1.1.1.1, 127.0.0.1, ${CLIENT}, 10.9.9.9`, CLIENT],
    ['a trusted address that the client forged', `10.1.1.1,${CLIENT}`, CLIENT],
    ['trusted ones all the way', '10.1.1.1, 10.2.2.2', '10.1.1.1'],
    ['empty elements', `, ${CLIENT},, 10.9.9.9 ,`, CLIENT],
    ['a port', `${CLIENT}:4711`, CLIENT],
    ['IPv6', '2001:db8::7', '2001:db8::7'],
    ['brackets', '[2001:db8::7]', '2001:db8::7'],
    ['brackets and a port', '[2001:db8::7]:65535', '2001:db8::7'],
    ['a zone', 'fe80::7%eth0', 'fe80::7'],
    ['a zone in brackets', '[fe80::7%25eth0]:1', 'fe80::7'],
    ['IPv4 mapped', `::ffff:${CLIENT}`, CLIENT],
    ['a mapped proxy', `${CLIENT}, ::ffff:10.9.9.9`, CLIENT],
  ])('%s', (_, header, expected) => {
    expect(seen(PROXY, header)).toEqual(words(expected))
  })

  test.each([
    ...['unknown', '_secret', '-', '"[2001:db8::7]"', 'for=203.0.113.7', '203.0.113.7/32', '203.0.113.7;', '203.0.113'],
    ...['203.0.113.7:', '203.0.113.7:123456', '203.0.113.7:x', '[203.0.113.7]', '[2001:db8::7', '2001:db8::7]', '[]'],
    ...['[2001:db8::7]4711', '[2001:db8::7]:', '[2001:db8::7]:-1', '[2001:db8::7]:123456', ':', '\u00a0', '10.0.0.010'],
  ])('an entry "%s" is not an address, so the proxy counts as the client', entry => {
    expect(seen(PROXY, `${CLIENT}, ${entry}, 10.9.9.9`)).toEqual(words('10.9.9.9'))
    expect(seen(PROXY, `${CLIENT}, ${entry}`)).toEqual(words(PROXY))
  })

  test('the header of a client that is not a proxy is ignored', () => {
    expect(seen(CLIENT, '198.51.100.1')).toEqual(words(CLIENT))
  })

  test.each([
    [['10.0.0.1'], '10.0.0.1', '10.0.0.2'],
    [['10.0.0.0/31'], '10.0.0.1', '10.0.0.2'],
    [['172.16.0.0/12'], '172.31.255.255', '172.32.0.0'],
    [['0.0.0.0/0'], '10.0.0.1', '::1'],
    [['::/0'], '::1', '10.0.0.1'],
    [['::1'], '::1', '::2'],
    [['2001:db8::/33'], '2001:db8:7fff::', '2001:db8:8000::'],
    [['2001:db8::/64'], '2001:db8::ffff:1', '2001:db8:0:1::'],
    [['2001:db8::8/125'], '2001:db8::f', '2001:db8::10'],
    [['::ffff:10.0.0.0/104'], '10.255.0.1', '11.0.0.1'],
    [['10.0.0.1', 'fd00::/8'], 'fdff::1', 'fe00::1'],
  ])('%j trusts %s and not %s', (trusted, proxy, other) => {
    expect(seen(proxy, CLIENT, trusted)).toEqual(words(CLIENT))
    expect(seen(other, CLIENT, trusted)).toEqual(words(other))
  })

  test('at most a hundred entries are read', () => {
    const chain = (proxies: number) => [CLIENT, ...Array.from({ length: proxies }, () => '10.9.9.9')].join(',')
    expect(seen(PROXY, chain(99))).toEqual(words(CLIENT))
    expect(seen(PROXY, chain(100))).toEqual(words('10.9.9.9'))
    expect(seen(PROXY, chain(5_000))).toEqual(words('10.9.9.9'))
  })

  test('a header of any length is cheap to read', () => {
    const of = createClientAddress(['10.0.0.0/8', 'fd00::/8'])
    const headers = [',', ':', '[', '%', 'f', '10.9.9.9,', '[fd00::1],', 'fd00::%,', ' '].map(piece =>
      piece.repeat(65_536 / piece.length),
    )
    const began = performance.now()
    for (let i = 0; i < 100; i++) for (const header of headers) of(PROXY, header)
    // About ten microseconds each; a scan of the whole header for each entry would take a thousand times
    // longer.
    expect(performance.now() - began).toBeLessThan(2_000)
  })

  test('entries to the left of the first untrusted address are ignored', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 100 }), forged => {
        expect(seen(PROXY, `${forged},${CLIENT}, 10.9.9.9`)).toEqual(words(CLIENT))
      }),
    )
  })

  test('any header is read without an error', () => {
    const pieces = fc.constantFrom(',', ' ', ':', '::', '[', ']', '%', '.', '1', '10.0.0.1', 'f', 'unknown')
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 30 }), parts => {
        expect(seen(PROXY, parts.join(''))).toHaveLength(4)
      }),
      { numRuns: 2_000 },
    )
  })
})

test('a trusted proxy is recognized by the address of its socket', () => {
  const isProxy = createProxyCheck(['10.0.0.0/8', '2001:db8::/32'])
  expect(['10.1.2.3', '::ffff:10.1.2.3', '2001:db8::1'].map(isProxy)).toEqual([true, true, true])
  expect(['192.0.2.1', '::1', '', undefined].map(isProxy)).toEqual([false, false, false, false])
  expect(createProxyCheck([])('10.1.2.3')).toBe(false)
})

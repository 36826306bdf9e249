import { isIP } from 'node:net'
import fc from 'fast-check'
import ipaddr from 'ipaddr.js'
import { expect, test } from 'vitest'
import { addressKey, type IpAddress, isIPv4, parseIp, toAddress } from './address.ts'

/** The address as four words, or null. */
function parsed(text: string): readonly number[] | null {
  const ip = parseIp(text)
  return ip === null ? null : [...toAddress(ip)]
}

test.each([
  ['192.0.2.1', [0, 0, 0xffff, 0xc0000201]],
  ['255.255.255.255', [0, 0, 0xffff, 0xffffffff]],
  ['0.0.0.0', [0, 0, 0xffff, 0]],
  ['::', [0, 0, 0, 0]],
  ['::1', [0, 0, 0, 1]],
  ['1::', [0x10000, 0, 0, 0]],
  ['2001:DB8::a:0:1', [0x20010db8, 0, 0xa, 1]],
  ['1:2:3:4:5:6:7:8', [0x10002, 0x30004, 0x50006, 0x70008]],
  ['1:2:3:4:5:6:7::', [0x10002, 0x30004, 0x50006, 0x70000]],
  ['::2:3:4:5:6:7:8', [2, 0x30004, 0x50006, 0x70008]],
  ['::ffff:192.0.2.1', [0, 0, 0xffff, 0xc0000201]],
  ['64:ff9b::192.0.2.1', [0x64ff9b, 0, 0, 0xc0000201]],
  ['fe80::1%eth0', [0xfe800000, 0, 0, 1]],
  ['fe80::1%a:b.c%', [0xfe800000, 0, 0, 1]],
])('an address is parsed to four words: %s', (text, words) => {
  expect(parsed(text)).toEqual(words)
})

test.each([
  ...['', ' ', 'unknown', '_hidden', 'localhost', '1', '127.1', '1.2.3', '1.2.3.4.5', '1.2.3.4.', '.1.2.3.4', '1..2.3'],
  ...[
    '256.1.1.1',
    '1.1.1.1000',
    '01.2.3.4',
    '1.2.3.04',
    '1.2.3.4%eth0',
    '1.2.3.4:80',
    ' 1.2.3.4',
    '1.2.3.4 ',
    '１.2.3.4',
  ],
  ...[':', ':::', ':1', '1:', '1:2', '1:2:3:4:5:6:7', '1:2:3:4:5:6:7:', '1:2:3:4:5:6:7:8:9', '1:2:3:4:5:6:7:8::'],
  ...[
    '1::2::3',
    '::1::',
    '12345::',
    '::g',
    '::1%',
    '%eth0',
    '1:2:3:4:5:6:7:1.2.3.4',
    '::1.2.3.4:1',
    '::01.2.3.4',
    '::ffff:1.2.3.010',
    '::1.2.3',
    '[::1]',
    '::1 ',
  ],
])('"%s" is not an address', text => {
  expect(parsed(text)).toBeNull()
})

test('all spellings of an address are equal', () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 16, maxLength: 16 }), bytes => {
      const words = [0, 4, 8, 12].map(at => Buffer.from(bytes).readUInt32BE(at))
      const address = new ipaddr.IPv6([...bytes])
      for (const text of [address.toRFC5952String(), address.toNormalizedString()]) {
        expect(parsed(text)).toEqual(words)
        expect(parsed(text.toUpperCase())).toEqual(words)
      }
    }),
  )
})

test('texts that Node.js rejects are rejected', () => {
  const characters = fc.constantFrom(':', '::', '.', '0', '1', 'f', '255', '1.2.3.4', 'ffff', 'g')
  fc.assert(
    fc.property(fc.array(characters, { maxLength: 12 }), parts => {
      const text = parts.join('')
      if (parsed(text) !== null) expect(isIP(text)).not.toBe(0)
    }),
    { numRuns: 5_000 },
  )
})

test('IPv4 addresses are recognized', () => {
  const is = (text: string) => isIPv4(addressOf(text))
  expect(['1.2.3.4', '::ffff:1.2.3.4', '::ffff:0:0'].map(is)).toEqual([true, true, true])
  expect(['::1', '::1.2.3.4', '1::ffff:1.2.3.4', '0:1::ffff:0:0'].map(is)).toEqual([false, false, false, false])
})

test('an IPv4 address is counted as a whole, and an IPv6 address by its first 64 bits', () => {
  const key = (text: string) => addressKey(addressOf(text))
  expect(key('192.0.2.1')).toBe(key('::ffff:192.0.2.1'))
  expect(key('2001:db8:1:2::1')).toBe(key('2001:db8:1:2:ffff::2'))
  expect(new Set(['192.0.2.1', '192.0.2.2', '::1', '2001:db8:1:2::1', '2001:db8:1:3::1'].map(key)).size).toBe(5)
})

function addressOf(text: string): IpAddress {
  const ip = parseIp(text)
  if (ip === null) throw new Error(`${text} is not an address`)
  return toAddress(ip)
}

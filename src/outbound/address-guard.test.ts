/**
 * docs/guides/webhooks.md#allowed-addresses: private, loopback, link-local and metadata addresses are
 * refused in every notation.
 */
import { describe, expect, test } from 'vitest'
import { createAddressGuard } from './address-guard.ts'

const guard = createAddressGuard({ allow: [], loopback: 'refused' })

const PUBLIC = [
  '8.8.8.8',
  '93.184.216.34',
  '172.32.0.1',
  '2606:4700:4700::1111',
  '[2a00:1450:4001:80b::200e]',
  '::ffff:8.8.8.8',
  '64:ff9b::808:808',
]

test.each(PUBLIC)('%s is allowed', address => {
  expect(guard.refusalReason(address)).toBeNull()
})

const REFUSED: Readonly<Record<string, string>> = {
  '127.0.0.1': 'loopback',
  '127.255.255.254': 'loopback',
  '0.0.0.0': 'unspecified',
  '0.1.2.3': 'unspecified',
  '10.0.0.1': 'private',
  '172.16.0.1': 'private',
  '172.31.255.255': 'private',
  '192.168.1.1': 'private',
  '100.64.0.1': 'carrier-grade NAT',
  '100.100.100.200': 'carrier-grade NAT',
  '169.254.169.254': 'link-local',
  '168.63.129.16': 'metadata',
  '192.0.0.192': 'reserved',
  '192.0.2.1': 'reserved',
  '198.18.0.1': 'reserved',
  '224.0.0.1': 'multicast',
  '240.0.0.1': 'reserved',
  '255.255.255.255': 'broadcast',
  '::': 'unspecified',
  '::1': 'loopback',
  '[::1]': 'loopback',
  'fe80::1': 'link-local',
  'fe80::1%eth0': 'link-local',
  'fc00::1': 'private',
  'fd00:ec2::254': 'private',
  'ff02::1': 'multicast',
  '::ffff:127.0.0.1': 'loopback',
  '::ffff:7f00:1': 'loopback',
  '0:0:0:0:0:ffff:a9fe:a9fe': 'link-local',
  '64:ff9b::7f00:1': 'loopback',
  '64:ff9b::169.254.169.254': 'link-local',
  '2002:7f00:1::': '6to4',
  '2002:808:808::1': '6to4',
  '2001:0:4136:e378:8000:63bf:3fff:fdd2': 'teredo',
  '2001:db8::1': 'reserved',
}

test.each(Object.entries(REFUSED))('%s is refused as %s', (address, kind) => {
  expect(guard.refusalReason(address)).toContain(` is a ${kind} address, which is not allowed for webhooks`)
})

/** Addresses without a special name are refused because they are not allocated. */
test.each(['::127.0.0.1', '::ffff:0:127.0.0.1', '64:ff9b:1::1', 'fec0::1', '100::1', '4000::1', '3fff::1', '5f00::1'])(
  '%s is refused',
  address => {
    expect(guard.refusalReason(address)).not.toBeNull()
  },
)

test('text that is not an address is refused', () => {
  expect(guard.refusalReason('example.com')).toBe('"example.com" is not an IP address')
  expect(guard.refusalReason('')).toBe('"" is not an IP address')
})

describe('webhook_allow', () => {
  const listed = createAddressGuard({
    allow: ['10.1.0.0/16', '::1', '::ffff:192.168.0.0/112', '169.254.169.254'],
    loopback: 'refused',
  })

  test.each(['10.1.2.3', '::ffff:10.1.2.3', '::1', '192.168.77.1', '169.254.169.254'])('contains %s', address => {
    expect(listed.refusalReason(address)).toBeNull()
  })

  test.each(['10.2.0.1', '127.0.0.1', '172.16.0.1', 'fd00::1'])('does not contain %s', address => {
    expect(listed.refusalReason(address)).not.toBeNull()
  })
})

test('in development, loopback is allowed and nothing else', () => {
  const own = createAddressGuard({ allow: [], loopback: 'allowed' })
  expect([own.refusalReason('127.0.0.1'), own.refusalReason('::1'), own.refusalReason('::ffff:127.0.0.1')]).toEqual([
    null,
    null,
    null,
  ])
  expect(own.refusalReason('0.0.0.0')).not.toBeNull()
  expect(own.refusalReason('10.0.0.1')).not.toBeNull()
})

describe('the host of a URL', () => {
  /** The notations that `inet_aton` accepts; URL parsing normalizes them. */
  test.each([
    '127.1',
    '0x7f.1',
    '2130706433',
    '017700000001',
    '127.0.0.1.',
    '[::ffff:127.0.0.1]',
    '①②⑦.0.0.1',
    'localhost',
    'a.localhost.',
    'LocalHost',
  ])('%s is the machine itself', host => {
    expect(guard.hostRefusalReason(new URL(`http://${host}/`).hostname)).toMatch(/loopback/)
  })

  test('a name is checked when it is resolved', () => {
    expect(guard.hostRefusalReason('example.com')).toBeNull()
    expect(guard.hostRefusalReason('localhost.example.com')).toBeNull()
  })
})

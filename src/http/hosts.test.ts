/**
 * A foreign `Host` or `Origin` is rejected: docs/guides/agents.md#access-from-other-machines,
 * docs/reference/limits.md#development-mode.
 */
import { expect, test } from 'vitest'
import { createHosts } from './hosts.ts'

const hosts = createHosts(['0.0.0.0', 'Tools.Example.com', '2001:db8::1'])
const isOurs = (host: string | undefined, origin?: string, local = '192.0.2.7') => hosts.isOurs(host, origin, local)

test.each([
  'localhost',
  'localhost:8090',
  'LocalHost',
  '127.0.0.1:1',
  '[::1]:8090',
  'tools.example.com',
  'TOOLS.example.com:443',
  '[2001:db8::1]:80',
  '[2001:DB8:0::1]',
  '192.0.2.7:8090',
  '0.0.0.0:8090',
])('the host is accepted: %s', host => {
  expect(isOurs(host)).toBe(true)
  expect(isOurs(host, `https://${host}`)).toBe(true)
})

test.each([
  undefined,
  '',
  ':8090',
  'example.com',
  'localhost.example.com',
  'xlocalhost',
  'localhost:80:80',
  'user@localhost',
  'evil.example#localhost',
  'evil.example/localhost',
  'evil.example\\localhost',
  'localhost evil.example',
  '192.0.2.8',
  '127.0.0.2',
  '::1',
])('the host is rejected: %s', host => {
  expect(isOurs(host)).toBe(false)
})

test.each([
  'http://evil.example',
  'https://localhost.evil.example',
  'null',
  '',
  'localhost',
  'file://',
  'chrome-extension://abc',
  'https://evil.example/?localhost',
])('the origin is rejected: %s', origin => {
  expect(isOurs('localhost', origin)).toBe(false)
})

test('an IPv4-mapped local address is accepted', () => {
  expect(isOurs('192.0.2.7', undefined, '::ffff:192.0.2.7')).toBe(true)
  expect(isOurs('[fe80::1]', undefined, 'fe80::1')).toBe(true)
})

test('a closed socket without a local address is handled', () => {
  expect(hosts.isOurs('192.0.2.7', undefined, undefined)).toBe(false)
  expect(hosts.isOurs('localhost', undefined, undefined)).toBe(true)
})

/** URLs that the address guard will refuse are reported as early as possible. */
import { expect, test } from 'vitest'
import { createAddressGuard } from '../outbound/address-guard.ts'
import type { Trigger } from './trigger.ts'
import { undeliverable } from './undeliverable.ts'

const guard = createAddressGuard({ allow: ['10.0.0.0/8'], loopback: 'refused' })

const problemsOf = (url: string, enabled = true) =>
  undeliverable([{ name: 'hook', enabled, url: new URL(url) } as Trigger], guard).map(({ message }) => message)

test.each([
  ['http://169.254.169.254/latest', /^Webhooks of "hook" cannot be delivered: 169\.254\.169\.254 is a link-local/],
  ['http://0x7f000001/', /127\.0\.0\.1 is a loopback address/],
  ['http://localhost:8080/', /loopback address/],
])('a target that will be refused is reported: %s', (url, message) => {
  expect(problemsOf(url)).toEqual([expect.stringMatching(message)])
})

test.each(['https://hooks.example/', 'http://[::ffff:10.0.0.1]/', 'http://8.8.8.8/'])('%s is not reported', url => {
  expect(problemsOf(url)).toEqual([])
})

test('a disabled trigger is not reported', () => {
  expect(problemsOf('http://127.0.0.1/', false)).toEqual([])
})

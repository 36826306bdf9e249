/** docs/guides/webhooks.md#verify-signatures: signatures follow Standard Webhooks. */
import { Webhook } from 'standardwebhooks'
import { expect, test } from 'vitest'
import { secretProblem, signatureHeaders } from './signature.ts'

const secret = (byte: number, size = 32) => Buffer.alloc(size, byte).toString('base64')

test('the example of the Standard Webhooks specification is signed as documented', () => {
  const headers = signatureHeaders(
    ['MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'],
    'msg_p5jXN8AQM9LWM0D4loKWxJek',
    1_614_265_330_999,
    Buffer.from('{"test": 2432232314}'),
  )
  expect(headers).toEqual({
    'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
    'webhook-timestamp': '1614265330',
    'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
  })
})

test('each of several secrets verifies, also for a body that is not ASCII', () => {
  const body = Buffer.from('{"name":"Zoë 😀"}')
  const headers = signatureHeaders([secret(1), `whsec_${secret(2)}`], 'msg_1', Date.now(), body)
  expect(headers['webhook-signature']?.split(' ')).toHaveLength(2)
  for (const byte of [1, 2]) expect(new Webhook(secret(byte)).verify(body, headers)).toEqual({ name: 'Zoë 😀' })
  expect(() => new Webhook(secret(3)).verify(body, headers)).toThrow()
})

test('without a secret there is an id but no signature', () => {
  expect(signatureHeaders([], 'msg_1', 1_000, Buffer.from('{}'))).toEqual({
    'webhook-id': 'msg_1',
    'webhook-timestamp': '1',
  })
})

test('a secret is the base64 encoding of 24 to 64 bytes', () => {
  for (const size of [24, 64])
    expect([secretProblem(secret(1, size)), secretProblem(`whsec_${secret(1, size)}`)]).toEqual([null, null])
  for (const bad of [
    secret(1, 23),
    secret(1, 65),
    'a secret',
    '',
    'whsec_',
    `${secret(1)}!`,
    secret(1).replace('=', ''),
  ]) {
    expect(secretProblem(bad)).toMatch(/^expected base64 of 24 to 64 random bytes/)
  }
})

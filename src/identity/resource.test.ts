import { describe, expect, test } from 'vitest'
import { createProtectedResource, type RequestAddress, type ResourceParts } from './resource.ts'

const OWN = 'http://127.0.0.1:8080'
const resource = (more: Partial<ResourceParts> = {}) =>
  createProtectedResource({
    ...{ issuers: ['https://id.example', 'name'], publicUrl: null, ownUrl: () => OWN },
    isProxy: address => address === '10.0.0.1',
    ...more,
  })

const asked = (headers: RequestAddress['headers'], remoteAddress = '192.0.2.1'): RequestAddress => ({
  headers,
  connection: { remoteAddress },
})

test('without an issuer, the metadata document does not exist', () => {
  expect(resource({ issuers: [] })).toBeNull()
})

test('issuers that are URLs are listed as authorization servers', () => {
  expect(resource()?.document(asked({}))).toEqual({
    resource: OWN,
    authorization_servers: ['https://id.example'],
    bearer_methods_supported: ['header'],
  })
  expect(resource({ issuers: ['name'] })?.document(asked({}))).toEqual({
    resource: OWN,
    bearer_methods_supported: ['header'],
  })
})

test('public_url is the resource, and its path follows the well-known path', () => {
  const found = resource({ publicUrl: 'https://shop.example/data' })
  expect(found?.paths).toEqual(['/.well-known/oauth-protected-resource', '/.well-known/oauth-protected-resource/data'])
  const from = asked({ host: 'evil.example', 'x-forwarded-host': 'evil.example' }, '10.0.0.1')
  expect(found?.document(from)).toMatchObject({ resource: 'https://shop.example/data' })
  expect(found?.metadataUrl(from)).toBe('https://shop.example/.well-known/oauth-protected-resource/data')
})

describe('without public_url', () => {
  test.each([{ host: 'evil.example' }, { 'x-forwarded-host': 'evil.example' }, { 'x-forwarded-proto': 'https' }])(
    'a %j header of a client is ignored',
    headers => {
      expect(resource()?.document(asked(headers))).toMatchObject({ resource: OWN })
      expect(resource()?.document({ headers, connection: undefined })).toMatchObject({ resource: OWN })
    },
  )

  test.each<[RequestAddress['headers'], string]>([
    [{ host: 'shop.example' }, 'http://shop.example'],
    [
      { host: 'gateway:8080', 'x-forwarded-host': 'shop.example', 'x-forwarded-proto': 'https' },
      'https://shop.example',
    ],
    [
      { 'x-forwarded-host': 'shop.example:8443, other', 'x-forwarded-proto': 'https,http' },
      'https://shop.example:8443',
    ],
    [{ host: '[::1]:80' }, 'http://[::1]'],
    [{ host: 'shop.example/x' }, OWN],
    [{ host: 'user@shop.example' }, OWN],
    [{ host: 'shop.example"' }, OWN],
    [{ host: 'shop.example', 'x-forwarded-proto': 'javascript' }, OWN],
    [{ host: 'shop.example:99999' }, OWN],
    [{}, OWN],
  ])('the URL that a trusted proxy received the request for is the resource: %j', (headers, expected) => {
    expect(resource()?.document(asked(headers, '10.0.0.1'))).toMatchObject({ resource: expected })
    expect(resource()?.metadataUrl(asked(headers, '10.0.0.1'))).toBe(`${expected}/.well-known/oauth-protected-resource`)
  })
})

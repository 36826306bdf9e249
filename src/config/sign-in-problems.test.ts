/** `[gateway.console]` with the identity providers: parsing and rejection. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { loadConfig } from './load.ts'
import { ConfigError } from './problem.ts'
import { signInIssuer } from './sign-in-problems.ts'

let folder = ''
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'svc-sign-in-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

const CONSOLE = '[gateway.console]\nenabled = true\n'
const issuerTable = (issuer: string) => `[[gateway.issuers]]\nissuer = "${issuer}"\njwks_url = "https://id.example/k"\n`
const ONE = issuerTable('https://id.example')
const TWO = ONE + issuerTable('https://other.example')

function load(text: string) {
  writeFileSync(join(folder, 'svc.toml'), text)
  const environment = { DATABASE_URL: 'postgresql://localhost/app', JWT_SECRET: 'a-secret-of-at-least-32-characters' }
  return loadConfig({ environment, workingDirectory: folder }).config.gateway
}

test('the only issuer is used, or the one that is named', () => {
  expect(signInIssuer(load(`${CONSOLE}oidc_client_id = "c"\n${ONE}`))).toBe('https://id.example')
  const named = `${CONSOLE}oidc_client_id = "c"\noidc_issuer = "https://other.example"\n`
  expect(signInIssuer(load(named + TWO))).toBe('https://other.example')
  expect(signInIssuer(load(`${CONSOLE}${ONE}`))).toBeNull()
})

test.each([
  ['oidc_client_id = "c"\n', 'oidc_client_id: needs an identity provider, configured as [[gateway.issuers]]'],
  [
    `oidc_client_id = "c"\n${TWO}`,
    'oidc_client_id: needs oidc_issuer, because there are several issuers: "https://id.example", ' +
      '"https://other.example"',
  ],
  [
    `oidc_issuer = "https://no.example"\noidc_client_id = "c"\n${ONE}`,
    'oidc_issuer: expected the issuer of one of [[gateway.issuers]] ("https://id.example"), not "https://no.example"',
  ],
  [
    `oidc_issuer = "https://id.example"\n${ONE}`,
    'oidc_issuer: needs oidc_client_id, the id under which the console is registered at the identity provider',
  ],
  [
    `oidc_parameters = { audience = "a" }\n${ONE}`,
    'oidc_parameters: needs oidc_client_id, the id under which the console is registered at the identity provider',
  ],
  [
    `oidc_parameters = { audience = "a", state = "s", nonce = "n" }\noidc_client_id = "c"\n${ONE}`,
    'oidc_parameters: state, nonce cannot be set',
  ],
  [
    `oidc_client_id = "c"\n${issuerTable('http://id.example')}`,
    'oidc_client_id: needs an issuer that is an https:// URL, or http:// on a loopback address, not ' +
      '"http://id.example"',
  ],
])('%j is rejected', (text, message) => {
  let problem: unknown = null
  try {
    load(CONSOLE + text)
  } catch (error) {
    problem = error
  }
  expect(problem instanceof ConfigError && problem.message).toBe(`svc.toml:3: gateway.console.${message}`)
})

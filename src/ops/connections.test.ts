/**
 * The findings of the start and of `svc check` about connection URLs: all problems at once, before
 * connecting.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import type { Config } from '../config/config.ts'
import { loadConfig } from '../config/load.ts'
import { connectionFindings, connectionPolicies } from './connections.ts'

const folder = mkdtempSync(join(tmpdir(), 'svc-connections-'))
afterAll(() => rmSync(folder, { recursive: true }))

function config(toml: string, environment: Readonly<Record<string, string>> = {}): Config {
  writeFileSync(join(folder, 'svc.toml'), `[gateway]\n${toml}`)
  return loadConfig({ environment, workingDirectory: folder }).config
}

test('every problem of both URLs is reported', async () => {
  const findings = await connectionFindings(
    config(`database_url = "postgres://app@db/d?sslmood=require&connect_timeout=0"
            realtime_database_url = "postgres://app@db/d?channel_binding=on"`),
  )
  expect(findings).toEqual([
    {
      level: 'error',
      message:
        'The database cannot be reached: the database URL is invalid: unknown parameter "sslmood"; ' +
        'did you mean sslmode?; connect_timeout=0 is not a number of seconds from 1 to 600',
      fix: 'See database_url (DATABASE_URL).',
    },
    {
      level: 'error',
      message:
        'The gateway cannot listen for schema changes: the database URL is invalid: channel_binding=on is not ' +
        'one of disable, prefer, require',
      fix: 'See realtime_database_url.',
    },
  ])
})

test('a valid Kerberos parameter without Kerberos is a warning, an invalid one an error', async () => {
  const url = 'postgres://app@192.0.2.1/d'
  expect(await connectionFindings(config(`database_url = "${url}?gss_service=postgres"`))).toEqual([
    {
      level: 'warning',
      message: 'database_url: gss_service has no effect because Kerberos is not enabled',
      fix: 'Add auth_mode=gssapi_only or auth_gssapi=true, or remove the parameter.',
    },
  ])
  expect(await connectionFindings(config(`database_url = "${url}?gss_connect_retries=x"`))).toMatchObject([
    { level: 'error', message: expect.stringContaining('gss_connect_retries=x is not a number of retries') },
  ])
})

test('an empty configuration has no findings and causes no connection', async () => {
  expect(await connectionFindings(config(''))).toEqual([])
  expect(await connectionFindings(config('database_url = "postgres://app@192.0.2.1/d"'))).toEqual([])
})

const KERBEROS = 'postgres://app@db/d?auth_mode=gssapi_only'

test('missing Kerberos files are reported once, although both URLs need them', async () => {
  const findings = await connectionFindings(
    config(`database_url = "${KERBEROS}"\nrealtime_database_url = "${KERBEROS}"`, {
      KRB5_CONFIG: join(folder, 'krb5.conf'),
      KRB5CCNAME: join(folder, 'cache'),
    }),
  )
  // Independent of whether the optional package is installed.
  const files = findings.filter(({ message }) => !message.includes('enterprise-gssapi'))
  expect(files.map(({ message }) => message.replaceAll(`${folder}/`, ''))).toEqual([
    'Kerberos has no configuration: krb5.conf does not exist.',
    'Kerberos has no credentials: cache does not exist.',
  ])
})

test('a callback needs a module, which finds the Kerberos files itself', async () => {
  const url = `database_url = "${KERBEROS}&gss_provider=callback"`
  expect((await connectionFindings(config(url))).map(({ message }) => message)).toEqual([
    'gss_provider=callback needs gss_module, the ES module that creates the tokens.',
  ])
  writeFileSync(join(folder, 'tokens.mjs'), 'export const step = () => ({ done: true })')
  expect(await connectionFindings(config(`${url}\ngss_module = "tokens.mjs"`))).toEqual([])
})

test('the settings in effect are listed for each usable URL', () => {
  const both = config(`database_url = "postgres://app:hush@db/d"\nrealtime_database_url = "postgres://app@direct/d"`)
  const lines = connectionPolicies(both)
  expect(lines.filter(line => !line.startsWith(' '))).toEqual([
    'database_url: app@db:5432/d',
    'realtime_database_url: app@direct:5432/d',
  ])
  expect(lines).toContain('  statements: prepared and pipelined')
  expect(lines.join()).not.toContain('hush')
  expect(connectionPolicies(config('database_url = "postgres://app@db/d?x=1"'))).toEqual([])
  const pooled = connectionPolicies(config('database_url = "postgres://app@db/d"\nprepared_statements = false'))
  expect(pooled).toContain('  statements: neither prepared nor pipelined, as transaction poolers require')
})

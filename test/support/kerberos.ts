/**
 * A Kerberos realm for tests: MIT's KDC and a PostgreSQL with GSSAPI, both from Debian's packages because the
 * embedded PostgreSQL is built without it. Everything runs on loopback and in one folder.
 */
import { execFile } from 'node:child_process'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { freePort } from '../../src/demo/free-port.ts'
import { startDebianPostgres } from './debian-postgres.ts'
import { missingPrograms, programPath, type Running, startProgram } from './programs.ts'

const REALM = 'SVC.TEST'
const MASTER_PASSWORD = 'of the database of principals, for tests only'

export const ROLE = 'app'

/** The reason why a realm cannot be started here; null if it can. */
export async function whyNoRealm(): Promise<string | null> {
  const missing = missingPrograms({
    krb5kdc: 'krb5-kdc',
    kdb5_util: 'krb5-kdc',
    'kadmin.local': 'krb5-admin-server',
    kinit: 'krb5-user',
    initdb: 'postgresql-15',
    postgres: 'postgresql-15',
  })
  if (missing !== null) return missing
  try {
    await import('kerberos')
    return null
  } catch (error) {
    return `the optional package kerberos is not installed (see .ci/run): ${(error as Error).message}`
  }
}

export interface Realm {
  readonly port: number
  /** Connects as superuser, with trust authentication. */
  readonly adminUrl: string
  /** The gateway's environment. The credential cache holds a ticket of `app`. */
  readonly environment: Readonly<Record<string, string>>
  readonly keytab: string
  /** A path in the realm's folder. */
  file(name: string): string
  /** A credential cache that holds a ticket of `app` and no other. */
  ticket(name: string): Promise<string>
  startKdc(): Promise<void>
  stopKdc(): Promise<void>
  close(): Promise<void>
}

export async function createRealm(): Promise<Realm> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-realm-'))
  await chmod(folder, 0o755)
  const file = (name: string): string => join(folder, name)
  const kdcPort = await freePort()
  await writeFile(file('krb5.conf'), clientConfiguration(kdcPort))
  await writeFile(file('kdc.conf'), kdcConfiguration(kdcPort, folder))
  const env = { KRB5_CONFIG: file('krb5.conf'), KRB5_KDC_PROFILE: file('kdc.conf') }
  const run = async (program: string, ...args: string[]): Promise<void> => {
    await promisify(execFile)(programPath(program), args, { env: { PATH: process.env.PATH ?? '', ...env } })
  }
  await run('kdb5_util', 'create', '-s', '-r', REALM, '-P', MASTER_PASSWORD)
  for (const [principal, keytab] of [
    ['postgres/localhost', 'server.keytab'],
    [ROLE, 'client.keytab'],
  ] as const) {
    await run('kadmin.local', '-r', REALM, '-q', `addprinc -randkey ${principal}`)
    await run('kadmin.local', '-r', REALM, '-q', `ktadd -k ${file(keytab)} ${principal}`)
  }
  let kdc: Running | null = null
  const startKdc = async (): Promise<void> => {
    kdc ??= await startProgram(programPath('krb5kdc'), {
      args: ['-n', '-r', REALM],
      env,
      ready: /commencing operation/,
    })
  }
  const stopKdc = async (): Promise<void> => {
    await kdc?.close()
    kdc = null
  }
  const ticket = async (name: string): Promise<string> => {
    const cache = `FILE:${file(name)}`
    await run('kinit', '-k', '-t', file('client.keytab'), '-c', cache, `${ROLE}@${REALM}`)
    return cache
  }

  await startKdc()
  const server = await startDebianPostgres({
    folder,
    // Only the superuser can log in without a ticket.
    hba: [`host all all 127.0.0.1/32 gss include_realm=0 krb_realm=${REALM}`],
    settings: { krb_server_keyfile: 'FILE:{server.keytab}' },
    files: { 'server.keytab': file('server.keytab') },
    environment: env,
  })
  const environment = { KRB5_CONFIG: env.KRB5_CONFIG, KRB5CCNAME: await ticket('cache') }
  return {
    ...{ port: server.port, environment, file, ticket, startKdc, stopKdc, keytab: file('client.keytab') },
    adminUrl: server.adminUrl,
    async close() {
      await stopKdc()
      await server.close()
      await rm(folder, { recursive: true, force: true, maxRetries: 10 })
    },
  }
}

/** Disables DNS lookups, so that unreachable hosts fail immediately. */
function clientConfiguration(kdcPort: number): string {
  return `[libdefaults]
  default_realm = ${REALM}
  dns_lookup_kdc = false
  dns_lookup_realm = false
  dns_canonicalize_hostname = false
  rdns = false
  udp_preference_limit = 1
[realms]
  ${REALM} = {
    kdc = 127.0.0.1:${kdcPort}
  }
[domain_realm]
  localhost = ${REALM}
`
}

function kdcConfiguration(kdcPort: number, folder: string): string {
  return `[kdcdefaults]
  kdc_listen = ""
  kdc_tcp_listen = 127.0.0.1:${kdcPort}
[realms]
  ${REALM} = {
    database_name = ${folder}/principal
    key_stash_file = ${folder}/stash
    acl_file = ${folder}/kadm5.acl
    max_life = 1h
  }
[logging]
  kdc = STDERR
`
}

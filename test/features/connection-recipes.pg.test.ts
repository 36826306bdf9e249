/**
 * Every recipe of docs/guides/database-connections.md starts a gateway as written; only the placeholders are
 * replaced.
 */
import { once } from 'node:events'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import { freePort } from '../../src/demo/free-port.ts'
import { runAs, spawnAs } from '../../src/demo/run-as.ts'
import { PARAMETERS } from '../../src/postgres/url-parameters.ts'
import { createAuthority, createCertificate } from '../support/certificates.ts'
import { AUTHENTICATION_OK, fakePostgres } from '../support/fake-postgres.ts'
import { folderFixture } from '../support/fixtures.ts'
import { createRealm, type Realm, whyNoRealm } from '../support/kerberos.ts'
import { execute, privateServer } from '../support/postgres.ts'
import { killSvc, startSvc } from '../support/process.ts'
import { findProgram, missingPrograms, startProgram } from '../support/programs.ts'
import type { TestServer } from '../support/server.ts'
import { read } from '../tidy/tree.ts'

const GUIDE = read('docs/guides/database-connections.md')
const PASSWORD = 'p@ss/word'

// Each test starts programs, and the machine may be busy.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

let server: TestServer

const folder = folderFixture()
beforeAll(async () => {
  const authority = createAuthority('an authority of the provider')
  const certificate = createCertificate(authority, 'server', ['localhost'])
  const client = createCertificate(authority, 'gateway')
  for (const [name, content] of Object.entries({
    'ca.pem': authority.certificate,
    'gateway.crt': client.certificate,
    'gateway.key': client.key,
    'tokens.mjs': block('Tokens from your own code', 'js'),
  })) {
    await writeFile(join(folder, name), content)
  }
  server = await privateServer({
    settings: ['ssl = on', "ssl_cert_file = 'server.crt'", "ssl_key_file = 'server.key'", "ssl_ca_file = 'ca.crt'"],
    files: { 'server.crt': certificate.certificate, 'server.key': certificate.key, 'ca.crt': authority.certificate },
  })
  await execute(server.adminUrl, `create role gateway login password '${PASSWORD}'`)
  await execute(server.adminUrl, 'create database shop')
})

afterEach(killSvc)
afterAll(() => server?.close())

/** Lines of pg_hba.conf before those for the superuser. */
async function admit(...lines: readonly string[]): Promise<void> {
  await writeFile(
    join(server.dataDirectory, 'pg_hba.conf'),
    [...lines, 'host all all 127.0.0.1/32 scram-sha-256', 'local all all scram-sha-256', ''].join('\n'),
  )
  await execute(server.adminUrl, 'select pg_reload_conf()')
}

/** The code block of this language below the heading; `which` counts from 0. */
function block(heading: string, language: string, which = 0): string {
  const section = GUIDE.split(`\n## ${heading}\n`)[1]?.split('\n## ')[0] ?? ''
  const found = [...section.matchAll(new RegExp(`^\`\`\`${language}\n([\\s\\S]*?)^\`\`\``, 'gm'))][which]?.[1]
  if (found === undefined) throw new Error(`the guide has no such block: ${heading}, ${language} ${which}`)
  return found
}

/** The recipe with its placeholders replaced. Throws if a placeholder does not occur in it. */
function at(recipe: string, places: Readonly<Record<string, string>>): string {
  return Object.entries(places).reduce((text, [place, ours]) => {
    if (!text.includes(place)) throw new Error(`the recipe does not name ${place}`)
    return text.replaceAll(place, ours)
  }, recipe)
}

/** Starts a gateway with the recipe and sends a query through it. */
async function health(toml: string, environment: Readonly<Record<string, string>> = {}): Promise<unknown> {
  const file = join(folder, 'svc.toml')
  await writeFile(file, toml)
  const svc = startSvc(['serve', '--config', file], {
    DATABASE_PASSWORD: encodeURIComponent(PASSWORD),
    JWT_SECRET: 'a secret for tests of 32 bytes or more',
    SVC_BIND: '127.0.0.1:0',
    ...environment,
  })
  const url = await svc.says(/"url":"([^"]+)","msg":"listening"/)
  const { status } = await fetch(`${url}/health`)
  return status
}

test('the recipe for a local database over loopback works', async () => {
  await admit('host shop gateway 127.0.0.1/32 scram-sha-256')
  expect(await health(at(block('Local', 'toml'), { '127.0.0.1:5432': `127.0.0.1:${server.port}` }))).toBe(200)
})

test('the recipe for a Unix socket works', async context => {
  if (server.socketDirectory === null) return context.skip('this system has no Unix sockets')
  const recipe = at(block('Local', 'toml', 1), {
    '/var/run/postgresql': `${server.socketDirectory}&port=${server.port}`,
  })
  expect(await health(recipe)).toBe(200)
})

test('the recipe for a managed service works with a certificate bundle and channel binding', async () => {
  await admit('hostssl shop gateway 127.0.0.1/32 scram-sha-256')
  const recipe = at(block('Managed service', 'toml'), { 'db.example.com:5432': `localhost:${server.port}` })
  expect(await health(recipe)).toBe(200)
})

test('the recipe for several hosts skips one that is down', async () => {
  await admit('host shop gateway 127.0.0.1/32 scram-sha-256')
  const recipe = at(block('Several hosts', 'toml'), {
    'db1.example.com:5432': `127.0.0.1:${await freePort()}`,
    'db2.example.com:5432': `127.0.0.1:${server.port}`,
  })
  expect(await health(recipe)).toBe(200)
})

test('the recipe for a client certificate works', async () => {
  await admit('hostssl shop gateway 127.0.0.1/32 cert')
  const recipe = at(block('Client certificate', 'toml'), { 'db.example.com:5432': `localhost:${server.port}` })
  expect(await health(recipe)).toBe(200)
})

test('the recipe for Kerberos works', async context => {
  const missing = await whyNoRealm()
  if (missing !== null) return context.skip(missing)
  const realm: Realm = await createRealm()
  try {
    await execute(realm.adminUrl, 'create role app login')
    // The role that the ticket is valid for.
    const recipe = at(block('Kerberos', 'toml'), {
      'db.example.com:5432/shop': `localhost:${realm.port}/postgres`,
      'gateway@': 'app@',
    })
    expect(await health(recipe, realm.environment)).toBe(200)
    killSvc()
    const keytab = { KRB5_CONFIG: realm.file('krb5.conf'), KRB5_CLIENT_KTNAME: realm.keytab }
    expect(await health(recipe, { ...keytab, KRB5CCNAME: `FILE:${realm.file('own cache')}` })).toBe(200)
  } finally {
    killSvc()
    await realm.close()
  }
})

test('tokens from your own code work: with a daemon that is busy at first, then several exchanges', async () => {
  const questions: unknown[] = []
  let isBusy = true
  const daemon = createServer(async (request, response) => {
    const text = await request.setEncoding('utf8').reduce((all: string, part: string) => all + part, '')
    if (isBusy) {
      isBusy = false
      response.writeHead(503).end()
      return
    }
    const question = JSON.parse(text)
    questions.push(question)
    const isFirst = question.token === null
    const answer = { token: isFirst ? 'aGVsbG8=' : null, done: !isFirst, conversation: 'c1' }
    response.writeHead(200).end(JSON.stringify(answer))
  })
  daemon.listen(0, '127.0.0.1')
  await once(daemon, 'listening')
  const address = daemon.address()
  const daemonUrl = `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}/`

  const tokens: string[] = []
  const server = await fakePostgres(async session => {
    const asked = await session.next()
    if (asked.kind === 'sslRequest') {
      session.raw(Buffer.from('N'))
      await session.next()
    }
    session.send({ kind: 'authentication', authentication: { method: 'gss' } })
    const answer = await session.next()
    if (answer.kind === 'answer') tokens.push(String(answer.body))
    session.send({ kind: 'authentication', authentication: { method: 'gssContinue', data: Buffer.from('welcome') } })
    session.send(AUTHENTICATION_OK)
    await session.gone
  })
  try {
    const recipe = at(block('Tokens from your own code', 'toml'), { 'db.example.com:5432': `127.0.0.1:${server.port}` })
    // The server accepts this and sends nothing more.
    await writeFile(join(folder, 'svc.toml'), recipe)
    const svc = startSvc(['serve', '--config', join(folder, 'svc.toml')], {
      TOKEN_DAEMON: daemonUrl,
      JWT_SECRET: 'a secret for tests of 32 bytes or more',
    })
    await expect.poll(() => questions.length, { timeout: 15_000 }).toBeGreaterThanOrEqual(2)
    expect(questions.slice(0, 2)).toEqual([
      { target: 'postgres@127.0.0.1', method: 'gss', conversation: null, token: null },
      {
        target: 'postgres@127.0.0.1',
        method: 'gss',
        conversation: 'c1',
        token: Buffer.from('welcome').toString('base64'),
      },
    ])
    expect(tokens[0]).toBe('hello')
    expect(svc.said.error).toBe('')
  } finally {
    killSvc()
    await server.close()
    daemon.close()
  }
})

test('the recipe for a pooler with a direct connection for LISTEN works', async context => {
  const program = findProgram('pgbouncer')
  if (program === null) return context.skip(missingPrograms({ pgbouncer: 'pgbouncer' }) ?? '')
  await admit('host shop gateway 127.0.0.1/32 scram-sha-256')
  const port = await freePort()
  const place = await mkdtemp(join(tmpdir(), 'svc-recipe-pooler-'))
  await writeFile(join(place, 'users.txt'), `"gateway" "${PASSWORD}"\n`)
  await writeFile(
    join(place, 'pgbouncer.ini'),
    `[databases]
shop = host=127.0.0.1 port=${server.port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = ${join(place, 'users.txt')}
pool_mode = transaction
`,
  )
  await chmod(place, 0o755)
  const pooler = await startProgram(program, {
    args: [join(place, 'pgbouncer.ini')],
    ...spawnAs(runAs()),
    ready: /process up/,
  })
  try {
    const recipe = at(block('Pooler', 'toml'), {
      'db.example.com:6432': `127.0.0.1:${port}`,
      'db.example.com:5432': `127.0.0.1:${server.port}`,
    })
    expect(await health(recipe)).toBe(200)
  } finally {
    killSvc()
    await pooler.close()
    await rm(place, { recursive: true, force: true })
  }
})

test('the guide lists exactly the existing parameters', () => {
  const table = GUIDE.split('\n## Parameters\n')[1] ?? ''
  const named = [...table.matchAll(/^\| (`[^|]+) \|/gm)].flatMap(([, names = '']) =>
    [...names.matchAll(/`([a-z_0-9]+)`/g)].map(([, name]) => name),
  )
  expect(named.toSorted()).toEqual([...PARAMETERS].toSorted())
})

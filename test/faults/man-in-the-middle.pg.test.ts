/**
 * A man in the middle who terminates TLS with their own certificate and connects to the server with TLS.
 * `sslmode=require` verifies no certificate and accepts the connection; `channel_binding=require` rejects it
 * (docs/guides/database-connections.md#managed-service).
 */
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { connect as connectSocket, createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { connect as connectTls, TLSSocket } from 'node:tls'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freePort } from '../../src/demo/free-port.ts'
import type { ConnectError } from '../../src/postgres/errors.ts'
import { connect } from '../../src/postgres/startup.ts'
import { parseUrl } from '../../src/postgres/url.ts'
import { type Certificate, createAuthority, createCertificate, createSelfSigned } from '../support/certificates.ts'
import { folderFixture } from '../support/fixtures.ts'
import { privateServer } from '../support/postgres.ts'
import { findProgram, missingPrograms, type Running, startProgram } from '../support/programs.ts'
import type { TestServer } from '../support/server.ts'

let server: TestServer
let intruder: Certificate

const folder = folderFixture()
beforeAll(async () => {
  const authority = createAuthority('test authority')
  const certificate = createCertificate(authority, 'server', ['localhost'])
  intruder = createSelfSigned('localhost', ['localhost'])
  await writeFile(join(folder, 'ca.pem'), authority.certificate)
  await writeFile(join(folder, 'intruder.crt'), intruder.certificate)
  await writeFile(join(folder, 'intruder.key'), intruder.key, { mode: 0o600 })
  server = await privateServer({
    settings: ['ssl = on', "ssl_cert_file = 'server.crt'", "ssl_key_file = 'server.key'"],
    files: { 'server.crt': certificate.certificate, 'server.key': certificate.key },
  })
})

afterAll(() => server?.close())

/** The error message, or `a session`. */
async function attempt(port: number, parameters: string): Promise<ConnectError | 'a session'> {
  const url = server.url.replace(`127.0.0.1:${server.port}`, `localhost:${port}`)
  try {
    const { wire } = await connect({ target: parseUrl(`${url}?${parameters}`), throughPooler: false })
    wire.destroy(new Error('done'))
    return 'a session'
  } catch (error) {
    return error as ConnectError
  }
}

const TOOLS = { stunnel4: 'stunnel4' }

describe('an attacker who uses stunnel', () => {
  let port: number
  let stunnel: Running | undefined
  const missing = missingPrograms(TOOLS)

  beforeAll(async () => {
    const program = findProgram('stunnel4')
    if (program === null) return
    port = await freePort()
    const between = await freePort()
    const configuration = join(folder, 'stunnel.conf')
    await writeFile(
      configuration,
      `foreground = yes
pid =
debug = notice
[to us]
accept = 127.0.0.1:${port}
connect = 127.0.0.1:${between}
protocol = pgsql
cert = ${join(folder, 'intruder.crt')}
key = ${join(folder, 'intruder.key')}
[to the server]
client = yes
accept = 127.0.0.1:${between}
connect = 127.0.0.1:${server.port}
protocol = pgsql
`,
    )
    stunnel = await startProgram(program, { args: [configuration], ready: /Configuration successful/ })
  })

  afterAll(() => stunnel?.close())

  test('is not detected without channel binding', async context => {
    if (missing !== null) return context.skip(missing)
    expect(await attempt(port, 'sslmode=require&channel_binding=disable')).toBe('a session')
  })

  test.for(['prefer', 'require'])('is detected with channel_binding=%s', async (mode, context) => {
    if (missing !== null) return context.skip(missing)
    const refused = await attempt(port, `sslmode=require&channel_binding=${mode}`)
    expect(refused).toMatchObject({ name: 'ConnectError', permanent: true })
    expect(String(refused)).toContain('SCRAM channel binding check failed')
  })

  test.for(['disable', 'prefer', 'require'])(
    'has the same result with libpq and channel_binding=%s',
    async (mode, context) => {
      const psql = findProgram('psql')
      if (missing !== null || psql === null)
        // The message names the missing program.
        return context.skip(missing ?? 'psql missing (Debian: postgresql-client-15)')
      const url = new URL(server.url)
      const address = `host=localhost hostaddr=127.0.0.1 port=${port}`
      const place = `${address} user=${url.username} dbname=postgres sslmode=require`
      const asked = promisify(execFile)(psql, [`${place} channel_binding=${mode}`, '-Atc', 'select 1'], {
        env: { PATH: process.env.PATH ?? '', PGPASSWORD: url.password },
      })
      const outcome = await asked.then(
        ({ stdout }) => stdout.trim(),
        (error: Error) => /SCRAM channel binding check failed/.exec(error.message)?.[0] ?? error.message,
      )
      expect(outcome).toBe(mode === 'disable' ? '1' : 'SCRAM channel binding check failed')
    },
  )

  test('is detected before anything is sent if the certificate is verified', async context => {
    if (missing !== null) return context.skip(missing)
    const refused = await attempt(port, `sslmode=verify-full&sslrootcert=${join(folder, 'ca.pem')}`)
    expect(refused).toMatchObject({ permanent: true })
    expect(String(refused)).toContain('TLS with the server failed')
  })
})

/**
 * The body of AuthenticationSASL as PostgreSQL sends it over TLS, and the remaining body without the
 * mechanism that supports channel binding.
 */
const OFFER = Buffer.from('\0\0\0\x0aSCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0')
const LESS = Buffer.from('\0\0\0\x0aSCRAM-SHA-256\0\0')

describe("an attacker who hides the server's mechanisms", () => {
  let middle: Server
  let port: number
  const sockets = new Set<Socket>()

  beforeAll(async () => {
    middle = createServer(socket => {
      sockets.add(socket)
      stepBetween(socket).catch(() => socket.destroy())
    })
    middle.listen(0, '127.0.0.1')
    await once(middle, 'listening')
    const address = middle.address()
    port = typeof address === 'object' && address !== null ? address.port : 0
  })

  afterAll(() => {
    for (const socket of sockets) socket.destroy()
    middle.close()
  })

  async function stepBetween(client: Socket): Promise<void> {
    const upstream = connectSocket(server.port, '127.0.0.1')
    sockets.add(upstream)
    client.on('error', () => {})
    upstream.on('error', () => {})
    // Client and server send the same request for TLS, so the client's request can be forwarded.
    const [request] = (await once(client, 'data')) as [Buffer]
    client.pause()
    upstream.write(request)
    const [answer] = (await once(upstream, 'data')) as [Buffer]
    upstream.pause()
    const toServer = connectTls({ socket: upstream, rejectUnauthorized: false })
    const toClient = new TLSSocket(client, { isServer: true, key: intruder.key, cert: intruder.certificate })
    toServer.on('error', () => {})
    toClient.on('error', () => {})
    client.write(answer)
    client.resume()
    toClient.pipe(toServer)
    toServer.on('data', (chunk: Buffer) => toClient.write(strikeOut(chunk)))
    toServer.on('close', () => toClient.end())
  }

  function strikeOut(chunk: Buffer): Buffer {
    const at = chunk.indexOf(OFFER)
    if (at === -1) return chunk
    const length = Buffer.alloc(4)
    length.writeInt32BE(LESS.length + 4)
    return Buffer.concat([chunk.subarray(0, at - 4), length, LESS, chunk.subarray(at + OFFER.length)])
  }

  test('is not detected with channel_binding=disable', async () => {
    expect(await attempt(port, 'sslmode=require&channel_binding=disable')).toBe('a session')
  })

  test('is detected by the server with prefer, because the client reports its support', async () => {
    const refused = await attempt(port, 'sslmode=require&channel_binding=prefer')
    expect(refused).toMatchObject({ name: 'ConnectError', permanent: true })
    expect(String(refused)).toMatch(/SCRAM channel binding negotiation error/)
  })

  test('is detected with require, which rejects the remaining mechanism', async () => {
    const refused = await attempt(port, 'sslmode=require&channel_binding=require')
    expect(refused).toMatchObject({ permanent: true })
    expect(String(refused)).toContain('the server offers SCRAM-SHA-256 only')
  })
})

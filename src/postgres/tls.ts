/**
 * Turns a plain socket into an encrypted one, as `sslmode` says (PostgreSQL manual 34.19.1, 54.2.10; decisions 11).
 * `verify-ca` and `verify-full` really verify, and `require` with `sslrootcert` verifies the chain.
 */
import { readFile } from 'node:fs/promises'
import { isIP, type Socket } from 'node:net'
import * as tls from 'node:tls'
import { ConnectError } from './errors.ts'
import { writeSslRequest } from './protocol/frontend.ts'
import { Writer } from './protocol/writer.ts'
import { type Address, isVerifying, type TlsSettings } from './target.ts'

const YES = 0x53
const NO = 0x4e

/** What `tls.connect` needs; read anew for each connection, so that renewed files are picked up. */
export async function loadTls(settings: TlsSettings): Promise<tls.ConnectionOptions> {
  const { rootCertificates, certificate } = settings
  const options: tls.ConnectionOptions = { minVersion: 'TLSv1.2', rejectUnauthorized: verifiesChain(settings) }
  if (rootCertificates !== null && rootCertificates !== 'system') {
    options.ca = await load('sslrootcert', rootCertificates)
  }
  if (certificate !== null) {
    options.cert = await load('sslcert', certificate.certPath)
    options.key = await load('sslkey', certificate.keyPath)
  }
  return options
}

/**
 * Asks the server for TLS and shakes hands. Resolves with the encrypted socket, or with the plain one if the server has
 * no TLS and the mode is `prefer`. The caller bounds the time and destroys `socket` on failure.
 */
export async function upgrade(socket: Socket, address: Address, settings: TlsSettings): Promise<Socket> {
  if (settings.mode === 'disable' || address.kind === 'unix') return socket
  const options = await loadTls(settings)
  const writer = new Writer(8)
  writeSslRequest(writer)
  const answer = firstBytes(socket)
  socket.write(writer.take())
  const bytes = await answer
  const code = bytes[0]
  if (code !== YES && code !== NO) {
    // What it says instead is not shown: nobody has proved to be the server yet.
    throw new ConnectError('the server did not understand the request for TLS; it may not be PostgreSQL', false)
  }
  // Bytes behind the answer came from before the handshake: somebody in between could have put them there, and they
  // would be read as if they had been encrypted (CVE-2021-23222).
  if (bytes.length > 1)
    throw new ConnectError('the server sent unencrypted bytes behind its answer to the request for TLS', false)
  if (code === NO) {
    if (settings.mode === 'prefer') return socket
    throw new ConnectError(
      `the server has no TLS and sslmode=${settings.mode} demands it; switch on ssl in postgresql.conf`,
      true,
    )
  }
  return handshake(socket, address.host, settings, options)
}

function verifiesChain(settings: TlsSettings): boolean {
  return isVerifying(settings.mode) || (settings.mode === 'require' && settings.rootCertificates !== null)
}

async function load(parameter: string, path: string): Promise<Buffer> {
  try {
    return await readFile(path)
  } catch (error) {
    throw new ConnectError(`${parameter}=${path} cannot be read: ${(error as Error).message}`, true, error)
  }
}

function firstBytes(socket: Socket): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    if (socket.destroyed) throw new ConnectError('the server closed the connection when asked for TLS', false)
    const onData = (chunk: Buffer): void => {
      // Whatever comes next belongs to the handshake; it must stay in the socket until that reads it.
      socket.pause()
      settle()
      resolve(chunk)
    }
    const onError = (error: Error): void => {
      settle()
      reject(error)
    }
    const onClose = (): void => onError(new ConnectError('the server closed the connection when asked for TLS', false))
    const settle = (): void => {
      socket.off('data', onData).off('error', onError).off('close', onClose).off('end', onClose)
    }
    socket.on('data', onData).on('error', onError).on('close', onClose).on('end', onClose)
  })
}

function handshake(
  socket: Socket,
  host: string,
  settings: TlsSettings,
  options: tls.ConnectionOptions,
): Promise<Socket> {
  return new Promise((resolve, reject) => {
    let secured: tls.TLSSocket
    try {
      secured = tls.connect({
        ...options,
        socket,
        // An address is no server name (RFC 6066 3).
        ...(isIP(host) === 0 ? { servername: host } : {}),
        checkServerIdentity: (_name, certificate) =>
          settings.mode === 'verify-full' ? tls.checkServerIdentity(host, certificate) : undefined,
      })
    } catch (error) {
      // An unreadable key or certificate is noticed here.
      reject(new ConnectError(`TLS cannot be set up with these files: ${(error as Error).message}`, true, error))
      return
    }
    // A second error must not end the process.
    secured.on('error', () => {})
    const fail = (error: Error): void => {
      settle()
      // Node names what failed in verification by an upper-case code: it will fail again until somebody acts.
      const permanent = secured.authorizationError != null || isVerificationCode((error as NodeJS.ErrnoException).code)
      reject(
        new ConnectError(`TLS with the server failed (sslmode=${settings.mode}): ${error.message}`, permanent, error),
      )
    }
    const onClose = (): void => fail(new Error('the connection was closed during the handshake'))
    const onSecure = (): void => {
      settle()
      resolve(secured)
    }
    const settle = (): void => {
      secured.off('error', fail).off('close', onClose).off('secureConnect', onSecure)
    }
    secured.on('error', fail).on('close', onClose).on('secureConnect', onSecure)
  })
}

function isVerificationCode(code: string | undefined): boolean {
  return code !== undefined && /CERT|ALTNAME|ISSUER|SIGNATURE/.test(code)
}

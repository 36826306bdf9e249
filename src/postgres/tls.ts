/**
 * Encrypts a socket as `sslmode` requires (PostgreSQL manual, 34.19.1 and 54.2.10). `verify-ca` and
 * `verify-full` verify the server, and any mode with `sslrootcert` verifies the chain once TLS is in use.
 */
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { isIP, type Socket } from 'node:net'
import * as tls from 'node:tls'
import { ConnectError } from './errors.ts'
import type { Progress } from './progress.ts'
import { writeSslRequest } from './protocol/frontend.ts'
import { Writer } from './protocol/writer.ts'
import { type Address, type ClientCertificate, type TlsSettings, verifiesChain } from './target.ts'

const YES = 0x53
const NO = 0x4e

/** Loads what `tls.connect` needs, again for each connection, so that renewed files are picked up. */
async function loadTls(settings: TlsSettings): Promise<tls.ConnectionOptions> {
  const { rootCertificates, certificate } = settings
  const options: tls.ConnectionOptions = { minVersion: 'TLSv1.2', rejectUnauthorized: verifiesChain(settings) }
  if (rootCertificates !== null && rootCertificates !== 'system') {
    options.ca = await loadPem('sslrootcert', rootCertificates)
  }
  return certificate === null ? options : { ...options, ...(await loadCertificate(certificate)) }
}

/** Checked here, because a failed handshake would name neither the file nor the problem. */
async function loadCertificate({ certPath, keyPath, password }: ClientCertificate): Promise<tls.ConnectionOptions> {
  const cert = await loadPem('sslcert', certPath)
  const pem = await loadPem('sslkey', keyPath)
  const passphrase = password ?? undefined
  let key: KeyObject
  try {
    key = createPrivateKey({ key: pem, passphrase: passphrase ?? '' })
  } catch (error) {
    throw new ConnectError(`sslkey=${keyPath} ${whyUnusable(pem, password)}`, true, error)
  }
  if (!new X509Certificate(cert).checkPrivateKey(key)) {
    throw new ConnectError(`sslkey=${keyPath} is not the key of the certificate in sslcert=${certPath}`, true)
  }
  return { cert, key: pem, passphrase }
}

function whyUnusable(pem: Buffer, password: string | null): string {
  if (!/ENCRYPTED/.test(pem.toString('latin1'))) return 'contains no private key in PEM format'
  return password === null
    ? 'is encrypted; give its password as sslpassword, or decrypt the file'
    : 'cannot be decrypted with sslpassword'
}

/**
 * Requests TLS and performs the handshake. Resolves with the encrypted socket, or with the plain one if the
 * server has no TLS and the mode is `prefer`. The caller limits the time and destroys `socket` on failure.
 */
export async function upgrade(
  socket: Socket,
  address: Address,
  settings: TlsSettings,
  progress: Progress,
): Promise<Socket> {
  if (settings.mode === 'disable' || address.kind === 'unix') return socket
  progress.step = 'requesting TLS'
  const options = await loadTls(settings)
  const writer = new Writer(8)
  writeSslRequest(writer)
  const answer = firstBytes(socket)
  socket.write(writer.take())
  const bytes = await answer
  const code = bytes[0]
  if (code !== YES && code !== NO) {
    // The response is not shown, because the server is not authenticated yet.
    throw new ConnectError('the server did not understand the request for TLS; it may not be PostgreSQL', false)
  }
  // Bytes after the response were received before the handshake: an attacker in between could have inserted
  // them, and they would be treated as if they had been encrypted (CVE-2021-23222).
  if (bytes.length > 1)
    throw new ConnectError('the server sent unencrypted bytes after its response to the TLS request', false)
  if (code === NO) {
    if (settings.mode === 'prefer') return socket
    throw new ConnectError(
      `the server has no TLS, which sslmode=${settings.mode} requires; set ssl = on in postgresql.conf`,
      true,
    )
  }
  progress.step = 'performing the TLS handshake'
  return handshake(socket, address.host, settings, options)
}

async function loadPem(parameter: string, path: string): Promise<Buffer> {
  let pem: Buffer
  try {
    pem = await readFile(path)
  } catch (error) {
    throw new ConnectError(`${parameter}=${path} cannot be read: ${(error as Error).message}`, true, error)
  }
  if (parameter === 'sslkey') return pem
  try {
    // Node skips unreadable certificates in a bundle, and would then trust none without an error.
    new X509Certificate(pem)
  } catch (error) {
    throw new ConnectError(`${parameter}=${path} contains no certificate in PEM format`, true, error)
  }
  return pem
}

function firstBytes(socket: Socket): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    if (socket.destroyed) throw new ConnectError('the server closed the connection when asked for TLS', false)
    const onData = (chunk: Buffer): void => {
      // Later bytes belong to the handshake and must stay in the socket until the handshake reads them.
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
        // An IP address is not a valid server name (RFC 6066, 3).
        ...(isIP(host) === 0 ? { servername: host } : {}),
        checkServerIdentity: (_name, certificate) =>
          settings.mode === 'verify-full' ? tls.checkServerIdentity(host, certificate) : undefined,
      })
    } catch (error) {
      // An unreadable key or certificate is detected here.
      reject(new ConnectError(`TLS cannot be set up with these files: ${(error as Error).message}`, true, error))
      return
    }
    // A second error must not end the process.
    secured.on('error', () => {})
    const fail = (error: Error): void => {
      settle()
      // Node reports a failed verification with an upper-case code; it fails again until the configuration
      // changes.
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

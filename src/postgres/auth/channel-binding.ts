/**
 * Channel binding: how a SCRAM conversation refers to the TLS session around it (RFC 5802, 6; PostgreSQL
 * manual, 54.3.1; `channel_binding`). An attacker in between with another certificate has another end point
 * than the server, so a bound conversation fails; if the attacker hides that the server supports binding, the
 * server detects that from the `y` sent.
 */
import { ConnectError } from '../errors.ts'
import { serverEndPoint } from './end-point.ts'

export const CHANNEL_BINDINGS = ['disable', 'prefer', 'require'] as const
export type ChannelBindingMode = (typeof CHANNEL_BINDINGS)[number]

export const SCRAM_SHA_256 = 'SCRAM-SHA-256'
export const SCRAM_SHA_256_PLUS = 'SCRAM-SHA-256-PLUS'

export interface ChannelBinding {
  readonly mechanism: typeof SCRAM_SHA_256 | typeof SCRAM_SHA_256_PLUS
  /**
   * The header of the conversation: `n` binding is not possible here, `y` possible here but not offered by
   * the server, `p` bound.
   */
  readonly header: 'n,,' | 'y,,' | 'p=tls-server-end-point,,'
  readonly endPoint: Buffer
}

export const UNBOUND: ChannelBinding = { mechanism: SCRAM_SHA_256, header: 'n,,', endPoint: Buffer.alloc(0) }

/**
 * Chooses the binding. `certificate`: the server's, in DER; null without TLS.
 * @throws ConnectError if `require` cannot be met, or the offer is inconsistent
 */
export function bindChannel(
  mode: ChannelBindingMode,
  offered: readonly string[],
  certificate: Buffer | null,
): ChannelBinding {
  const isOffered = offered.includes(SCRAM_SHA_256_PLUS)
  if (certificate === null) {
    if (isOffered) {
      // A server offers it only inside TLS: its TLS connection must end elsewhere.
      throw new ConnectError(
        `the server offers ${SCRAM_SHA_256_PLUS} although this connection has no ` +
          'TLS; a proxy in between may have removed it',
        true,
      )
    }
    if (mode === 'require') throw bindingRequired('this connection has no TLS; use sslmode=require')
    return UNBOUND
  }
  if (mode === 'disable') return unbound(offered)
  const endPoint = serverEndPoint(certificate)
  if (endPoint !== null && isOffered)
    return { mechanism: SCRAM_SHA_256_PLUS, header: 'p=tls-server-end-point,,', endPoint }
  if (mode === 'require') {
    throw bindingRequired(
      endPoint === null
        ? "it is not defined for the signature of the server's certificate (such as " +
            'Ed25519); use one signed with RSA or ECDSA'
        : `the server offers ${offered.join(', ')} only; a proxy that terminates TLS cannot support it`,
    )
  }
  // Binding is not possible here, so a missing offer by the server means nothing.
  return endPoint === null ? unbound(offered) : { ...UNBOUND, header: 'y,,' }
}

/** A server that supports binding also offers to do without; PostgreSQL always does. */
function unbound(offered: readonly string[]): ChannelBinding {
  if (offered.includes(SCRAM_SHA_256)) return UNBOUND
  throw new ConnectError(
    `the server offers ${offered.join(', ')} only, but this connection cannot be bound to its TLS session`,
    true,
  )
}

/** The error for everything that `channel_binding=require` forbids. */
export function bindingRequired(reason: string): ConnectError {
  return new ConnectError(`channel_binding=require requires ${SCRAM_SHA_256_PLUS}, but ${reason}`, true)
}

/**
 * How a SCRAM conversation refers to the TLS session around it (RFC 5802, 6; PostgreSQL manual, 54.3.1; `channel_binding`).
 * Somebody in the middle with a certificate of their own has another end point than the server, so a bound conversation
 * fails; and if they hide that the server could bind, the server learns that from the `y` we then say.
 */
import { ConnectError } from '../errors.ts'
import { serverEndPoint } from './end-point.ts'

export const CHANNEL_BINDINGS = ['disable', 'prefer', 'require'] as const
export type ChannelBindingMode = (typeof CHANNEL_BINDINGS)[number]

export const SCRAM_SHA_256 = 'SCRAM-SHA-256'
export const SCRAM_SHA_256_PLUS = 'SCRAM-SHA-256-PLUS'

export interface ChannelBinding {
  readonly mechanism: typeof SCRAM_SHA_256 | typeof SCRAM_SHA_256_PLUS
  /** The header of the conversation: `n` we cannot bind, `y` we could and the server does not offer it, `p` we do. */
  readonly header: 'n,,' | 'y,,' | 'p=tls-server-end-point,,'
  readonly endPoint: Buffer
}

export const UNBOUND: ChannelBinding = { mechanism: SCRAM_SHA_256, header: 'n,,', endPoint: Buffer.alloc(0) }

/** `certificate`: the server's, DER; null without TLS. Throws `ConnectError` where `require` cannot be met, or the offer makes no sense. */
export function bindChannel(
  mode: ChannelBindingMode,
  offered: readonly string[],
  certificate: Buffer | null,
): ChannelBinding {
  const isOffered = offered.includes(SCRAM_SHA_256_PLUS)
  if (certificate === null) {
    if (isOffered) {
      // A server offers it inside TLS only: its TLS ends at somebody else.
      throw new ConnectError(
        `the server offers ${SCRAM_SHA_256_PLUS} although this connection has no TLS; somebody in between may have taken it off`,
        true,
      )
    }
    if (mode === 'require') throw demanded('this connection has no TLS; use sslmode=require')
    return UNBOUND
  }
  if (mode === 'disable') return unbound(offered)
  const endPoint = serverEndPoint(certificate)
  if (endPoint !== null && isOffered)
    return { mechanism: SCRAM_SHA_256_PLUS, header: 'p=tls-server-end-point,,', endPoint }
  if (mode === 'require') {
    throw demanded(
      endPoint === null
        ? "it is not defined for the signature of the server's certificate (such as Ed25519); use one signed with RSA or ECDSA"
        : `the server offers ${offered.join(', ')} alone; a proxy that ends TLS cannot have it`,
    )
  }
  // Not even able to bind: then it is no sign of anything that the server does not offer it.
  return endPoint === null ? unbound(offered) : { ...UNBOUND, header: 'y,,' }
}

/** A server that binds offers to do without as well; PostgreSQL always does. */
function unbound(offered: readonly string[]): ChannelBinding {
  if (offered.includes(SCRAM_SHA_256)) return UNBOUND
  throw new ConnectError(
    `the server offers ${offered.join(', ')} alone, and this connection cannot be bound to its TLS`,
    true,
  )
}

/** For all that `channel_binding=require` forbids. */
export function demanded(reason: string): ConnectError {
  return new ConnectError(`channel_binding=require demands ${SCRAM_SHA_256_PLUS}, and ${reason}`, true)
}

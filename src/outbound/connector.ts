/** Connections checked by the address guard, for webhooks and for fetching the keys of identity providers. */
import type { LookupAddress, LookupAllOptions } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import { buildConnector } from 'undici'
import { type AddressGuard, withoutBrackets } from './address-guard.ts'

/** Resolves a host name to all of its addresses. */
export type ResolveName = (
  hostname: string,
  options: LookupAllOptions,
  found: (error: Error | null, addresses: LookupAddress[]) => void,
) => void

/** The guard's refusal, which is recognized inside wrapping errors. */
export class AddressRefused extends Error {
  override readonly name = 'AddressRefused'
}

/**
 * Checks addresses with the guard at connection time. Checking a name earlier and resolving it again for the
 * connection would leave a gap in which its addresses could change.
 */
export function guardedConnector(
  guard: Pick<AddressGuard, 'refusalReason'>,
  resolve: ResolveName,
): buildConnector.connector {
  const lookup: LookupFunction = (hostname, options, found) => {
    resolve(hostname, { ...options, all: true }, (error, addresses) => {
      if (error !== null) return found(error, '')
      const refusals = addresses.map(({ address }) => guard.refusalReason(address))
      const allowed = addresses.filter((_, index) => refusals[index] === null)
      const [first] = allowed
      if (first === undefined) {
        const reason = refusals.find(refusal => refusal !== null) ?? 'the name has no address'
        return found(new AddressRefused(`${hostname}: ${reason}`), '')
      }
      if (options.all === true) return found(null, allowed)
      return found(null, first.address, first.family)
    })
  }
  const connect = buildConnector({ lookup } as buildConnector.BuildOptions)
  return (options, connected) => {
    // An IP address is not looked up, so the guard would not be called.
    const host = withoutBrackets(options.hostname)
    const refused = isIP(host) === 0 ? null : guard.refusalReason(host)
    if (refused !== null) return connected(new AddressRefused(refused), null)
    return connect({ ...options, hostname: host }, connected)
  }
}

/** Connections that the address guard has seen: of webhooks, and of fetches of providers' keys. */
import type { LookupAddress, LookupAllOptions } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import { buildConnector } from 'undici'
import { type AddressGuard, withoutBrackets } from './address-guard.ts'

/** All addresses of a name. */
export type Resolve = (
  hostname: string,
  options: LookupAllOptions,
  found: (error: Error | null, addresses: LookupAddress[]) => void,
) => void

/** The guard's refusal, recognised behind whatever wraps it. */
export class AddressRefused extends Error {
  override readonly name = 'AddressRefused'
}

/**
 * Asks the guard at the last moment, about the very addresses that are connected to: a name that is resolved once for a check and once more for the
 * connection could have changed in between.
 */
export function guardedConnector(guard: Pick<AddressGuard, 'whyRefused'>, resolve: Resolve): buildConnector.connector {
  const lookup: LookupFunction = (hostname, options, found) => {
    resolve(hostname, { ...options, all: true }, (error, addresses) => {
      if (error !== null) return found(error, '')
      const refusals = addresses.map(({ address }) => guard.whyRefused(address))
      const allowed = addresses.filter((_, index) => refusals[index] === null)
      const [first] = allowed
      if (first === undefined) {
        const reason = refusals.find(refusal => refusal !== null) ?? 'it has no address'
        return found(new AddressRefused(`${hostname}: ${reason}`), '')
      }
      if (options.all === true) return found(null, allowed)
      return found(null, first.address, first.family)
    })
  }
  const connect = buildConnector({ lookup } as buildConnector.BuildOptions)
  return (options, connected) => {
    // An address is never looked up, so nobody would be asked.
    const host = withoutBrackets(options.hostname)
    const refused = isIP(host) === 0 ? null : guard.whyRefused(host)
    if (refused !== null) return connected(new AddressRefused(refused), null)
    return connect({ ...options, hostname: host }, connected)
  }
}

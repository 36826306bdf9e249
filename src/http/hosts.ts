/**
 * Checks that a request is meant for this server. A web page can make a browser send requests to a server in
 * the local network under the page's own host name (DNS rebinding), so `Host` and, if present, `Origin` must
 * name this server. The tool server always checks them because it has no tokens; the gateway checks them in
 * development mode, where it trusts headers that identify the caller.
 */
import { isIP } from 'node:net'

/** The names of this server. */
export interface Hosts {
  /**
   * Reports whether the host, and the origin if there is one, name this server. `localAddress` is the
   * socket's.
   */
  isOurs(host: string | undefined, origin: string | undefined, localAddress: string | undefined): boolean
  isOurHost(host: string | undefined, localAddress: string | undefined): boolean
  isOurOrigin(origin: string, localAddress: string | undefined): boolean
}

const LOOPBACK: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]'])

/**
 * Creates the check. `names` are the server's names in addition to loopback, without port and
 * case-insensitive.
 */
export function createHosts(names: readonly string[]): Hosts {
  const known = new Set([...LOOPBACK, ...names.map(name => hostnameOf(`http://${bracketed(name)}`) ?? name)])

  function isKnown(hostname: string | null, localAddress: string): boolean {
    if (hostname === null) return false
    // An IP address cannot be rebound.
    return known.has(hostname) || hostname === bracketed(localAddress.replace(/^::ffff:(?=\d+\.)/, ''))
  }

  const isOurHost: Hosts['isOurHost'] = (host, localAddress = '') =>
    host !== undefined && isKnown(hostnameOf(`http://${host}`), localAddress)
  const isOurOrigin: Hosts['isOurOrigin'] = (origin, localAddress = '') => isKnown(hostnameOf(origin), localAddress)
  return {
    isOurHost,
    isOurOrigin,
    isOurs: (host, origin, localAddress) =>
      isOurHost(host, localAddress) && (origin === undefined || isOurOrigin(origin, localAddress)),
  }
}

/** The host name of a URL in lower case; otherwise null, as for the origin `null`. */
function hostnameOf(url: string): string | null {
  // A fast path for nearly every request.
  const [, plain] = /^https?:\/\/([a-z0-9.-]+)(?::\d{1,5})?$/.exec(url) ?? []
  if (plain !== undefined && /[a-z]/.test(plain.at(-1) ?? '')) return plain
  if (!/^https?:\/\/[^/?#@\\\s]+$/i.test(url) || !URL.canParse(url)) return null
  return new URL(url).hostname
}

function bracketed(host: string): string {
  return isIP(host) === 6 ? `[${host}]` : host
}

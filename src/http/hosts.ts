/**
 * Whether a request was meant for this server. A page in a browser can be made to ask a server of the local network under a name of its own
 * (DNS rebinding), so `Host` and, where a browser says it, `Origin` must name this server. The tool server always asks, because it has no tokens; the gateway in
 * development mode, where it believes headers about who calls.
 */
import { isIP } from 'node:net'

export interface Hosts {
  /** Both of them, where there is an origin. `localAddress`: of the socket. */
  isOurs(host: string | undefined, origin: string | undefined, localAddress: string | undefined): boolean
  isOurHost(host: string | undefined, localAddress: string | undefined): boolean
  isOurOrigin(origin: string, localAddress: string | undefined): boolean
}

const LOOPBACK: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]'])

/** `names`: what the server is called besides loopback, without port, in any letter case. */
export function createHosts(names: readonly string[]): Hosts {
  const known = new Set([...LOOPBACK, ...names.map(name => hostnameOf(`http://${bracketed(name)}`) ?? name)])

  function isKnown(hostname: string | null, localAddress: string): boolean {
    if (hostname === null) return false
    // An address is no name: nobody can make it lead elsewhere.
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

/** Lower case, as URLs have it; null for what names no host, such as the origin `null`. */
function hostnameOf(url: string): string | null {
  // The fast way for what nearly every request says.
  const [, plain] = /^https?:\/\/([a-z0-9.-]+)(?::\d{1,5})?$/.exec(url) ?? []
  if (plain !== undefined && /[a-z]/.test(plain.at(-1) ?? '')) return plain
  if (!/^https?:\/\/[^/?#@\\\s]+$/i.test(url) || !URL.canParse(url)) return null
  return new URL(url).hostname
}

function bracketed(host: string): string {
  return isIP(host) === 6 ? `[${host}]` : host
}

/**
 * Whether a request was meant for this server. A page in a browser can be made to ask a server of the local network under a name of its own
 * (DNS rebinding), so `Host` and, where a browser says it, `Origin` must name this server (decisions 12; the protocol's transports, "security warning").
 */
import { isIP } from 'node:net'

export interface Hosts {
  /** `localAddress`: of the socket. */
  isOurs(host: string | undefined, origin: string | undefined, localAddress: string | undefined): boolean
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

  return {
    isOurs(host, origin, localAddress = '') {
      if (host === undefined || !isKnown(hostnameOf(`http://${host}`), localAddress)) return false
      return origin === undefined || isKnown(hostnameOf(origin), localAddress)
    },
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

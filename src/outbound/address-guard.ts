/**
 * The addresses that requests of the gateway itself may go to (docs/guides/webhooks.md#allowed-addresses): those of
 * the Internet. Otherwise anybody who controls a URL could have the gateway ask what only it can reach: the machine
 * itself, its network, the cloud's metadata.
 */
import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

export interface AddressGuardOptions {
  /** Addresses and CIDR ranges that are reached all the same (webhook_allow). */
  readonly allow: readonly string[]
  /** The machine itself may be reached: for development. */
  readonly loopback: 'allowed' | 'refused'
  /** What is refused, for messages; `webhooks` by default. */
  readonly traffic?: string
}

export interface AddressGuard {
  /** Null: it may be connected to. The text is an address, of IPv6 with or without brackets; what is no address is refused. */
  whyRefused(address: string): string | null
  /** As far as it can be told of the host of a URL before its name is looked up. */
  whyHostRefused(hostname: string): string | null
}

export function createAddressGuard({ allow, loopback, traffic = 'webhooks' }: AddressGuardOptions): AddressGuard {
  const ranges = allow.map(parseRange)
  const isListed = (address: Parsed): boolean =>
    ranges.some(([network, bits]) => network.kind() === address.kind() && address.match(network, bits))
  function whyRefused(text: string): string | null {
    const written = withoutBrackets(text)
    if (!ipaddr.isValid(written)) return `"${written}" is no address`
    const address = ipaddr.parse(written)
    const meant = embedded(address)
    if (isListed(address) || isListed(meant)) return null
    const kind = kindOf(meant)
    if (kind === null || (kind === 'loopback' && loopback === 'allowed')) return null
    return `${written} is a ${kind} address, which ${traffic} do not reach; list it in webhook_allow if they should`
  }

  return {
    whyRefused,
    whyHostRefused(hostname) {
      if (isIP(withoutBrackets(hostname)) !== 0) return whyRefused(hostname)
      return LOCALHOST.test(hostname) ? whyRefused('127.0.0.1') : null
    },
  }
}

/** RFC 6761, 6.3. */
const LOCALHOST = /(^|\.)localhost\.?$/i

export function withoutBrackets(host: string): string {
  return host.replace(/^\[(.*)\]$/, '$1')
}

type Parsed = ipaddr.IPv4 | ipaddr.IPv6

function parseRange(range: string): readonly [Parsed, number] {
  if (range.includes('/')) {
    const [network, bits] = ipaddr.parseCIDR(range)
    // ::ffff:10.0.0.0/104 is 10.0.0.0/8.
    const meant = embedded(network)
    return meant.kind() === network.kind() ? [network, bits] : [meant, Math.max(0, bits - 96)]
  }
  const address = embedded(ipaddr.parse(range))
  return [address, address.kind() === 'ipv4' ? 32 : 128]
}

/** RFC 6052, 2.1: what translates to IPv4 has it in its last 32 bits, as mapped addresses do (RFC 4291, 2.5.5.2). */
const NAT64 = ipaddr.parseCIDR('64:ff9b::/96')

/** The address of IPv4 that a packet to this one arrives at. */
function embedded(address: Parsed): Parsed {
  if (address instanceof ipaddr.IPv4) return address
  const inside = address.isIPv4MappedAddress() || address.match(NAT64)
  return inside ? ipaddr.fromByteArray(address.toByteArray().slice(12)) : address
}

/** RFC 4291, 2.5.4 and IANA's table: every address of IPv6 that is handed out begins with 001. */
const GLOBAL = ipaddr.parseCIDR('2000::/3')

/** Azure's, which answers from inside every machine there although the number is a public one. */
const METADATA: ReadonlySet<string> = new Set(['168.63.129.16'])

/** What is no public address is called by its kind; null for a public one. */
function kindOf(address: Parsed): string | null {
  if (METADATA.has(address.toString())) return 'metadata'
  const range = address.range()
  if (range !== 'unicast') return NAMES[range] ?? range
  return address.kind() === 'ipv4' || address.match(GLOBAL) ? null : 'reserved'
}

const NAMES: Readonly<Record<string, string>> = {
  linkLocal: 'link-local',
  uniqueLocal: 'private',
  carrierGradeNat: 'carrier-grade NAT',
  rfc6145: 'translated',
  rfc6052: 'translated',
}

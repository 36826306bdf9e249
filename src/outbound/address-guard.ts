/**
 * The addresses that requests of the gateway itself may connect to: by default, public Internet addresses
 * only (docs/guides/webhooks.md#allowed-addresses). Without this guard, anyone who controls a URL could make
 * the gateway send requests to the machine itself, its private network, or a cloud provider's metadata
 * service.
 */
import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

/** The settings of the address guard. */
export interface AddressGuardOptions {
  /** Addresses and CIDR ranges that are allowed in addition (`webhook_allow`). */
  readonly allow: readonly string[]
  /** True if loopback addresses are allowed; they are in development mode. */
  readonly loopback: 'allowed' | 'refused'
  /** What is refused, for messages; `webhooks` by default. */
  readonly traffic?: string
}

/** Decides which addresses a request may connect to. */
export interface AddressGuard {
  /**
   * Why connections to an address are refused; null if they are allowed. IPv6 addresses may be enclosed in
   * brackets. Text that is not an IP address is refused.
   */
  refusalReason(address: string): string | null
  /** Why the host of a URL is refused, as far as this is known before a DNS lookup; null if it is not. */
  hostRefusalReason(hostname: string): string | null
}

/** Creates a guard for the given allow list. */
export function createAddressGuard({ allow, loopback, traffic = 'webhooks' }: AddressGuardOptions): AddressGuard {
  const ranges = allow.map(parseRange)
  const isListed = (address: Parsed): boolean =>
    ranges.some(([network, bits]) => network.kind() === address.kind() && address.match(network, bits))
  function refusalReason(text: string): string | null {
    const written = withoutBrackets(text)
    if (!ipaddr.isValid(written)) return `"${written}" is not an IP address`
    const address = ipaddr.parse(written)
    const effective = embedded(address)
    if (isListed(address) || isListed(effective)) return null
    const kind = kindOf(effective)
    if (kind === null || (kind === 'loopback' && loopback === 'allowed')) return null
    return `${written} is a ${kind} address, which is not allowed for ${traffic}; to allow it, add it to webhook_allow`
  }

  return {
    refusalReason,
    hostRefusalReason(hostname) {
      if (isIP(withoutBrackets(hostname)) !== 0) return refusalReason(hostname)
      return LOCALHOST.test(hostname) ? refusalReason('127.0.0.1') : null
    },
  }
}

/** RFC 6761, 6.3. */
const LOCALHOST = /(^|\.)localhost\.?$/i

/** Removes the brackets around an IPv6 address. */
export function withoutBrackets(host: string): string {
  return host.replace(/^\[(.*)\]$/, '$1')
}

type Parsed = ipaddr.IPv4 | ipaddr.IPv6

function parseRange(range: string): readonly [Parsed, number] {
  if (range.includes('/')) {
    const [network, bits] = ipaddr.parseCIDR(range)
    // ::ffff:10.0.0.0/104 is 10.0.0.0/8.
    const effective = embedded(network)
    return effective.kind() === network.kind() ? [network, bits] : [effective, Math.max(0, bits - 96)]
  }
  const address = embedded(ipaddr.parse(range))
  return [address, address.kind() === 'ipv4' ? 32 : 128]
}

/**
 * RFC 6052, 2.1: addresses translated from IPv4 carry the IPv4 address in their last 32 bits, as IPv4-mapped
 * addresses do (RFC 4291, 2.5.5.2).
 */
const NAT64 = ipaddr.parseCIDR('64:ff9b::/96')

/** The IPv4 address that packets to this address are delivered to. */
function embedded(address: Parsed): Parsed {
  if (address instanceof ipaddr.IPv4) return address
  const inside = address.isIPv4MappedAddress() || address.match(NAT64)
  return inside ? ipaddr.fromByteArray(address.toByteArray().slice(12)) : address
}

/** RFC 4291, 2.5.4 and the IANA registry: all IPv6 addresses allocated for global unicast begin with 001. */
const GLOBAL = ipaddr.parseCIDR('2000::/3')

/** Azure's metadata address: a public address by its number, but served from inside every virtual machine. */
const METADATA: ReadonlySet<string> = new Set(['168.63.129.16'])

/** The kind of an address that is not public; null for a public one. */
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

/**
 * Client addresses as numbers, by which clients are counted.
 * Every address is IPv6, four words of 32 bits; IPv4 is mapped (RFC 4291, 2.5.5.2), so an address is the same
 * for IPv4 and dual-stack sockets.
 */
import ipaddr from 'ipaddr.js'

/** An IPv6 address. */
export type IpAddress = Readonly<Uint32Array>

/** The address of a socket that has been closed. */
export const NO_ADDRESS: IpAddress = new Uint32Array(4)

/** The third word of an IPv4 address; the first two are 0. */
const MAPPED = 0xffff

/** Reports whether an address is IPv4. */
export function isIPv4(address: IpAddress): boolean {
  return address[2] === MAPPED && address[1] === 0 && address[0] === 0
}

/**
 * The key by which a client is counted: an IPv4 address, or the first 64 bits of an IPv6 address, because a
 * single machine controls the rest.
 */
export function addressKey(address: IpAddress): string | number {
  return isIPv4(address) ? (address[3] ?? 0) : `${address[0]}:${address[1]}`
}

/**
 * Parses `192.0.2.1`, `2001:db8::1`, `fe80::1%eth0`; null for anything else. The zone is ignored: it names a
 * network interface of this machine. IPv4 must have four decimal parts, because `127.1` and `010.0.0.1` are
 * ambiguous (RFC 6943, 3.1.1).
 */
export function parseIp(text: string): ipaddr.IPv4 | ipaddr.IPv6 | null {
  if (!text.includes(':')) return ipaddr.IPv4.isValidFourPartDecimal(text) ? ipaddr.IPv4.parse(text) : null
  const whole = text.replace(ZONE, '').replace(COMPATIBLE, '0::$1')
  const end = whole.slice(whole.lastIndexOf(':') + 1)
  if (end.includes('.') && !ipaddr.IPv4.isValidFourPartDecimal(end)) return null
  return ipaddr.IPv6.isValid(whole) ? ipaddr.IPv6.parse(whole) : null
}

const ZONE = /%.+$/s

/** `::192.0.2.1` is not a mapped address (RFC 4291, 2.5.5.1), although ipaddr.js treats it as one. */
const COMPATIBLE = /^::(\d+\.)/

/** Converts a parsed address to four words. */
export function toAddress(ip: ipaddr.IPv4 | ipaddr.IPv6): IpAddress {
  const { parts } = 'parts' in ip ? ip : ip.toIPv4MappedAddress()
  return Uint32Array.from({ length: 4 }, (_, word) => (parts[word * 2] ?? 0) * 0x10000 + (parts[word * 2 + 1] ?? 0))
}

/**
 * The client address of a request: that of the socket, or behind trusted proxies the address that they report
 * (docs/reference/limits.md#behind-proxies).
 * Each proxy appends the address it was connected from to `X-Forwarded-For`, so the header is read from its
 * end: whatever a client added itself is to the left of the first untrusted address, and is never read.
 */
import ipaddr from 'ipaddr.js'
import { LRUCache } from 'lru-cache'
import { type IpAddress, NO_ADDRESS, parseIp, toAddress } from './address.ts'

/**
 * The address of a request, given its socket's address and its `X-Forwarded-For` (several joined by commas,
 * as Node does). `NO_ADDRESS` if the socket has been closed.
 */
export type ClientAddress = (socketAddress: string | undefined, forwardedFor: string | undefined) => IpAddress

/**
 * Limit on the entries read. Chains of trusted proxies are short, but a header has space for thousands of
 * entries.
 */
const HOPS_MAX = 100

/**
 * Limit on the length of an entry; the longest address with zone, brackets and port has about eighty
 * characters.
 */
const ENTRY_CHARACTERS_MAX = 100

/** Limit on cached addresses: clients and proxies send many requests, and parsing takes a microsecond. */
const CACHED_ADDRESSES_MAX = 1_024

interface CachedAddress {
  readonly address: IpAddress
  readonly isTrusted: boolean
}

/** Creates the function. `trustedProxies`: validated addresses and CIDR ranges. */
export function createClientAddress(trustedProxies: readonly string[]): ClientAddress {
  const find = createReader(trustedProxies)
  return (socketAddress = '', forwardedFor = '') => {
    let seen = find(socketAddress)
    if (seen === null) return NO_ADDRESS
    let end = forwardedFor.length
    for (let hops = 0; hops < HOPS_MAX && end > 0 && seen.isTrusted; hops++) {
      const start = forwardedFor.lastIndexOf(',', end - 1) + 1
      const entry = trimmed(forwardedFor, start, end)
      end = start - 1
      // Elements of a list may be empty (RFC 9110, 5.6.1.2).
      if (entry === '') continue
      const before = find(withoutPort(entry))
      // The address before this proxy is unknown, so the proxy counts as the client.
      if (before === null) break
      seen = before
    }
    return seen.address
  }
}

/** Reports whether a socket comes from a trusted proxy, whose connections carry many clients. */
export function createProxyCheck(trustedProxies: readonly string[]): (socketAddress: string | undefined) => boolean {
  const find = createReader(trustedProxies)
  return (socketAddress = '') => find(socketAddress)?.isTrusted === true
}

function createReader(trustedProxies: readonly string[]): (text: string) => CachedAddress | null {
  const networks = trustedProxies.map(toNetwork)
  const kept = new LRUCache<string, CachedAddress>({ max: CACHED_ADDRESSES_MAX })
  return text => {
    const known = kept.get(text)
    if (known !== undefined) return known
    const ip = text.length > ENTRY_CHARACTERS_MAX ? null : parseIp(text)
    if (ip === null) return null
    const seen = { address: toAddress(ip), isTrusted: networks.some(network => isWithin(ip, network)) }
    kept.set(text, seen)
    return seen
  }
}

/**
 * Removes the port: `192.0.2.1`, `192.0.2.1:4711`, `2001:db8::1`, `[2001:db8::1]`, `[2001:db8::1]:4711`; only
 * IPv6 is written in brackets (RFC 3986, 3.2.2).
 */
function withoutPort(entry: string): string {
  if (entry.length > ENTRY_CHARACTERS_MAX) return ''
  const found = /^\[([^\]]*:[^\]]*)\](?::\d{1,5})?$|^([^:]+):\d{1,5}$/.exec(entry)
  return found?.[1] ?? found?.[2] ?? entry
}

function trimmed(text: string, from: number, to: number): string {
  let start = from
  let end = to
  while (start < end && isSpace(text[start])) start++
  while (start < end && isSpace(text[end - 1])) end--
  return text.slice(start, end)
}

function isSpace(character: string | undefined): boolean {
  return character === ' ' || character === '\t'
}

type Ip = ipaddr.IPv4 | ipaddr.IPv6
type Network = readonly [Ip, number]

/** `::/0` means IPv6 only: it contains no IPv4 address. */
function isWithin(ip: Ip, [network, bits]: Network): boolean {
  const address = unmapped(ip)
  return address.kind() === network.kind() && address.match(network, bits)
}

function toNetwork(written: string): Network {
  const [whole, bits] = ipaddr.parseCIDR(
    written.includes('/') ? written : `${written}/${written.includes(':') ? 128 : 32}`,
  )
  const network = unmapped(whole)
  return [network, network === whole ? bits : Math.max(bits - 96, 0)]
}

function unmapped(ip: Ip): Ip {
  return 'parts' in ip && ip.isIPv4MappedAddress() ? ip.toIPv4Address() : ip
}

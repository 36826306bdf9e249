/**
 * Whose request it is: the other end of the socket, or behind trusted proxies the address that they saw (docs/reference/limits.md#behind-proxies).
 *
 * Each proxy appends the address it was connected from to `X-Forwarded-For`, so the header is read from its end: whatever a client wrote itself stands
 * left of the first address that no trusted proxy has, and is never reached.
 */
import ipaddr from 'ipaddr.js'
import { type Address, emptyAddress, endWithoutPort, isIPv4, isPort, parseAddress } from './address.ts'

/**
 * The address of a request: that of its socket, and its `X-Forwarded-For`, several joined by commas as Node does. The same object each time, valid until the
 * next call; all zeros for a socket that has closed meanwhile.
 */
export type ClientAddress = (socketAddress: string | undefined, forwardedFor: string | undefined) => Address

/** Entries looked at. Chains of trusted proxies are short, and a header has room for thousands of entries. */
const HOPS_MAX = 100

/** The longest address with zone, brackets and port has some eighty. */
const ENTRY_CHARACTERS_MAX = 100

interface Network {
  readonly isIPv4: boolean
  readonly prefix: Address
  readonly mask: Address
}

/** `trustedProxies`: addresses and CIDR ranges, as the configuration has checked them. */
export function createClientAddress(trustedProxies: readonly string[]): ClientAddress {
  const networks = trustedProxies.map(toNetwork)
  const address = emptyAddress()
  const seen = emptyAddress()
  return (socketAddress = '', forwardedFor = '') => {
    if (!parseAddress(socketAddress, 0, socketAddress.length, address)) address.fill(0)
    if (networks.length === 0) return address
    let end = forwardedFor.length
    for (let hops = 0; hops < HOPS_MAX && end > 0 && isWithin(address, networks); hops++) {
      const start = forwardedFor.lastIndexOf(',', end - 1) + 1
      const entry = parseEntry(forwardedFor, start, end, seen)
      // Nobody knows what this proxy was connected from, so it answers for it itself.
      if (entry === 'malformed') break
      if (entry === 'address') address.set(seen)
      end = start - 1
    }
    return address
  }
}

/** Whether a socket comes from a trusted proxy, whose connections are those of many clients. */
export function createProxyCheck(trustedProxies: readonly string[]): (socketAddress: string | undefined) => boolean {
  const networks = trustedProxies.map(toNetwork)
  const address = emptyAddress()
  return (socketAddress = '') =>
    networks.length > 0 && parseAddress(socketAddress, 0, socketAddress.length, address) && isWithin(address, networks)
}

const SPACE = 0x20
const TAB = 0x09

/** `192.0.2.1`, `192.0.2.1:4711`, `2001:db8::1`, `[2001:db8::1]`, `[2001:db8::1]:4711`. Elements of a list may be empty (RFC 9110, 5.6.1.2). */
function parseEntry(text: string, from: number, to: number, into: Address): 'address' | 'empty' | 'malformed' {
  let start = from
  let end = to
  while (start < end && isSpace(text.charCodeAt(start))) start++
  while (start < end && isSpace(text.charCodeAt(end - 1))) end--
  if (start === end) return 'empty'
  if (end - start > ENTRY_CHARACTERS_MAX) return 'malformed'
  const isAddress =
    text[start] === '['
      ? parseBracketed(text, start + 1, end, into)
      : parseAddress(text, start, endWithoutPort(text, start, end), into)
  return isAddress ? 'address' : 'malformed'
}

function parseBracketed(text: string, from: number, to: number, into: Address): boolean {
  const close = text.indexOf(']', from)
  if (close < 0 || close >= to) return false
  const hasPort = close + 1 < to
  if (hasPort && !(text[close + 1] === ':' && isPort(text, close + 2, to))) return false
  // Only IPv6 stands in brackets (RFC 3986, 3.2.2).
  return text.lastIndexOf(':', close) > from - 1 && parseAddress(text, from, close, into)
}

function isSpace(code: number): boolean {
  return code === SPACE || code === TAB
}

function isWithin(address: Address, networks: readonly Network[]): boolean {
  for (const { isIPv4: ofIPv4, prefix, mask } of networks) {
    // `::/0` is said by somebody who thinks of IPv6.
    if (ofIPv4 !== isIPv4(address)) continue
    let at = 0
    while (at < 4 && (((address[at] ?? 0) ^ (prefix[at] ?? 0)) & (mask[at] ?? 0)) === 0) at++
    if (at === 4) return true
  }
  return false
}

function toNetwork(written: string): Network {
  const [address, length] = written.includes('/')
    ? ipaddr.parseCIDR(written)
    : [ipaddr.parse(written), ipaddr.parse(written).kind() === 'ipv4' ? 32 : 128]
  const ofIPv4 = address.kind() === 'ipv4'
  const whole = ofIPv4 ? (address as ipaddr.IPv4).toIPv4MappedAddress() : (address as ipaddr.IPv6)
  const bytes = Buffer.from(whole.toByteArray())
  const bits = ofIPv4 ? length + 96 : length
  const prefix = emptyAddress()
  const mask = emptyAddress()
  for (let word = 0; word < 4; word++) {
    prefix[word] = bytes.readUInt32BE(word * 4)
    const ones = Math.min(Math.max(bits - word * 32, 0), 32)
    // A shift by 32 is none in JavaScript.
    mask[word] = ones === 0 ? 0 : 0xffffffff << (32 - ones)
  }
  return { isIPv4: isIPv4(prefix), prefix, mask }
}

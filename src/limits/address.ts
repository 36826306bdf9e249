/**
 * Addresses as numbers: what a request comes from is looked up for each one, so it is read character by character and nothing is allocated.
 *
 * Everything is IPv6, four words of 32 bits; IPv4 is mapped (RFC 4291, 2.5.5.2), so an address means the same whether the socket was of one family or of
 * both.
 */
export type Address = Uint32Array

export function emptyAddress(): Address {
  return new Uint32Array(4)
}

/** The third word of an IPv4 address; the first two are 0. */
const MAPPED = 0xffff

export function isIPv4(address: Address): boolean {
  return address[2] === MAPPED && address[1] === 0 && address[0] === 0
}

/** What counts as one client, as the key of a `Map`: an IPv4 address, or the first 64 bits of an IPv6 address, since a single machine has the rest. */
export function addressKey(address: Address): string | number {
  return isIPv4(address) ? (address[3] ?? 0) : `${address[0]}:${address[1]}`
}

const PERCENT = 0x25
const DOT = 0x2e
const ZERO = 0x30
const NINE = 0x39
const COLON = 0x3a

/**
 * Reads `text` from `from` to `to`, which must be an address and nothing else: `192.0.2.1`, `2001:db8::1`, `fe80::1%eth0`. False if it is none; then what
 * `into` holds means nothing. The zone is left out: it names a network card of this machine, not a client.
 */
export function parseAddress(text: string, from: number, to: number, into: Address): boolean {
  for (let at = from; at < to; at++) {
    const code = text.charCodeAt(at)
    if (code === DOT) return parseIPv4(text, from, to, into)
    if (code === COLON) return parseIPv6(text, from, endWithoutZone(text, at, to), into)
  }
  return false
}

function parseIPv4(text: string, from: number, to: number, into: Address): boolean {
  const value = readIPv4(text, from, to)
  into.fill(0)
  into[2] = MAPPED
  into[3] = value
  return value >= 0
}

/** -1 for what is none. A part with a leading zero is decimal to some and octal to others, so it is refused (RFC 6943, 3.1.1). */
function readIPv4(text: string, from: number, to: number): number {
  let value = 0
  let parts = 0
  for (let at = from; at <= to; at++) {
    const start = at
    let part = 0
    while (at < to && isDigit(text.charCodeAt(at)) && at - start < 3) part = part * 10 + text.charCodeAt(at++) - ZERO
    const isWritten = at > start && (at === start + 1 || text.charCodeAt(start) !== ZERO)
    if (!isWritten || part > 255 || ++parts > 4) return -1
    if (at < to && text.charCodeAt(at) !== DOT) return -1
    value = value * 256 + part
  }
  return parts === 4 ? value : -1
}

/** A `%` without a name behind it is left for the parser to refuse. */
function endWithoutZone(text: string, from: number, to: number): number {
  for (let at = from; at < to - 1; at++) if (text.charCodeAt(at) === PERCENT) return at
  return to
}

const GROUPS = 8
const groups = new Uint16Array(GROUPS)

/** RFC 4291, 2.2: up to eight groups, `::` for zeros in one place, an IPv4 address for the last two. */
function parseIPv6(text: string, from: number, to: number, into: Address): boolean {
  let count = 0
  let gap = -1
  let at = from
  if (text.charCodeAt(at) === COLON) {
    if (at + 1 >= to || text.charCodeAt(at + 1) !== COLON) return false
    gap = 0
    at += 2
  }
  while (at < to) {
    const start = at
    let group = 0
    for (let digit = 0; at < to; at++) {
      digit = hexOf(text.charCodeAt(at))
      if (digit < 0) break
      group = group * 16 + digit
    }
    const digits = at - start
    if (digits === 0 || digits > 4 || count === GROUPS) return false
    if (at < to && text.charCodeAt(at) === DOT) {
      const value = readIPv4(text, start, to)
      if (value < 0 || count > GROUPS - 2) return false
      groups[count++] = value >>> 16
      groups[count++] = value & 0xffff
      break
    }
    groups[count++] = group
    if (at === to) break
    if (text.charCodeAt(at++) !== COLON || at === to) return false
    if (text.charCodeAt(at) !== COLON) continue
    if (gap >= 0) return false
    gap = count
    at++
  }
  if (gap < 0 ? count !== GROUPS : count === GROUPS) return false
  spread(count, gap, into)
  return true
}

/** The groups that were written, with as many zeros in the gap as are missing. */
function spread(count: number, gap: number, into: Address): void {
  const zeros = GROUPS - count
  if (zeros > 0) {
    groups.copyWithin(gap + zeros, gap, count)
    groups.fill(0, gap, gap + zeros)
  }
  for (let word = 0; word < 4; word++) into[word] = (groups[word * 2] ?? 0) * 0x10000 + (groups[word * 2 + 1] ?? 0)
}

function isDigit(code: number): boolean {
  return code >= ZERO && code <= NINE
}

/** -1 for what is no digit. */
function hexOf(code: number): number {
  if (isDigit(code)) return code - ZERO
  // Both cases at once.
  const letter = code | 0x20
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1
}

/**
 * Where the address in `text`, from `from` to `to`, ends if a port may follow; `to` if none does. An IPv6 address without brackets has no port, only
 * groups.
 */
export function endWithoutPort(text: string, from: number, to: number): number {
  let colon = from
  while (colon < to && text.charCodeAt(colon) !== COLON) colon++
  return colon > from && isPort(text, colon + 1, to) ? colon : to
}

/** At most five digits, and at least one. */
export function isPort(text: string, from: number, to: number): boolean {
  for (let at = from; at < to; at++) if (!isDigit(text.charCodeAt(at))) return false
  return to > from && to - from <= 5
}

/**
 * The subset of protocol buffers that kubectl uses in a test: length-delimited fields, and integers, which
 * are ignored.
 */

/** A length-delimited field (bytes, text or a message) of fewer than 128 bytes with a number below 16. */
export function encodeField(number: number, value: Buffer | string): Buffer {
  return Buffer.concat([Buffer.from([number * 8 + 2, Buffer.byteLength(value)]), Buffer.from(value)])
}

/** The contents of length-delimited fields by number. */
export function decodeFields(message: Buffer): (number: number) => readonly Buffer[] {
  const found: { readonly number: number; readonly value: Buffer }[] = []
  let at = 0
  const varint = (): number => {
    for (let value = 0, unit = 1; ; unit *= 128) {
      const byte = message.readUInt8(at++)
      value += (byte % 128) * unit
      if (byte < 128) return value
    }
  }
  while (at < message.length) {
    const tag = varint()
    const size = varint()
    if (tag % 8 === 0) continue
    if (tag % 8 !== 2) throw new Error(`unsupported wire type ${tag % 8}`)
    found.push({ number: Math.floor(tag / 8), value: message.subarray(at, at + size) })
    at += size
  }
  return number => found.filter(field => field.number === number).map(({ value }) => value)
}

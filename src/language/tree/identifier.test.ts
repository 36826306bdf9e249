import { expect, test } from 'vitest'
import { utf8Length } from './identifier.ts'

test.each(['', 'plain', 'per cent %41', '\u007f\u0080', 'ß\u07ff\u0800', '€\uffff', '💥'])(
  'utf8Length returns the length of the UTF-8 encoding of %j',
  text => {
    expect(utf8Length(text)).toBe(Buffer.byteLength(text))
  },
)

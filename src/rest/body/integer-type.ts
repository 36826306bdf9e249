/** The type of an integer that meets nothing which has one. */

/** Nothing so short is too large for an `int4`. */
const INT4_CHARACTERS = 9

/** Those of the smallest `int8`, with its sign. */
const INT8_CHARACTERS_MAX = 20

/** As PostgreSQL types a constant of these digits, its sign included (PostgreSQL manual, 4.1.2.6): -2147483648 is an `int4`. */
export function integerType(bytes: Buffer, start = 0, end: number = bytes.length): 'int4' | 'int8' | 'numeric' {
  // Nearly all are as short as that, or longer than a bigint can be: neither is worth converting.
  if (end - start <= INT4_CHARACTERS) return 'int4'
  if (end - start > INT8_CHARACTERS_MAX) return 'numeric'
  const value = BigInt(bytes.toString('latin1', start, end))
  if (BigInt.asIntN(32, value) === value) return 'int4'
  return BigInt.asIntN(64, value) === value ? 'int8' : 'numeric'
}

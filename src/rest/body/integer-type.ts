/** The type of an integer for which the request gives no type. */

/** An integer of at most this many characters always fits an `int4`. */
const INT4_CHARACTERS = 9

/** The length of the smallest `int8`, including its sign. */
const INT8_CHARACTERS_MAX = 20

/**
 * The type that PostgreSQL gives a constant with these digits and sign (PostgreSQL manual, 4.1.2.6):
 * -2147483648 is an `int4`.
 */
export function integerType(bytes: Buffer, start = 0, end: number = bytes.length): 'int4' | 'int8' | 'numeric' {
  // Nearly all integers are short enough for int4 or too long for int8; neither kind is worth converting to a
  // number.
  if (end - start <= INT4_CHARACTERS) return 'int4'
  if (end - start > INT8_CHARACTERS_MAX) return 'numeric'
  const value = BigInt(bytes.toString('latin1', start, end))
  if (BigInt.asIntN(32, value) === value) return 'int4'
  return BigInt.asIntN(64, value) === value ? 'int8' : 'numeric'
}

/** Adds the argument to an error about a value in the body of a call, as for the columns of a row. */
import { isRaisedWithin } from '../../run/errors.ts'
import { type Meant, nameRefusedValue } from '../body/body-error.ts'
import type { ResolvedArgument } from './resolve.ts'
import { printArgument } from './signature.ts'

/**
 * Names the argument whose value PostgreSQL could not read. Errors that the function raises about its values
 * are unchanged.
 */
export function nameRefusedArgument(error: unknown, args: readonly ResolvedArgument[]): unknown | Promise<unknown> {
  return isRaisedWithin(error) ? error : nameRefusedValue(error, () => args.flatMap(meantBy))
}

/** The values of an argument; none for a pseudo-type, since the type it was resolved to is unknown here. */
function meantBy({ input, values, elements }: ResolvedArgument): readonly Meant[] {
  const type = elements ? (input.type.of ?? input.type) : input.type
  if (type.kind === 'pseudo') return []
  const about = { subject: printArgument(input), type, typeText: input.typeText }
  return values.flatMap(value => (value.kind === 'json' ? [{ ...about, text: value.bytes.toString() }] : []))
}

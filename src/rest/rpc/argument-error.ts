/** Says which argument of a call a value in the body did not fit, as for the columns of a row. */
import { isRaisedWithin } from '../../run/errors.ts'
import { type Meant, nameRefusedValue } from '../body/body-error.ts'
import type { ResolvedArgument } from './resolve.ts'
import { printArgument } from './signature.ts'

/** What the function itself says of its values is passed on as it is. */
export function nameRefusedArgument(error: unknown, args: readonly ResolvedArgument[]): unknown {
  return isRaisedWithin(error) ? error : nameRefusedValue(error, () => args.flatMap(meantBy))
}

/** None for a pseudo-type: which one it became, nobody has said. */
function meantBy({ input, values, elements }: ResolvedArgument): readonly Meant[] {
  const type = elements ? (input.type.of ?? input.type) : input.type
  if (type.kind === 'pseudo') return []
  const about = { subject: printArgument(input), type, typeText: input.typeText }
  return values.flatMap(value => (value.kind === 'json' ? [{ ...about, text: value.bytes.toString() }] : []))
}

/** The number of results in a response: few by default, because agents read them all. */
import type { IntegerArgument } from '../arguments.ts'

/** The argument that limits the number of results. */
export const limit: IntegerArgument = {
  kind: 'integer',
  description: 'Maximum number of results.',
  min: 1,
  max: 20,
  default: 5,
}

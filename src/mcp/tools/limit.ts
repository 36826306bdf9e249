/** How many results an answer holds: few unless more are asked for, since somebody has to read them. */
import type { IntegerArgument } from '../arguments.ts'

export const limit: IntegerArgument = {
  kind: 'integer',
  description: 'At most so many results.',
  min: 1,
  max: 20,
  default: 5,
}

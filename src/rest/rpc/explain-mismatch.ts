/** Explains why no overload of a function matches the arguments of a call. */
import type { DatabaseFunction, FunctionInput } from '../../catalog/model.ts'
import { nearest } from '../../text/nearest.ts'
import { shorten } from '../../text/shorten.ts'
import { isTooLarge, matchScore } from './match-score.ts'
import { describePassed, type NamedArguments, type PassedArguments, type PassedValue } from './passed-arguments.ts'
import { printArgument, printSignatures } from './signature.ts'

/** The message for a call that matches no overload, with the signatures. */
export function explainMismatch(overloads: readonly DatabaseFunction[], given: PassedArguments, name: string): string {
  const [only] = overloads
  const reason = overloads.length === 1 && only !== undefined ? misfitOf(only, given) : unknownName(overloads, given)
  return `${reason ?? `no function "${name}" takes ${describePassed(given)}`}; call ${printSignatures(overloads, name)}`
}

/** The error for an argument name that no overload has, or null if every name is known. */
function unknownName(overloads: readonly DatabaseFunction[], given: PassedArguments): string | null {
  if (given.kind === 'positional') return null
  const known = overloads.flatMap(namesOf)
  const unknown = [...given.values.keys()].find(name => !known.includes(name))
  if (unknown === undefined) return null
  const near = nearest(unknown, known)
  return `there is no argument "${shorten(unknown)}"${near === null ? '' : ` (did you mean "${near}"?)`}`
}

function namesOf(of: DatabaseFunction): readonly string[] {
  return of.inputs.flatMap(({ name }) => (name === null ? [] : [name]))
}

function misfitOf(of: DatabaseFunction, given: PassedArguments): string | null {
  const { inputs } = of
  if (given.kind === 'named') {
    const missing = inputs.find(input => input.required && (input.name === null || !given.values.has(input.name)))
    return (
      unknownName([of], given) ??
      (missing === undefined ? null : missingText(missing)) ??
      wrongType(inputs.map(input => [input, given.values.get(input.name ?? '')] as const)) ??
      missingVariadic(of, given)
    )
  }
  const { values } = given
  const missing = inputs.find((input, index) => input.required && index >= values.length)
  if (missing !== undefined) return missingText(missing)
  if (values.length > inputs.length && !of.variadic) {
    return `it takes ${inputs.length === 0 ? 'no arguments' : `at most ${inputs.length}`}, not ${values.length}`
  }
  return wrongType(inputs.map((input, index) => [input, values[index]] as const))
}

/** Without the variadic array, PostgreSQL applies defaults to the last arguments only. */
function missingVariadic(of: DatabaseFunction, { values }: NamedArguments): string | null {
  const missing = of.variadic ? of.inputs.find(({ name }) => !values.has(name ?? '')) : undefined
  return missing === undefined
    ? null
    : `${missingText(missing)}, which a variadic function needs before the arguments that follow it`
}

function missingText(input: FunctionInput): string {
  return input.name === null
    ? `${printArgument(input)} has no name and no default; pass the arguments by position, as a JSON array`
    : `${printArgument(input)} is missing`
}

function wrongType(pairs: readonly (readonly [FunctionInput, PassedValue | undefined])[]): string | null {
  for (const [input, value] of pairs) {
    if (value === undefined || input.mode === 'variadic' || matchScore(input.type, value) > 0) continue
    return `${printArgument(input)} is ${input.typeText} and ${misfitText(input, value)}`
  }
  return null
}

function misfitText({ type }: FunctionInput, value: PassedValue): string {
  if (value.kind === 'query') return 'cannot be several values'
  return isTooLarge(type, value)
    ? `cannot hold ${shorten(value.bytes.toString('latin1'))}, which is out of its range`
    : `cannot be ${JSON_WORDS[value.type]}`
}

const JSON_WORDS = {
  object: 'a JSON object',
  array: 'a JSON array',
  string: 'a JSON string',
  integer: 'a JSON integer',
  number: 'a JSON number with fraction or exponent',
  boolean: 'true or false',
  null: 'null',
} as const

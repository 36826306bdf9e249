/**
 * Chooses the overload that a call means (docs/reference/functions.md#arguments). The choice does not depend
 * on the order of functions or arguments.
 *
 * A function matches if every argument of the call is one of its inputs and every other input has a default.
 * Among several matches, the one is chosen whose inputs match each value at least as well as those of every
 * other (match-score.ts); a function that is not variadic wins a tie. If several remain, the call is
 * ambiguous: PostgreSQL cannot distinguish `f(int)` from `f(int, int default 1)` either when it is called
 * with one integer (PostgreSQL manual, 10.3).
 */
import type { DatabaseFunction, FunctionInput } from '../../catalog/model.ts'
import { GatewayError } from '../../errors.ts'
import { explainMismatch } from './explain-mismatch.ts'
import { elementMatchScore, type MatchScore, matchScore } from './match-score.ts'
import {
  describePassed,
  type NamedArguments,
  type PassedArguments,
  type PassedValue,
  type PositionalArguments,
} from './passed-arguments.ts'
import { isUnsupportedPseudo } from './polymorphic.ts'
import { printArgument, printSignature, printSignatures } from './signature.ts'

/** A call whose overload was chosen. */
export interface ResolvedCall {
  readonly function: DatabaseFunction
  /** The arguments in the order of the inputs. Inputs that use their defaults are missing. */
  readonly arguments: readonly ResolvedArgument[]
}

/** An argument and the input it is for. */
export interface ResolvedArgument {
  readonly input: FunctionInput
  /** One value, or the elements of a variadic input that was not passed as an array. */
  readonly values: readonly PassedValue[]
  readonly elements: boolean
}

/**
 * Chooses the overload. `name` is the function's name in messages.
 * @throws {GatewayError} `PARSE_ERROR` with the signatures if no overload or more than one matches.
 */
export function resolveOverload(
  overloads: readonly DatabaseFunction[],
  given: PassedArguments,
  name: string,
): ResolvedCall {
  const candidates: Candidate[] = []
  for (const of of overloads) {
    const candidate = given.kind === 'named' ? byName(of, given) : byPosition(of, given)
    if (candidate !== null && isPossible(candidate)) candidates.push(candidate)
  }
  const [first] = candidates
  if (first === undefined) throw new GatewayError('PARSE_ERROR', explainMismatch(overloads, given, name))
  const best = candidates.length === 1 ? first : bestOf(candidates, given, name)
  refuseUncallable(best, name)
  return best
}

interface Candidate extends ResolvedCall {
  readonly expanded: boolean
}

/** How well a value matches its argument. */
function fitIn({ input, elements }: ResolvedArgument, value: PassedValue): MatchScore {
  return elements ? elementMatchScore(input.type, value) : matchScore(input.type, value)
}

function isPossible(candidate: Candidate): boolean {
  return candidate.arguments.every(argument => argument.values.every(value => fitIn(argument, value) > 0))
}

function byName(of: DatabaseFunction, { values }: NamedArguments): Candidate | null {
  const args: ResolvedArgument[] = []
  for (const input of of.inputs) {
    const value = input.name === null ? undefined : values.get(input.name)
    if (value !== undefined) args.push({ input, values: [value], elements: false })
    else if (input.required) return null
  }
  if (args.length < values.size || (of.variadic && !suitsVariadic(of, args))) return null
  return { function: of, arguments: args, expanded: false }
}

/**
 * With its array, PostgreSQL accepts a variadic function only if all arguments are given; without the array
 * only by position, so arguments cannot be omitted in between.
 */
function suitsVariadic(of: DatabaseFunction, args: readonly ResolvedArgument[]): boolean {
  return omitsVariadic(of, args)
    ? args.every(({ input }, index) => input.position === index + 1)
    : args.length === of.inputs.length
}

/** Reports whether a call of a variadic function omits the variadic array. */
export function omitsVariadic(of: DatabaseFunction, args: readonly Pick<ResolvedArgument, 'input'>[]): boolean {
  return of.variadic && args.at(-1)?.input.mode !== 'variadic'
}

function byPosition(of: DatabaseFunction, { values }: PositionalArguments): Candidate | null {
  const { inputs } = of
  const last = inputs.at(-1)
  const rest = values.length - inputs.length + 1
  if (last?.mode === 'variadic' && rest >= 1) {
    // PostgreSQL makes each further argument an element. A single array in their place is what a caller with
    // JSON means by the variadic array.
    const expanded = candidate(of, values, { input: last, values: values.slice(-rest), elements: true })
    const whole = rest === 1 ? candidate(of, values, { input: last, values: values.slice(-1), elements: false }) : null
    return whole === null || isPossible(expanded) ? expanded : whole
  }
  if (values.length > inputs.length || inputs.slice(values.length).some(({ required }) => required)) return null
  return candidate(of, values, null)
}

/** A candidate for values by position; `rest` contains those of the variadic input. */
function candidate(of: DatabaseFunction, values: readonly PassedValue[], rest: ResolvedArgument | null): Candidate {
  const plain = values.slice(0, values.length - (rest?.values.length ?? 0))
  const args = plain.flatMap((value, index): readonly ResolvedArgument[] => {
    const input = of.inputs[index]
    return input === undefined ? [] : [{ input, values: [value], elements: false }]
  })
  return { function: of, arguments: rest === null ? args : [...args, rest], expanded: rest?.elements ?? false }
}

interface Ranked {
  readonly candidate: Candidate
  /** How well each value matches, in the order of the request. */
  readonly fits: readonly MatchScore[]
}

function bestOf(candidates: readonly Candidate[], given: PassedArguments, name: string): Candidate {
  const ranked = candidates.map((candidate): Ranked => ({ candidate, fits: fitsOf(candidate, given) }))
  const best = ranked.find(one => ranked.every(other => other === one || isBetter(one, other)))
  if (best !== undefined) return best.candidate
  const tied = [...new Set(undefeated(ranked).map(({ candidate }) => candidate.function))]
  throw new GatewayError(
    'PARSE_ERROR',
    `${describePassed(given)} could mean ${printSignatures(tied, name)}; ` +
      'use names of arguments that only one of them has, or values whose JSON types distinguish them',
  )
}

/** Positional arguments already are in the order of the request. */
function fitsOf({ arguments: args }: Candidate, given: PassedArguments): readonly MatchScore[] {
  const fits = args.map(argument => argument.values.map(value => fitIn(argument, value)))
  if (given.kind === 'positional') return fits.flat()
  const ofName = new Map(args.map(({ input }, index) => [input.name, fits[index] ?? []]))
  return [...given.values.keys()].flatMap(key => ofName.get(key) ?? [])
}

function isBetter(a: Ranked, b: Ranked): boolean {
  const asGood = a.fits.every((fit, index) => fit >= (b.fits[index] ?? 0))
  const asBad = b.fits.every((fit, index) => fit >= (a.fits[index] ?? 0))
  if (!asGood || !asBad) return asGood
  return !a.candidate.expanded && b.candidate.expanded
}

/** The candidates that no other candidate beats; the caller must choose between them. */
function undefeated(ranked: readonly Ranked[]): readonly Ranked[] {
  return ranked.filter(one => !ranked.some(other => other !== one && isBetter(other, one)))
}

/** Rejects functions that exist but cannot be called with JSON. */
function refuseUncallable({ function: of, arguments: args }: ResolvedCall, name: string): void {
  if (of.result.kind === 'record') {
    throw new GatewayError(
      'PARSE_ERROR',
      `${printSignature(of, name)} returns record without a column list; ` +
        'declare it RETURNS TABLE (…) or with OUT parameters',
    )
  }
  const untold = args.find(({ input }) => isUnsupportedPseudo(input.type))
  if (untold !== undefined) {
    throw new GatewayError(
      'PARSE_ERROR',
      `${printArgument(untold.input)} of ${printSignature(of, name)} is of type ${untold.input.typeText}, ` +
        'which has no JSON representation; declare it with a concrete type',
    )
  }
}

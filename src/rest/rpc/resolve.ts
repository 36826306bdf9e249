/**
 * Which of the functions of a name a call means (docs/reference/functions.md#arguments). Pure, and independent of the order in which functions or arguments come.
 *
 * A function fits when every argument given is one of its inputs, and every input not given has a default. Of several that fit, the one is meant that
 * fits each value at least as well as every other does (fit.ts); then one that is not variadic. Where that leaves more than one, the caller has to
 * say more: PostgreSQL can tell `f(int)` from `f(int, int default 1)` as little when it is called with one integer (PostgreSQL manual, 10.3).
 */
import type { DatabaseFunction, FunctionInput } from '../../catalog/model.ts'
import { GatewayError } from '../../errors.ts'
import { explainMisfit } from './explain.ts'
import { type Fit, fitOf, fitOfElement } from './fit.ts'
import { describeGiven, type Given, type GivenValue, type NamedArguments, type PositionalArguments } from './given.ts'
import { isUntold } from './polymorphic.ts'
import { printArgument, printSignature, printSignatures } from './signature.ts'

export interface Resolved {
  readonly function: DatabaseFunction
  /** In the order of the inputs; those that are left to their defaults are missing. */
  readonly arguments: readonly ResolvedArgument[]
}

export interface ResolvedArgument {
  readonly input: FunctionInput
  /** One value; of a variadic input that was not given as an array, each element. */
  readonly values: readonly GivenValue[]
  readonly elements: boolean
}

/** Throws `PARSE_ERROR`, naming the signatures, when none fits or several do. `name`: what to call the functions in messages. */
export function resolve(overloads: readonly DatabaseFunction[], given: Given, name: string): Resolved {
  const candidates: Candidate[] = []
  for (const of of overloads) {
    const candidate = given.kind === 'named' ? byName(of, given) : byPosition(of, given)
    if (candidate !== null && isPossible(candidate)) candidates.push(candidate)
  }
  const [first] = candidates
  if (first === undefined) throw new GatewayError('PARSE_ERROR', explainMisfit(overloads, given, name))
  const best = candidates.length === 1 ? first : bestOf(candidates, given, name)
  refuseUncallable(best, name)
  return best
}

interface Candidate extends Resolved {
  readonly expanded: boolean
}

/** How a value fits its argument. */
function fitIn({ input, elements }: ResolvedArgument, value: GivenValue): Fit {
  return elements ? fitOfElement(input.type, value) : fitOf(input.type, value)
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

/** With its array PostgreSQL takes a variadic function's arguments all, without it only by position: no names, and no gaps. */
function suitsVariadic(of: DatabaseFunction, args: readonly ResolvedArgument[]): boolean {
  return leavesVariadic(of, args)
    ? args.every(({ input }, index) => input.position === index + 1)
    : args.length === of.inputs.length
}

export function leavesVariadic(of: DatabaseFunction, args: readonly Pick<ResolvedArgument, 'input'>[]): boolean {
  return of.variadic && args.at(-1)?.input.mode !== 'variadic'
}

function byPosition(of: DatabaseFunction, { values }: PositionalArguments): Candidate | null {
  const { inputs } = of
  const last = inputs.at(-1)
  const rest = values.length - inputs.length + 1
  if (last?.mode === 'variadic' && rest >= 1) {
    // PostgreSQL has each further argument be an element; one array in their place is what a caller with JSON means by it.
    const expanded = candidate(of, values, { input: last, values: values.slice(-rest), elements: true })
    const whole = rest === 1 ? candidate(of, values, { input: last, values: values.slice(-1), elements: false }) : null
    return whole === null || isPossible(expanded) ? expanded : whole
  }
  if (values.length > inputs.length || inputs.slice(values.length).some(({ required }) => required)) return null
  return candidate(of, values, null)
}

/** The values by position; `rest`: those from the variadic input on. */
function candidate(of: DatabaseFunction, values: readonly GivenValue[], rest: ResolvedArgument | null): Candidate {
  const plain = values.slice(0, values.length - (rest?.values.length ?? 0))
  const args = plain.flatMap((value, index): readonly ResolvedArgument[] => {
    const input = of.inputs[index]
    return input === undefined ? [] : [{ input, values: [value], elements: false }]
  })
  return { function: of, arguments: rest === null ? args : [...args, rest], expanded: rest?.elements ?? false }
}

interface Ranked {
  readonly candidate: Candidate
  /** Of each value, in the order given. */
  readonly fits: readonly Fit[]
}

function bestOf(candidates: readonly Candidate[], given: Given, name: string): Candidate {
  const ranked = candidates.map((candidate): Ranked => ({ candidate, fits: fitsOf(candidate, given) }))
  const best = ranked.find(one => ranked.every(other => other === one || isBetter(one, other)))
  if (best !== undefined) return best.candidate
  const tied = [...new Set(undefeated(ranked).map(({ candidate }) => candidate.function))]
  throw new GatewayError(
    'PARSE_ERROR',
    `${describeGiven(given)} could mean ${printSignatures(tied, name)}; name arguments that only one of them has, or give values whose JSON types tell them apart`,
  )
}

/** Arguments by position are in the order given as it is. */
function fitsOf({ arguments: args }: Candidate, given: Given): readonly Fit[] {
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

/** Those that no other is better than, to be told apart by the caller. */
function undefeated(ranked: readonly Ranked[]): readonly Ranked[] {
  return ranked.filter(one => !ranked.some(other => other !== one && isBetter(other, one)))
}

/** What the catalogue has, and yet nobody can call with JSON. */
function refuseUncallable({ function: of, arguments: args }: Resolved, name: string): void {
  if (of.result.kind === 'record') {
    throw new GatewayError(
      'PARSE_ERROR',
      `${printSignature(of, name)} returns records without saying which columns they have; declare it RETURNS TABLE (…) or with OUT parameters`,
    )
  }
  const untold = args.find(({ input }) => isUntold(input.type))
  if (untold !== undefined) {
    throw new GatewayError(
      'PARSE_ERROR',
      `${printArgument(untold.input)} of ${printSignature(of, name)} is of type ${untold.input.typeText}, which JSON has no values for; declare it with a type of its own`,
    )
  }
}

/**
 * Which of the functions of a name a call means (decisions 5). Pure, and independent of the order in which functions or arguments come.
 *
 * A function fits when every argument given is one of its inputs, and every input not given has a default. Of several that fit, the one is meant that
 * fits each value at least as well as every other does (fit.ts); then one that is not variadic. Where that leaves more than one, the caller has to
 * say more: PostgreSQL can tell `f(int)` from `f(int, int default 1)` as little when it is called with one integer (manual, 10.3).
 */
import type { DatabaseFunction, FunctionInput } from '../../catalog/model.ts'
import { GatewayError } from '../../errors.ts'
import { explainMisfit } from './explain.ts'
import { type Fit, fitOf, fitOfElement } from './fit.ts'
import { describeGiven, type Given, type GivenValue, type NamedArguments, type PositionalArguments } from './given.ts'
import { isPolymorphic } from './polymorphic.ts'
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
  const candidates = overloads.flatMap(of => candidatesOf(of, given))
  if (candidates.length === 0) throw new GatewayError('PARSE_ERROR', explainMisfit(overloads, given, name))
  const best = candidates.find(one => candidates.every(other => other === one || isBetter(one, other)))
  if (best === undefined) {
    const tied = [...new Set(undefeated(candidates).map(candidate => candidate.function))]
    throw new GatewayError(
      'PARSE_ERROR',
      `${describeGiven(given)} could mean ${printSignatures(tied, name)}; name arguments that only one of them has, or give values whose JSON types tell them apart`,
    )
  }
  refuseUncallable(best, name)
  return best
}

interface Candidate extends Resolved {
  /** For each value, in the order given. */
  readonly fits: readonly Fit[]
  readonly expanded: boolean
}

function candidatesOf(of: DatabaseFunction, given: Given): readonly Candidate[] {
  const candidate = given.kind === 'named' ? byName(of, given) : byPosition(of, given)
  return candidate === null || candidate.fits.includes(0) ? [] : [candidate]
}

function byName(of: DatabaseFunction, { values }: NamedArguments): Candidate | null {
  const taken = of.inputs.filter(({ name }) => name !== null && values.has(name))
  if (taken.length < values.size || of.inputs.some(input => input.required && !taken.includes(input))) return null
  if (of.variadic && !suitsVariadic(of, taken)) return null
  const args = taken.map((input): ResolvedArgument => ({ input, values: valuesOf(input, values), elements: false }))
  const fits = new Map(args.map(({ input, values: [value] }) => [input.name, value && fitOf(input.type, value)]))
  return {
    function: of,
    arguments: args,
    fits: Array.from(values.keys(), key => fits.get(key) ?? 0),
    expanded: false,
  }
}

/** With its array PostgreSQL takes a variadic function's arguments all, without it only by position: no names, and no gaps. */
function suitsVariadic(of: DatabaseFunction, taken: readonly FunctionInput[]): boolean {
  return taken.at(-1)?.mode === 'variadic'
    ? taken.length === of.inputs.length
    : taken.every((input, index) => input.position === index + 1)
}

export function leavesVariadic(of: DatabaseFunction, args: readonly Pick<ResolvedArgument, 'input'>[]): boolean {
  return of.variadic && args.at(-1)?.input.mode !== 'variadic'
}

function valuesOf({ name }: FunctionInput, values: NamedArguments['values']): readonly GivenValue[] {
  const value = values.get(name ?? '')
  return value === undefined ? [] : [value]
}

function byPosition(of: DatabaseFunction, { values }: PositionalArguments): Candidate | null {
  const { inputs } = of
  const last = inputs.at(-1)
  const rest = values.length - inputs.length + 1
  if (last?.mode === 'variadic' && rest >= 1) {
    // PostgreSQL has each further argument be an element; one array in their place is what a caller with JSON means by it.
    const expanded = candidate(of, values, { input: last, values: values.slice(-rest), elements: true })
    const whole = rest === 1 ? candidate(of, values, { input: last, values: values.slice(-1), elements: false }) : null
    return whole === null || !expanded.fits.includes(0) ? expanded : whole
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
  const all = rest === null ? args : [...args, rest]
  return {
    function: of,
    arguments: all,
    fits: all.flatMap(({ input, values: list, elements }) =>
      list.map(value => (elements ? fitOfElement(input.type, value) : fitOf(input.type, value))),
    ),
    expanded: rest?.elements ?? false,
  }
}

function isBetter(a: Candidate, b: Candidate): boolean {
  const asGood = a.fits.every((fit, index) => fit >= (b.fits[index] ?? 0))
  const asBad = b.fits.every((fit, index) => fit >= (a.fits[index] ?? 0))
  if (!asGood || !asBad) return asGood
  return !a.expanded && b.expanded
}

/** Those that no other is better than, to be told apart by the caller. */
function undefeated(candidates: readonly Candidate[]): readonly Candidate[] {
  return candidates.filter(one => !candidates.some(other => other !== one && isBetter(other, one)))
}

/** What the contracts list, and yet nobody can call with JSON. */
function refuseUncallable({ function: of, arguments: args }: Resolved, name: string): void {
  if (of.result.kind === 'record') {
    throw new GatewayError(
      'PARSE_ERROR',
      `${printSignature(of, name)} returns records without saying which columns they have; declare it RETURNS TABLE (…) or with OUT parameters`,
    )
  }
  const untold = args.find(({ input }) => input.type.kind === 'pseudo' && !isPolymorphic(input.type))
  if (untold !== undefined) {
    throw new GatewayError(
      'PARSE_ERROR',
      `${printArgument(untold.input)} of ${printSignature(of, name)} is of type ${untold.input.typeText}, which JSON has no values for; declare it with a type of its own`,
    )
  }
}

/**
 * Binds the arguments of a call to its statement.
 *
 * A JSON body is one parameter, which PostgreSQL expands to a record of the arguments' types. Its bytes are
 * not decoded here, except for arrays whose elements are arrays (rewriting.ts). Each argument of a query
 * string is a separate parameter. The values are bound for every call; the tree is built only for a plan key
 * that is not cached.
 */
import { typeNameOf } from '../../access/types.ts'
import { GatewayError } from '../../errors.ts'
import type { Argument, Expression, Parameter, RecordSource, TypeName } from '../../language/tree/ast.ts'
import { NOWHERE } from '../../language/tree/ast.ts'
import { column, recordColumn, recordSource } from '../../language/tree/build.ts'
import type { Rewriting, TextFormLimits } from '../body/rewriting.ts'
import { JSON_ARRAY, type TextForm, textFormOf } from '../body/text-forms.ts'
import { withTextMembers } from '../body/text-values.ts'
import type { Values } from '../values.ts'
import type { BodyValue, PassedArguments } from './passed-arguments.ts'
import { choosePolymorphic, isPolymorphic } from './polymorphic.ts'
import { toParameter } from './query-value.ts'
import { omitsVariadic, type ResolvedArgument, type ResolvedCall } from './resolve.ts'
import { printSignature } from './signature.ts'
import { exactTypeName } from './type-name.ts'
import { wrapArguments } from './wrap.ts'

/** The arguments of a call, with their values bound. */
export interface CallArguments {
  /** Which arguments there are and how they were passed; part of the plan key. */
  readonly structure: string
  /** The types chosen for polymorphic arguments. */
  readonly types: ChosenTypes
  /** True if the statement passes the arguments by name. */
  readonly byName: boolean
  readonly from:
    | { readonly kind: 'nothing' }
    /** One JSON value, which PostgreSQL expands. */
    | { readonly kind: 'body'; readonly slots: readonly Slot[]; readonly value: Parameter }
    /** One value for each argument. */
    | { readonly kind: 'query'; readonly args: readonly ResolvedArgument[]; readonly values: readonly Parameter[] }
}

/** The parts of a statement that a call is built from. */
export interface BuiltArguments {
  /** The body as a row, or null if no argument comes from a body. */
  readonly record: RecordSource | null
  readonly arguments: readonly Argument[]
}

/** The alias of the row that the body becomes. */
const BODY = 'a'

/**
 * Binds the arguments of a resolved call.
 * @throws {GatewayError} `PARSE_ERROR` if polymorphic arguments have different types.
 */
export function bindArguments(
  resolved: ResolvedCall,
  given: PassedArguments,
  values: Values,
  name: string,
  limits?: TextFormLimits,
): CallArguments {
  const { arguments: args } = resolved
  const types = chosenTypes(resolved, name)
  // The named arguments of a body are one parameter; those of a query string are one parameter each.
  const isQuery = given.kind === 'named' && given.whole === null
  let structure: string = isQuery ? 'query' : given.kind
  for (const { input } of args) structure += ` ${input.position}`
  const byName = given.kind === 'named' && !omitsVariadic(resolved.function, args)
  if (args.length === 0) return { structure, types, byName, from: { kind: 'nothing' } }
  if (isQuery) return { structure, types, byName, from: { kind: 'query', args, values: bindQuery(args, values) } }
  const slots = slotsOf(args, given, types)
  return { structure, types, byName, from: { kind: 'body', slots, value: values.add(bodyOf(slots, given, limits)) } }
}

/** The type names that are part of the plan key. */
export function typesIn({ types }: CallArguments): readonly string[] {
  return types === null ? [] : Array.from(types.values(), typeNameOf)
}

/** Builds the arguments of the call expression and the record they come from. */
export function buildArguments({ types, byName, from }: CallArguments): BuiltArguments {
  switch (from.kind) {
    case 'nothing':
      return { record: null, arguments: [] }
    case 'body': {
      const columns = from.slots.map(({ key, argument }) => recordColumn(key, typeOf(argument, types)))
      const args = from.slots.map(({ key, argument: { input } }) =>
        toArgument(byName ? key : null, column(BODY, key), input.mode === 'variadic'),
      )
      return { record: recordSource(from.value, BODY, columns, 'one'), arguments: args }
    }
    case 'query': {
      const args = from.args.flatMap((argument, index) => {
        const { name, mode } = argument.input
        const value = from.values[index]
        if (value === undefined) return []
        return [toArgument(byName ? name : null, exactly(value, argument, types), mode === 'variadic')]
      })
      return { record: null, arguments: args }
    }
  }
}

/** The types of polymorphic arguments; otherwise null. */
type ChosenTypes = ReadonlyMap<ResolvedArgument, TypeName> | null

function chosenTypes({ function: of, arguments: args }: ResolvedCall, name: string): ChosenTypes {
  if (!args.some(({ input }) => isPolymorphic(input.type))) return null
  const polymorphic = args.filter(({ input }) => isPolymorphic(input.type))
  const chosen = choosePolymorphic(
    polymorphic.map(({ input, values, elements }) => ({ type: input.type, values, elements })),
  )
  if (chosen === null) {
    throw new GatewayError(
      'PARSE_ERROR',
      `the arguments of a polymorphic type must have the same type; ` +
        `call ${printSignature(of, name)} with values of one type`,
    )
  }
  return new Map(polymorphic.flatMap((argument, index) => (chosen[index] ? [[argument, chosen[index]]] : [])))
}

function typeOf(argument: ResolvedArgument, types: ChosenTypes): TypeName {
  return types?.get(argument) ?? exactTypeName(argument.input.type)
}

// ---- a body -----------------------------------------------------------------------------------------------

/** A column of the body's row and the argument it becomes. */
export interface Slot {
  readonly key: string
  readonly argument: ResolvedArgument
  readonly values: readonly BodyValue[]
  /** True if the values are the elements of an array that is the argument. */
  readonly list: boolean
  /**
   * The text form of an argument whose JSON PostgreSQL cannot read as the right array; null for all others.
   */
  readonly form: TextForm | null
}

function slotsOf(args: readonly ResolvedArgument[], given: PassedArguments, types: ChosenTypes): readonly Slot[] {
  return args.map(argument => {
    const { input, elements } = argument
    const values = argument.values as readonly BodyValue[]
    // Positional inputs need no name. The key is the position, because the name of one input could equal the
    // key of another.
    const key = given.kind === 'named' ? (input.name ?? '') : `a${input.position}`
    const chosen = types?.get(argument)
    const form = chosen === undefined ? textFormOf(input.type) : isJsonArray(chosen) ? JSON_ARRAY : null
    return { key, argument, values, list: elements, form }
  })
}

function isJsonArray({ name, dimensions }: TypeName): boolean {
  return name === 'jsonb' && dimensions === 1
}

function bodyOf(
  slots: readonly Slot[],
  given: PassedArguments,
  limits: TextFormLimits | undefined,
): Buffer | Rewriting {
  const bytes = given.kind === 'named' && given.whole !== null ? given.whole : wrapArguments(slots)
  if (slots.every(({ form }) => form === null)) return bytes
  return withTextMembers(bytes, new Map(slots.flatMap(({ key, form }) => (form === null ? [] : [[key, form]]))), limits)
}

// ---- a query string ---------------------------------------------------------------------------------------

function bindQuery(args: readonly ResolvedArgument[], values: Values): readonly Parameter[] {
  return args.map(({ input, values: [value] }) => {
    if (value?.kind !== 'query') throw new Error('a query string has a text for each argument')
    return values.add(toParameter(value, input))
  })
}

/**
 * Casts a parameter to the exact type of its argument. The access check types parameters itself, but replaces
 * domains by their base type and does not know polymorphic types.
 */
function exactly(parameter: Parameter, argument: ResolvedArgument, types: ChosenTypes): Expression {
  const { kind } = argument.input.type
  if (kind !== 'domain' && kind !== 'pseudo') return parameter
  return { kind: 'cast', operand: parameter, type: typeOf(argument, types), span: NOWHERE }
}

function toArgument(name: string | null, value: Expression, variadic: boolean): Argument {
  return { kind: 'argument', name, value, variadic, span: NOWHERE }
}

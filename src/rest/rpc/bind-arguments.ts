/**
 * How the arguments of a call get into its statement.
 *
 * A JSON body is one parameter, which PostgreSQL takes apart into a record of the arguments' types; its bytes are never decoded here, but for arrays
 * whose elements are arrays (array-values.ts). Each argument of a query string is a parameter of its own. What is done for every call is to add the values; the tree is only built for a shape not seen before.
 */
import { typeNameOf } from '../../access/types.ts'
import { GatewayError } from '../../errors.ts'
import type { Argument, Expression, Parameter, RecordSource, TypeName } from '../../language/tree/ast.ts'
import { NOWHERE } from '../../language/tree/ast.ts'
import { column, recordColumn, recordSource } from '../../language/tree/build.ts'
import { JSON_ARRAY, type TextForm, textFormOf, withArrayTexts } from '../body/array-values.ts'
import type { Shape } from '../shape.ts'
import type { BodyValue, Given } from './given.ts'
import { choosePolymorphic, isPolymorphic } from './polymorphic.ts'
import { toParameter } from './query-value.ts'
import { leavesVariadic, type Resolved, type ResolvedArgument } from './resolve.ts'
import { printSignature } from './signature.ts'
import { exactTypeName } from './type-name.ts'
import { wrapArguments } from './wrap.ts'

export interface ArgumentsTree {
  /** The body as a row; null when nothing came by one. */
  readonly record: RecordSource | null
  readonly arguments: readonly Argument[]
}

/** The alias of the body's row. */
const BODY = 'a'

/** Adds the values, and what of the structure depends on them, to `shape`; the tree of it is built when asked for. */
export function bindArguments(resolved: Resolved, given: Given, shape: Shape, name: string): () => ArgumentsTree {
  const { arguments: args } = resolved
  const types = chosenTypes(resolved, name)
  // Named arguments of a body are one parameter, those of a query string one each.
  const source = given.kind === 'named' && given.whole === null ? 'query' : given.kind
  let structure: string = source
  for (const { input } of args) structure += ` ${input.position}`
  shape.add(structure)
  if (types !== null) for (const type of types.values()) shape.add(typeNameOf(type))
  if (args.length === 0) return () => NO_ARGUMENTS
  const byName = given.kind === 'named' && !leavesVariadic(resolved.function, args)
  if (given.kind === 'named' && given.whole === null) return bindQuery(args, types, byName, shape)
  const slots = slotsOf(args, given, types)
  const value = shape.value(bodyOf(slots, given))
  return () => bodyTree(slots, types, byName, value)
}

const NO_ARGUMENTS: ArgumentsTree = { record: null, arguments: [] }

/** Of the arguments that are polymorphic; null where none is. */
type ChosenTypes = ReadonlyMap<ResolvedArgument, TypeName> | null

function chosenTypes({ function: of, arguments: args }: Resolved, name: string): ChosenTypes {
  if (!args.some(({ input }) => isPolymorphic(input.type))) return null
  const polymorphic = args.filter(({ input }) => isPolymorphic(input.type))
  const chosen = choosePolymorphic(
    polymorphic.map(({ input, values, elements }) => ({ type: input.type, values, elements })),
  )
  if (chosen === null) {
    throw new GatewayError(
      'PARSE_ERROR',
      `arguments of a polymorphic type have to be of one type, and these are not; call ${printSignature(of, name)} with values that are alike`,
    )
  }
  return new Map(polymorphic.flatMap((argument, index) => (chosen[index] ? [[argument, chosen[index]]] : [])))
}

function typeOf(argument: ResolvedArgument, types: ChosenTypes): TypeName {
  return types?.get(argument) ?? exactTypeName(argument.input.type)
}

// ---- a body --------------------------------------------------------------------------------------------------

/** A column of the body's row, and the argument that it becomes. */
export interface Slot {
  readonly key: string
  readonly argument: ResolvedArgument
  readonly values: readonly BodyValue[]
  /** The values are the elements of a list, which is the argument. */
  readonly list: boolean
  /** Of an argument whose arrays PostgreSQL is not to take apart as JSON. */
  readonly form: TextForm | null
}

function slotsOf(args: readonly ResolvedArgument[], given: Given, types: ChosenTypes): readonly Slot[] {
  return args.map(argument => {
    const { input, elements } = argument
    const values = argument.values as readonly BodyValue[]
    // By position inputs need no name, and one may be called like the place of another.
    const key = given.kind === 'named' ? (input.name ?? '') : `a${input.position}`
    const chosen = types?.get(argument)
    const form = chosen === undefined ? textFormOf(input.type) : isJsonArray(chosen) ? JSON_ARRAY : null
    return { key, argument, values, list: elements, form }
  })
}

function isJsonArray({ name, dimensions }: TypeName): boolean {
  return name === 'jsonb' && dimensions === 1
}

function bodyOf(slots: readonly Slot[], given: Given): Buffer {
  const bytes = given.kind === 'named' && given.whole !== null ? given.whole : wrapArguments(slots)
  if (slots.every(({ form }) => form === null)) return bytes
  return withArrayTexts(bytes, new Map(slots.flatMap(({ key, form }) => (form === null ? [] : [[key, form]]))))
}

function bodyTree(slots: readonly Slot[], types: ChosenTypes, byName: boolean, value: Parameter): ArgumentsTree {
  const columns = slots.map(({ key, argument }) => recordColumn(key, typeOf(argument, types)))
  return {
    record: recordSource(value, BODY, columns, 'one'),
    arguments: slots.map(({ key, argument: { input } }) =>
      toArgument(byName ? key : null, column(BODY, key), input.mode === 'variadic'),
    ),
  }
}

// ---- a query string ------------------------------------------------------------------------------------------

function bindQuery(
  args: readonly ResolvedArgument[],
  types: ChosenTypes,
  byName: boolean,
  shape: Shape,
): () => ArgumentsTree {
  const parameters = args.map(({ input, values: [value] }) => {
    if (value?.kind !== 'query') throw new Error('a query string has a text for each argument')
    return shape.value(toParameter(value, input))
  })
  return () => ({
    record: null,
    arguments: args.flatMap((argument, index) => {
      const { name, mode } = argument.input
      const parameter = parameters[index]
      if (parameter === undefined) return []
      return [toArgument(byName ? name : null, exactly(parameter, argument, types), mode === 'variadic')]
    }),
  })
}

/** The check types a parameter by the argument, but takes a domain for what it is made of, and knows no polymorphic types. */
function exactly(parameter: Parameter, argument: ResolvedArgument, types: ChosenTypes): Expression {
  const { kind } = argument.input.type
  if (kind !== 'domain' && kind !== 'pseudo') return parameter
  return { kind: 'cast', operand: parameter, type: typeOf(argument, types), span: NOWHERE }
}

function toArgument(name: string | null, value: Expression, variadic: boolean): Argument {
  return { kind: 'argument', name, value, variadic, span: NOWHERE }
}

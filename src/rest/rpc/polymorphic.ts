/**
 * Chooses types for polymorphic arguments (PostgreSQL manual, 36.2.5), as PostgreSQL types a constant. An
 * integer is an `int4` if it fits, otherwise an `int8` or `numeric`; a string is `text`, an object `jsonb`,
 * and an array an array of the type of its elements.
 *
 * All arguments of a family have one type, the one that all their values can have.
 */
import type { DataType } from '../../catalog/model.ts'
import type { JsonType } from '../../json/json-body.ts'
import { leavesOf } from '../../json/json-leaves.ts'
import type { TypeName } from '../../language/tree/ast.ts'
import { integerType } from '../body/integer-type.ts'
import type { PassedValue } from './passed-arguments.ts'
import { builtIn } from './type-name.ts'

type Family = 'any' | 'compatible'

interface Polymorphic {
  readonly family: Family
  /** The accepted values: a value of the family's type, an array of it, or either. */
  readonly takes: 'any' | 'array' | 'scalar'
}

const POLYMORPHIC: ReadonlyMap<string, Polymorphic> = new Map([
  ['anyelement', { family: 'any', takes: 'any' }],
  ['anyarray', { family: 'any', takes: 'array' }],
  ['anynonarray', { family: 'any', takes: 'scalar' }],
  ['anycompatible', { family: 'compatible', takes: 'any' }],
  ['anycompatiblearray', { family: 'compatible', takes: 'array' }],
  ['anycompatiblenonarray', { family: 'compatible', takes: 'scalar' }],
])

/**
 * Reports whether a pseudo-type has JSON values. `anyenum` and `anyrange` do not, because JSON does not
 * determine their type.
 */
export function isPolymorphic(type: DataType): boolean {
  return polymorphicOf(type) !== undefined
}

/** Reports whether this is a pseudo-type for which a call cannot give a value. */
export function isUnsupportedPseudo(type: DataType): boolean {
  return type.kind === 'pseudo' && !isPolymorphic(type)
}

/** Reports whether this is a polymorphic array type. */
export function isPolymorphicArray(type: DataType): boolean {
  return polymorphicOf(type)?.takes === 'array'
}

/** Reports whether this polymorphic type accepts a value that is not an array. */
export function isPolymorphicScalar(type: DataType): boolean {
  const takes = polymorphicOf(type)?.takes
  return takes === 'any' || takes === 'scalar'
}

function polymorphicOf(type: DataType): Polymorphic | undefined {
  return type.kind === 'pseudo' ? POLYMORPHIC.get(type.name) : undefined
}

/** A polymorphic argument and its values. */
export interface PolymorphicArgument {
  readonly type: DataType
  /** The values; several for the elements of a variadic argument. */
  readonly values: readonly PassedValue[]
  /** True if the values are elements of the array type `type`. */
  readonly elements: boolean
}

/** Chooses a type for each argument, in the same order. Null if no type fits all values of a family. */
export function choosePolymorphic(args: readonly PolymorphicArgument[]): readonly TypeName[] | null {
  const chosen = new Map<Family, Chosen | null>()
  const members = args.map(({ type, values, elements }) => {
    const polymorphic = polymorphicOf(type)
    if (polymorphic === undefined) throw new Error(`"${type.name}" is not polymorphic`)
    const kinds = values.flatMap(value => (elements ? [kindOf(value)] : kindsOf(value, polymorphic.takes)))
    return { ...polymorphic, kind: kinds.reduce(together, null) }
  })
  for (const { family, kind } of members) chosen.set(family, together(chosen.get(family) ?? null, kind))
  if ([...chosen.values()].includes(MISFIT)) return null
  // PostgreSQL has no arrays of arrays, so an array type cannot be an element type as well.
  if (members.some(({ family, takes }) => takes === 'array' && chosen.get(family)?.array === true)) return null
  return members.map(({ family, takes }) => {
    // Only NULLs or no values: PostgreSQL treats an untyped constant as text.
    const kind = chosen.get(family) ?? TEXT
    return takes === 'array' ? builtIn(kind.name, 1) : builtIn(kind.name, kind.array ? 1 : 0)
  })
}

/** A chosen type, or the constant for values without a common type. */
interface Chosen {
  readonly name: string
  readonly array: boolean
}

const MISFIT: Chosen = { name: '', array: false }
const TEXT: Chosen = { name: 'text', array: false }
const JSONB: Chosen = { name: 'jsonb', array: false }
const BOOL: Chosen = { name: 'bool', array: false }
const INT4: Chosen = { name: 'int4', array: false }
const INT8: Chosen = { name: 'int8', array: false }
const NUMERIC: Chosen = { name: 'numeric', array: false }
const NUMBER = { int4: INT4, int8: INT8, numeric: NUMERIC } as const

/** Numeric types; each value of one is a value of the next. */
const NUMBERS: readonly string[] = ['int4', 'int8', 'numeric']

/** The type that both can have; null means that nothing is known. */
function together(a: Chosen | null, b: Chosen | null): Chosen | null {
  if (a === b || a === null || b === null) return a ?? b
  if (a === MISFIT || b === MISFIT || a.array !== b.array) return MISFIT
  if (a.name === b.name) return a
  const widest = Math.max(NUMBERS.indexOf(a.name), NUMBERS.indexOf(b.name))
  return NUMBERS.includes(a.name) && NUMBERS.includes(b.name) ? { name: NUMBERS[widest] ?? '', array: a.array } : MISFIT
}

/** The types that the values of an argument suggest for its family. */
function kindsOf(value: PassedValue, takes: Polymorphic['takes']): readonly (Chosen | null)[] {
  if (value.kind === 'query') return [TEXT]
  if (takes === 'array') return value.type === 'array' ? [elementOf(value.bytes)] : [null]
  const kind = kindOf(value)
  return [takes === 'scalar' && kind?.array === true ? JSONB : kind]
}

function kindOf(value: PassedValue): Chosen | null {
  if (value.kind === 'query') return TEXT
  if (value.type !== 'array') return scalarOf(value.type, value.bytes, 0, value.bytes.length)
  const element = elementOf(value.bytes)
  return element?.name === 'jsonb' ? JSONB : { name: element?.name ?? 'text', array: true }
}

/**
 * The type that all elements can have, where nested arrays are dimensions. Elements without a common type, or
 * objects, are `jsonb`.
 */
function elementOf(bytes: Buffer): Chosen | null {
  let kind: Chosen | null = null
  for (const { type, start, end } of leavesOf(bytes)) {
    kind = together(kind, scalarOf(type, bytes, start, end))
    if (kind === MISFIT || kind === JSONB) return JSONB
  }
  return kind
}

function scalarOf(type: Exclude<JsonType, 'array'>, bytes: Buffer, start: number, end: number): Chosen | null {
  switch (type) {
    case 'null':
      return null
    case 'integer':
      return NUMBER[integerType(bytes, start, end)]
    case 'number':
      return NUMERIC
    case 'boolean':
      return BOOL
    case 'string':
      return TEXT
    case 'object':
      return JSONB
  }
}

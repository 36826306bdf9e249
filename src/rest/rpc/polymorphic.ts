/**
 * Types for polymorphic arguments (PostgreSQL manual, 36.2.5), which JSON does not name: chosen as PostgreSQL types a constant. An integer that fits is an `int4`, a
 * larger one an `int8` or `numeric`, a text is `text`, an object `jsonb`, an array an array of what its elements are.
 *
 * All arguments of a family are one type: what they can be together.
 */
import type { DataType } from '../../catalog/model.ts'
import type { JsonType } from '../../json/json-body.ts'
import { leavesOf } from '../../json/json-leaves.ts'
import type { TypeName } from '../../language/tree/ast.ts'
import { integerType } from '../body/integer-type.ts'
import type { GivenValue } from './given.ts'
import { builtIn } from './type-name.ts'

type Family = 'any' | 'compatible'

interface Polymorphic {
  readonly family: Family
  /** A value of the family's type, an array of it, or either. */
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

/** One that JSON has values for; `anyenum` and `anyrange` need a type that nothing in JSON tells. */
export function isPolymorphic(type: DataType): boolean {
  return polymorphicOf(type) !== undefined
}

/** A pseudo-type that a call cannot give a value of. */
export function isUntold(type: DataType): boolean {
  return type.kind === 'pseudo' && !isPolymorphic(type)
}

export function isPolymorphicArray(type: DataType): boolean {
  return polymorphicOf(type)?.takes === 'array'
}

export function isPolymorphicScalar(type: DataType): boolean {
  const takes = polymorphicOf(type)?.takes
  return takes === 'any' || takes === 'scalar'
}

function polymorphicOf(type: DataType): Polymorphic | undefined {
  return type.kind === 'pseudo' ? POLYMORPHIC.get(type.name) : undefined
}

export interface PolymorphicArgument {
  readonly type: DataType
  /** Of a variadic argument all that were given. */
  readonly values: readonly GivenValue[]
  /** The values are elements of the array that the type is. */
  readonly elements: boolean
}

/** A type for each argument, in the same order. Null when they cannot be of one type. */
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
  // There is no array of arrays: what is an array cannot be an element as well.
  if (members.some(({ family, takes }) => takes === 'array' && chosen.get(family)?.array === true)) return null
  return members.map(({ family, takes }) => {
    // Nothing but NULLs, or nothing at all: what PostgreSQL takes a text without a type for.
    const kind = chosen.get(family) ?? TEXT
    return takes === 'array' ? builtIn(kind.name, 1) : builtIn(kind.name, kind.array ? 1 : 0)
  })
}

/** A type, or that there is none. */
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

/** Each is one of the next as well. */
const NUMBERS: readonly string[] = ['int4', 'int8', 'numeric']

/** What both can be; null is what nothing is known of. */
function together(a: Chosen | null, b: Chosen | null): Chosen | null {
  if (a === b || a === null || b === null) return a ?? b
  if (a === MISFIT || b === MISFIT || a.array !== b.array) return MISFIT
  if (a.name === b.name) return a
  const widest = Math.max(NUMBERS.indexOf(a.name), NUMBERS.indexOf(b.name))
  return NUMBERS.includes(a.name) && NUMBERS.includes(b.name) ? { name: NUMBERS[widest] ?? '', array: a.array } : MISFIT
}

/** What an argument says of its family: of an array the elements. */
function kindsOf(value: GivenValue, takes: Polymorphic['takes']): readonly (Chosen | null)[] {
  if (value.kind === 'query') return [TEXT]
  if (takes === 'array') return value.type === 'array' ? [elementOf(value.bytes)] : [null]
  const kind = kindOf(value)
  return [takes === 'scalar' && kind?.array === true ? JSONB : kind]
}

function kindOf(value: GivenValue): Chosen | null {
  if (value.kind === 'query') return TEXT
  if (value.type !== 'array') return scalarOf(value.type, value.bytes, 0, value.bytes.length)
  const element = elementOf(value.bytes)
  return element?.name === 'jsonb' ? JSONB : { name: element?.name ?? 'text', array: true }
}

/** The type that all elements can have; arrays in arrays are dimensions. What has none in common, or is an object, is `jsonb`. */
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

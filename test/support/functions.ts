/** Functions for hand-written catalogs: `functionOf('add(a int4, b int4 default 1)')`. */
import type { Catalog, Column, DatabaseFunction, DataType, FunctionInput } from '../../src/catalog/model.ts'
import { arrayOf, baseType, catalogOf } from './model.ts'

const CATEGORIES: Readonly<Record<string, string>> = {
  date: 'D',
  interval: 'T',
  float8: 'N',
  float4: 'N',
  int2: 'N',
  json: 'U',
}

const PSEUDO = new Set([
  'anyelement',
  'anyarray',
  'anynonarray',
  'anycompatible',
  'anycompatiblearray',
  'anyenum',
  'any',
])

/** `int4`, `int4[]`, or the name of a polymorphic type. */
export function typeNamed(name: string): DataType {
  if (name.endsWith('[]')) return arrayOf(typeNamed(name.slice(0, -2)))
  const base = baseType(name)
  if (PSEUDO.has(name)) return { ...base, kind: 'pseudo', category: 'P' }
  return { ...base, category: CATEGORIES[name] ?? base.category }
}

export interface FunctionParts {
  readonly schema?: string
  readonly volatility?: DatabaseFunction['volatility']
  readonly returnsSet?: boolean
  readonly result?: DatabaseFunction['result']
  /** Types by name, in addition to those that `typeNamed` supports. */
  readonly types?: Readonly<Record<string, DataType>>
}

/** Inputs are `[variadic] [name] type [default x]`, separated by commas. */
export function functionOf(signature: string, parts: FunctionParts = {}): DatabaseFunction {
  const [, name = '', list = ''] = /^([^(]*)\((.*)\)$/.exec(signature) ?? []
  const texts = list === '' ? [] : list.split(', ')
  const inputs = texts.map((text, index) => inputOf(text, index, parts.types ?? {}))
  const { schema = 'public', volatility = 'volatile', returnsSet = false } = parts
  return {
    ...{
      oid: 1,
      schema,
      name,
      resource: schema === 'public' ? name : `${schema}.${name}`,
      comment: null,
      example: null,
    },
    ...{
      volatility,
      returnsSet,
      strict: false,
      executable: true,
      variadic: inputs.some(({ mode }) => mode === 'variadic'),
    },
    ...{ identityArgs: list, resultText: 'text', inputs, outputs: [] },
    result: parts.result ?? { kind: 'scalar', column: columnOf(name, 'text') },
  }
}

export function columnOf(name: string, type: string): Column {
  return {
    ...{ name, type: typeNamed(type), typeText: type, nullable: true },
    ...{ default: null, generated: null, identity: null, comment: null, example: null },
  }
}

export function catalogWith(...functions: readonly DatabaseFunction[]): Catalog {
  const byResource = new Map<string, DatabaseFunction[]>()
  for (const of of functions) byResource.set(of.resource, [...(byResource.get(of.resource) ?? []), of])
  return { ...catalogOf(), functions: byResource }
}

function inputOf(text: string, index: number, types: Readonly<Record<string, DataType>>): FunctionInput {
  const [, variadic, name = null, type = '', value = null] =
    /^(variadic )?(?:(\S+) )??(\S+?)(?: default (.*))?$/.exec(text) ?? []
  return {
    ...{ position: index + 1, name, type: types[type] ?? typeNamed(type), typeText: type },
    mode: variadic === undefined ? 'in' : 'variadic',
    ...{ required: value === null, default: value },
  }
}

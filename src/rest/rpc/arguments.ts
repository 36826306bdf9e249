/** Reads the arguments of a call from a request. */
import type { DatabaseFunction } from '../../catalog/model.ts'
import { GatewayError } from '../../errors.ts'
import { type JsonBody, type KnownKeys, partBytes } from '../../json/json-body.ts'
import type { WrittenParameter } from '../parameters/request-parameters.ts'
import { explainMismatch } from './explain-mismatch.ts'
import type { BodyValue, NamedArguments, PassedArguments } from './passed-arguments.ts'

/** PostgreSQL's limit on the arguments of a function, FUNC_MAX_ARGS. */
const ARGUMENTS_MAX = 100

/** Limit on the elements of a variadic argument in a body. A longer array can be passed by name. */
export const POSITIONAL_MAX = 10_000

/**
 * Reads the arguments from a body: an object, an array, a single value, or nothing
 * (docs/reference/functions.md#arguments).
 */
export function argumentsOfBody(body: JsonBody): PassedArguments {
  switch (body.kind) {
    case 'empty':
      return NOTHING
    case 'object': {
      if (body.members.length > ARGUMENTS_MAX) throw tooMany(body.members.length)
      const values = new Map<string, BodyValue>()
      for (const member of body.members) {
        values.set(member.key, { kind: 'json', type: member.type, bytes: partBytes(body, member) })
      }
      return { kind: 'named', values, whole: body.bytes }
    }
    case 'array':
      return {
        kind: 'positional',
        values: body.items.map(item => ({ kind: 'json', type: item.type, bytes: partBytes(body, item) })),
      }
    case 'scalar':
      return { kind: 'positional', values: [{ kind: 'json', type: body.type, bytes: body.bytes }] }
  }
}

/**
 * The keys that a body can have. An argument that none of the overloads has is rejected while the body is
 * read, with the same error as by `resolve`.
 */
export function argumentKeys(overloads: readonly DatabaseFunction[], name: string): KnownKeys {
  return {
    inItems: false,
    has: key => isInput(overloads, key),
    refuse(key) {
      throw new GatewayError('PARSE_ERROR', explainMismatch(overloads, givenAlone(key), name))
    },
  }
}

function isInput(overloads: readonly DatabaseFunction[], name: string): boolean {
  for (const { inputs } of overloads) {
    for (const input of inputs) if (input.name === name) return true
  }
  return false
}

function givenAlone(key: string): NamedArguments {
  return { kind: 'named', values: new Map([[key, { kind: 'query', texts: [] }]]), whole: null }
}

/**
 * Reads the arguments from a query string. A name that is an input of any overload is an argument; other
 * parameters apply to the result.
 */
export function argumentsOfQuery(
  parameters: readonly WrittenParameter[],
  overloads: readonly DatabaseFunction[],
): { readonly given: NamedArguments; readonly others: readonly WrittenParameter[] } {
  const inputs = new Set(overloads.flatMap(of => of.inputs.map(({ name }) => name)))
  const texts = new Map<string, string[]>()
  const others: WrittenParameter[] = []
  for (const parameter of parameters) {
    const { name, value } = parameter
    const known = texts.get(name)
    if (!inputs.has(name)) others.push(parameter)
    else if (known === undefined) texts.set(name, [value])
    else known.push(value)
  }
  const values = new Map(Array.from(texts, ([name, list]) => [name, { kind: 'query', texts: list } as const]))
  return { given: { kind: 'named', values, whole: null }, others }
}

const NOTHING: NamedArguments = { kind: 'named', values: new Map(), whole: null }

function tooMany(count: number): GatewayError {
  return new GatewayError(
    'PARSE_ERROR',
    `${count} arguments are more than the ${ARGUMENTS_MAX} that PostgreSQL allows; no function has that many inputs`,
  )
}

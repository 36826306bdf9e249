/**
 * Examples of calls: the one declared in a function's comment (docs/guides/openapi.md#custom-examples),
 * as a request body, or arguments made from types.
 */
import type { DatabaseFunction, FunctionInput } from '../catalog/model.ts'
import { type DeclaredExample, invalidReason, invalidValue, readJson } from './declared-examples.ts'
import { exampleValue } from './examples.ts'
import { nullable, valueSchema } from './types.ts'
import { isValid } from './validate-value.ts'

/**
 * Reports whether an argument is required. A variadic function accepts its last argument by name only
 * together with all others (rpc/explain-mismatch.ts).
 */
export function isNeeded(of: DatabaseFunction, { required }: FunctionInput): boolean {
  return required || of.variadic
}

/** Example arguments by name. */
export function namedExample(of: DatabaseFunction): Readonly<Record<string, unknown>> {
  const given =
    declaredArguments(of) ?? of.inputs.map(input => (isNeeded(of, input) ? generatedValue(input) : undefined))
  const named = of.inputs.map(({ name }, index) => [name ?? '', given[index]] as const)
  return Object.fromEntries(named.filter(([name, value]) => name !== '' && value !== undefined))
}

/** Example arguments by position, as many as follow one another. */
export function positionalExample(of: DatabaseFunction): readonly unknown[] {
  const given = declaredArguments(of)
  if (given === null)
    return of.inputs.filter(({ required, mode }) => required && mode !== 'variadic').map(generatedValue)
  const gap = given.indexOf(undefined)
  const values = gap < 0 ? given : given.slice(0, gap)
  const last = values.at(-1)
  return of.variadic && values.length === of.inputs.length && Array.isArray(last)
    ? [...values.slice(0, -1), ...last]
    : values
}

/** The declared example of one argument; undefined if absent. */
export function declaredArgument(of: DatabaseFunction, { position }: FunctionInput): unknown {
  return declaredArguments(of)?.[position - 1]
}

/** Null where any value is possible. */
function generatedValue({ type, typeText }: FunctionInput): unknown {
  return exampleValue(type, valueSchema(type, typeText)) ?? null
}

// // --- declared ---

/** By input; undefined where the default is used. A variadic input has its array. */
type Arguments = readonly unknown[]

function declaredArguments(of: DatabaseFunction): Arguments | null {
  if (of.example === null) return null
  const call = readCall(of.example, of)
  return call.kind === 'value' ? call.value : null
}

/** Reads a declared call: an object is arguments by name, an array by position. */
export function readCall(text: string, of: DatabaseFunction): DeclaredExample<Arguments> {
  const body = readJson(text)
  if (body?.kind === 'invalid') return body
  const call = Array.isArray(body?.value) ? byPosition(body.value, of) : byName(body?.value, of)
  if (call.kind === 'invalid') return call
  const wrong = of.inputs
    .map((input, index) => invalidArgumentReason(call.value[index], input, of))
    .find(why => why !== null)
  return wrong === undefined ? call : invalidValue(wrong)
}

function byName(body: unknown, of: DatabaseFunction): DeclaredExample<Arguments> {
  if (typeof body !== 'object' || body === null) {
    const made = JSON.stringify(positionalExample({ ...of, example: null }))
    return invalidValue(`it is not a JSON object or array of arguments, such as ${made}`)
  }
  const given = new Map(Object.entries(body))
  const value = of.inputs.map(({ name }) => (name === null ? undefined : given.get(name)))
  const unknown = [...given.keys()].find(key => !of.inputs.some(({ name }) => name === key))
  return unknown === undefined
    ? { kind: 'value', value }
    : invalidValue(`there is no argument ${JSON.stringify(unknown)}`)
}

function byPosition(body: readonly unknown[], { inputs, variadic }: DatabaseFunction): DeclaredExample<Arguments> {
  const single = variadic ? inputs.length - 1 : inputs.length
  const rest = body.slice(single)
  if (!variadic && rest.length > 0)
    return invalidValue(`it has ${body.length} arguments, and the function takes ${single}`)
  return { kind: 'value', value: [...body.slice(0, single), ...(rest.length > 0 ? [rest] : [])] }
}

/** Any argument may be NULL. */
function invalidArgumentReason(value: unknown, input: FunctionInput, of: DatabaseFunction): string | null {
  const name = input.name === null ? `argument ${input.position}` : `argument ${JSON.stringify(input.name)}`
  if (value === undefined) return isNeeded(of, input) ? `${name} is missing` : null
  const schema = valueSchema(input.type, input.typeText)
  return isValid(value, nullable(schema)) ? null : `${name}: ${invalidReason(JSON.stringify(value), input, schema)}`
}

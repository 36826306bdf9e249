/**
 * The arguments of a tool as a table: its JSON Schema is printed from it, and what a caller gives is read by
 * it.
 */
import { nearest } from '../text/nearest.ts'
import { shorten } from '../text/shorten.ts'
import { invalid, isJsonObject, kindOf, ownMember, type Params } from './rpc.ts'
import type { JsonSchema } from './schema.ts'

/** An argument of a tool. */
export type ToolArgument = TextArgument | FlagArgument | IntegerArgument

/** An argument that is a text. */
export interface TextArgument {
  readonly kind: 'text'
  readonly description: string
  readonly required: boolean
  /** In UTF-16 units; null: the message's own limit is enough. */
  readonly lengthMax: number | null
  /** The only possible ones; null: any text. */
  readonly choices: readonly string[] | null
}

/** An argument that is a boolean. */
export interface FlagArgument {
  readonly kind: 'flag'
  readonly description: string
  readonly default: boolean
}

/** An argument that is an integer. */
export interface IntegerArgument {
  readonly kind: 'integer'
  readonly description: string
  readonly min: number
  readonly max: number
  readonly default: number
}

/** The arguments of a tool by name. */
export type ArgumentTable = Readonly<Record<string, ToolArgument>>

/** A text that was not given and need not be is null. */
export type ArgumentValues<T extends ArgumentTable> = {
  readonly [N in keyof T]: T[N] extends FlagArgument
    ? boolean
    : T[N] extends IntegerArgument
      ? number
      : T[N] extends { readonly required: true }
        ? string
        : string | null
}

/** A required text argument. */
export function required(description: string, lengthMax: number | null = null): TextArgument & { required: true } {
  return { kind: 'text', description, required: true, lengthMax, choices: null }
}

/** An optional text argument. */
export function optional(description: string, lengthMax: number): TextArgument & { required: false } {
  return { kind: 'text', description, required: false, lengthMax, choices: null }
}

/** A text argument with a fixed set of values. */
export function choiceArgument(description: string, choices: readonly string[]): TextArgument & { required: false } {
  return { kind: 'text', description, required: false, lengthMax: null, choices }
}

/** Prints the JSON Schema of a tool's arguments. */
export function printArgumentSchema(table: ArgumentTable): JsonSchema & { readonly type: 'object' } {
  const names = Object.keys(table).filter(name => isRequired(table[name]))
  return {
    type: 'object',
    properties: Object.fromEntries(Object.entries(table).map(([name, argument]) => [name, schemaOf(argument)])),
    ...(names.length === 0 ? {} : { required: names }),
    additionalProperties: false,
  }
}

/** Throws an `RpcError` that names the argument. */
export function readToolArguments<T extends ArgumentTable>(table: T, given: unknown): ArgumentValues<T> {
  const object = given ?? {}
  if (!isJsonObject(object)) throw invalid('arguments', `expected an object, not ${kindOf(object)}`)
  for (const name of Object.keys(object)) {
    if (!Object.hasOwn(table, name)) throw unknownArgument(name, Object.keys(table))
  }
  const read = Object.entries(table).map(([name, argument]) => [name, readOne(name, argument, object)])
  return Object.fromEntries(read) as ArgumentValues<T>
}

function isRequired(argument: ToolArgument | undefined): boolean {
  return argument?.kind === 'text' && argument.required
}

function schemaOf(argument: ToolArgument): JsonSchema {
  const { description } = argument
  switch (argument.kind) {
    case 'flag':
      return { type: 'boolean', description, default: argument.default }
    case 'integer':
      return {
        type: 'integer',
        description,
        minimum: argument.min,
        maximum: argument.max,
        default: argument.default,
      }
    case 'text':
      return {
        type: 'string',
        description,
        ...(argument.lengthMax === null ? {} : { maxLength: argument.lengthMax }),
        ...(argument.choices === null ? {} : { enum: argument.choices }),
      }
  }
}

function readOne(name: string, argument: ToolArgument, given: Params): string | boolean | number | null {
  const value = ownMember(given, name)
  switch (argument.kind) {
    case 'flag':
      if (value === undefined) return argument.default
      if (typeof value !== 'boolean') throw invalid(name, `expected true or false, not ${kindOf(value)}`)
      return value
    case 'integer': {
      const { min, max } = argument
      if (value === undefined) return argument.default
      if (typeof value !== 'number' || !Number.isInteger(value) || value < min || value > max) {
        throw invalid(name, `expected an integer from ${min} to ${max}, not ${kindOf(value)}`)
      }
      return value
    }
    case 'text':
      return readText(name, argument, value)
  }
}

function readText(name: string, { required, lengthMax, choices }: TextArgument, value: unknown): string | null {
  if (value === undefined) {
    if (required) throw invalid(name, 'is required; expected a string')
    return null
  }
  if (typeof value !== 'string') throw invalid(name, `expected a string, not ${kindOf(value)}`)
  if (lengthMax !== null && value.length > lengthMax) {
    throw invalid(name, `expected at most ${lengthMax} characters, not ${value.length}`)
  }
  if (choices !== null && !choices.includes(value)) throw notAmong(name, value, choices)
  return value
}

/** The error for an unknown text: suggests the nearest accepted one and lists them all. */
export function notAmong(name: string, value: string, choices: readonly string[]): Error {
  const near = nearest(value, choices)
  const help = near === null ? 'there are' : `did you mean ${JSON.stringify(near)}? There are`
  return invalid(name, `there is no ${JSON.stringify(shorten(value))}; ${help}: ${choices.join(', ') || 'none'}`)
}

function unknownArgument(name: string, names: readonly string[]): Error {
  const near = nearest(name, names)
  const meant = near === null ? `there are: ${names.join(', ') || 'none'}` : `did you mean ${JSON.stringify(near)}?`
  return invalid(shorten(name), `is not an argument; ${meant}`)
}

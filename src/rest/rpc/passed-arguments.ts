/**
 * The arguments of a call (docs/reference/functions.md#arguments): by name or by position, as JSON or as
 * texts of a query string.
 */
import type { JsonValue } from '../../json/json-body.ts'

/** The arguments of a call. */
export type PassedArguments = NamedArguments | PositionalArguments

/** Arguments by name. */
export interface NamedArguments {
  readonly kind: 'named'
  readonly values: ReadonlyMap<string, PassedValue>
  /** The body that contains all arguments, or null if they come from a query string. */
  readonly whole: Buffer | null
}

/** Arguments by position. */
export interface PositionalArguments {
  readonly kind: 'positional'
  readonly values: readonly BodyValue[]
}

/** The value of one argument. */
export type PassedValue = BodyValue | QueryValue

/** A JSON value in a body. */
export interface BodyValue extends JsonValue {
  readonly kind: 'json'
}

/** The texts of `?arg=value`; at least one, several if the parameter is repeated. */
export interface QueryValue {
  readonly kind: 'query'
  readonly texts: readonly string[]
}

/**
 * Describes the arguments for messages: `no arguments`, `the arguments "a" and "b"`, `3 arguments by
 * position`.
 */
export function describePassed(given: PassedArguments): string {
  if (given.kind === 'positional') {
    return given.values.length === 1 ? 'one argument by position' : `${given.values.length} arguments by position`
  }
  const names = [...given.values.keys()].map(name => `"${name}"`)
  if (names.length === 0) return 'no arguments'
  if (names.length > NAMES_SHOWN) return `${names.length} arguments`
  const last = names.pop() ?? ''
  return names.length === 0 ? `the argument ${last}` : `the arguments ${names.join(', ')} and ${last}`
}

const NAMES_SHOWN = 8

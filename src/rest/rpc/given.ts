/** What a call was given (docs/reference/functions.md#arguments): arguments by name or by position, as JSON or as texts of a query string. */
import type { JsonValue } from '../../json/json-body.ts'

export type Given = NamedArguments | PositionalArguments

export interface NamedArguments {
  readonly kind: 'named'
  readonly values: ReadonlyMap<string, GivenValue>
  /** The body that has them all; null for those of a query string. */
  readonly whole: Buffer | null
}

export interface PositionalArguments {
  readonly kind: 'positional'
  readonly values: readonly BodyValue[]
}

export type GivenValue = BodyValue | QueryValue

/** A value in a body. */
export interface BodyValue extends JsonValue {
  readonly kind: 'json'
}

/** `?arg=value`, possibly several times: at least one text. */
export interface QueryValue {
  readonly kind: 'query'
  readonly texts: readonly string[]
}

/** For messages: `no arguments`, `the arguments "a" and "b"`, `3 arguments by position`. */
export function describeGiven(given: Given): string {
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

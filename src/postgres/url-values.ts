/** Reads values of a connection URL's parameters; problems name the accepted values. */
import { nearest } from '../text/nearest.ts'
import { shorten } from '../text/shorten.ts'

/** The parameters of the URL by name. */
export type UrlParameters = ReadonlyMap<string, string>

export function readBoolean(name: string, given: UrlParameters, problems: string[]): boolean | null {
  const value = oneOf(name, given.get(name), ['true', 'false'], problems)
  return value === null ? null : value === 'true'
}

export function oneOf<T extends string>(
  name: string,
  value: string | undefined,
  allowed: readonly T[],
  problems: string[],
): T | null {
  if (value === undefined) return null
  const found = allowed.find(candidate => candidate === value)
  if (found !== undefined) return found
  const near = nearest(value, allowed)
  const hint = near === null ? '' : `; did you mean ${near}?`
  problems.push(`${name}=${shorten(value)} is not one of ${allowed.join(', ')}${hint}`)
  return null
}

/** The accepted range of a number. */
export interface NumberBounds {
  readonly min: number
  readonly max: number
  readonly default: number
  /** The unit for messages, such as `seconds`. */
  readonly unit: string
}

export function readInteger(name: string, given: UrlParameters, bounds: NumberBounds, problems: string[]): number {
  const value = given.get(name)
  if (value === undefined) return bounds.default
  const number = /^[0-9]{1,9}$/.test(value) ? Number(value) : -1
  if (number >= bounds.min && number <= bounds.max) return number
  problems.push(`${name}=${shorten(value)} is not a number of ${bounds.unit} from ${bounds.min} to ${bounds.max}`)
  return bounds.default
}

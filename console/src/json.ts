/** JSON whose numbers keep every digit, so `12.50` and 64-bit keys are shown and sent unchanged. */

/** The text of a number that JavaScript would round or print differently. */
export class Digits {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
  /** For `JSON.stringify`, which prints the text; `print` removes the quotes. */
  toJSON(): string {
    return `${MARK}${this.text}`
  }
}

/** A prefix that no other string has, because JSON from PostgreSQL cannot contain this character. */
const MARK = '\u0000digits:'

export type Json = null | boolean | number | string | Digits | readonly Json[] | { readonly [name: string]: Json }

export type Row = Readonly<Record<string, Json>>

type Reviver = (this: unknown, name: string, value: unknown, context?: { readonly source?: string }) => unknown

/** Parses JSON. In a browser that does not pass the source text of numbers to a reviver, they are rounded. */
export function parseJson(text: string): Json {
  const keep: Reviver = (_name, value, context) => {
    const source = context?.source
    return typeof value === 'number' && source !== undefined && source !== String(value) ? new Digits(source) : value
  }
  return JSON.parse(text, keep as (this: unknown, name: string, value: unknown) => unknown) as Json
}

/** The text of a value; `indent` is the number of spaces of each level. */
export function printJson(value: Json, indent = 0): string {
  return JSON.stringify(value, null, indent).replace(/"\\u0000digits:([-+.\deE]+)"/g, '$1')
}

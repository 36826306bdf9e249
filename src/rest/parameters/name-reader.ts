/**
 * The notation of `select`, `sort`, `expand` and `search_columns`: names separated by punctuation. A name
 * that contains punctuation is enclosed in double quotes.
 *
 * name = '"' { character | '""' } '"' | { character except the stops }
 */
import { GatewayError } from '../../errors.ts'
import { shorten } from '../../text/shorten.ts'

/** Reads names from a text and reports errors with the parameter and position. */
export class NameReader {
  readonly #text: string
  readonly #parameter: string
  #at = 0

  constructor(text: string, parameter: string) {
    this.#text = text
    this.#parameter = parameter
  }

  get done(): boolean {
    return this.#at >= this.#text.length
  }

  /** The next character; empty at the end. */
  get next(): string {
    return this.#text[this.#at] ?? ''
  }

  /** Consumes `punctuation` if it comes next. */
  take(punctuation: string): boolean {
    if (!this.#text.startsWith(punctuation, this.#at)) return false
    this.#at += punctuation.length
    return true
  }

  /**
   * Reads a name up to one of `stops` or the end.
   * @throws {GatewayError} `PARSE_ERROR` for an empty name, unless it is written `""`.
   */
  name(stops: readonly string[]): string {
    if (this.next === '"') return this.#quoted()
    let end = this.#text.length
    for (const stop of stops) {
      const found = this.#text.indexOf(stop, this.#at)
      if (found >= 0 && found < end) end = found
    }
    const name = this.#text.slice(this.#at, end).trim()
    if (name === '') this.fail('has an empty name')
    this.#at = end
    return name
  }

  #quoted(): string {
    let name = ''
    let at = this.#at + 1
    for (;;) {
      const quote = this.#text.indexOf('"', at)
      if (quote < 0) this.fail('has a name whose closing double quote is missing')
      name += this.#text.slice(at, quote)
      if (this.#text[quote + 1] !== '"') {
        this.#at = quote + 1
        // Blanks are allowed, as around an unquoted name.
        while (this.next === ' ') this.#at += 1
        return name
      }
      name += '"'
      at = quote + 2
    }
  }

  /** Throws `PARSE_ERROR` for the current position. */
  fail(what: string, expected = ''): never {
    const rest = expected === '' ? '' : `; ${expected}`
    throw new GatewayError(
      'PARSE_ERROR',
      `${this.#parameter} "${shorten(this.#text)}" ${what} at position ${this.#at + 1}${rest}`,
    )
  }
}

/** Parses `a,b,"c,d"` and returns each name once. */
export function parseNameList(text: string, parameter: string): readonly string[] {
  const reader = new NameReader(text, parameter)
  const names = new Set<string>()
  do {
    const name = reader.name([','])
    if (names.has(name)) reader.fail(`has "${shorten(name)}" twice`)
    names.add(name)
  } while (reader.take(','))
  if (!reader.done) reader.fail('has text after a name', 'separate names with a comma')
  return [...names]
}

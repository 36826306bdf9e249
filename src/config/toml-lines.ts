/**
 * Finds the line of each key in a TOML text, for error messages, because the TOML parser reports no
 * positions. The text must be valid TOML (https://toml.io/en/v1.0.0); callers have parsed it before.
 */
import { parse } from 'smol-toml'

/** The lines of a TOML text. */
export interface TomlLines {
  /**
   * The line, from 1, of a key, of a table's header, or of an array's element (its index as text); null if
   * the text does not contain it. A table without a header has the line of its first key.
   */
  lineOf(path: readonly string[]): number | null
}

/** Indexes the lines of a TOML text. */
export function indexTomlLines(toml: string): TomlLines {
  const lines = new Scanner(toml).scan()
  return { lineOf: path => lines.get(JSON.stringify(path)) ?? null }
}

/** A cursor over the text. Each method is one production of TOML's grammar; values are skipped. */
class Scanner {
  readonly #toml: string
  #at = 0
  /** The line of `#at`, and the position up to which lines have been counted. */
  #line = 1
  #counted = 0
  readonly #lines = new Map<string, number>()
  /** The number of elements of each array of tables so far, by path. */
  readonly #elements = new Map<string, number>()

  constructor(toml: string) {
    this.#toml = toml
  }

  /** `toml = expression *( newline expression )` */
  scan(): ReadonlyMap<string, number> {
    let table: readonly string[] = []
    for (this.#skipBlank(); this.#at < this.#toml.length; this.#skipBlank()) {
      if (this.#toml[this.#at] === '[') table = this.#header()
      else this.#keyValue(table)
    }
    return this.#lines
  }

  /** `table = std-table / array-table`: `[a.b]`, `[[a.b]]`. Returns the path of the keys that follow. */
  #header(): readonly string[] {
    const isArray = this.#toml.startsWith('[[', this.#at)
    this.#at += isArray ? 2 : 1
    const line = this.#currentLine()
    const path = this.#withinArrays(this.#key())
    this.#record(path, line)
    this.#skipPast(isArray ? ']]' : ']')
    if (!isArray) return path
    const count = this.#elements.get(JSON.stringify(path)) ?? 0
    this.#elements.set(JSON.stringify(path), count + 1)
    const element = [...path, String(count)]
    this.#record(element, line)
    return element
  }

  /** `[a.b]` after `[[a]]` means a key of the last element of `a`. */
  #withinArrays(key: readonly string[]): readonly string[] {
    const path: string[] = []
    for (const [index, part] of key.entries()) {
      path.push(part)
      const count = this.#elements.get(JSON.stringify(path))
      if (count !== undefined && index < key.length - 1) path.push(String(count - 1))
    }
    return path
  }

  /** `keyval = key "=" val` */
  #keyValue(table: readonly string[]): void {
    const line = this.#currentLine()
    const path = [...table, ...this.#key()]
    this.#record(path, line)
    this.#skipPast('=')
    this.#skipBlank()
    this.#value(path)
  }

  /** `key = simple-key *( "." simple-key )`, each bare or quoted. */
  #key(): readonly string[] {
    const parts: string[] = []
    for (;;) {
      this.#skipBlank()
      const start = this.#at
      const quote = this.#toml[start]
      if (quote === '"' || quote === "'") {
        this.#string()
        parts.push(unquote(this.#toml.slice(start, this.#at)))
      } else {
        this.#skipWhile(/[^\s.=\]]*/y)
        parts.push(this.#toml.slice(start, this.#at))
      }
      this.#skipBlank()
      if (this.#toml[this.#at] !== '.') return parts
      this.#at += 1
    }
  }

  /** `val = string / array / inline-table / …` */
  #value(path: readonly string[]): void {
    const first = this.#toml[this.#at]
    if (first === '"' || first === "'") this.#string()
    else if (first === '[') this.#array(path)
    else if (first === '{') this.#inlineTable(path)
    // At least one character, so that a text that is not TOML is read to its end too.
    else this.#skipWhile(/[^,\]}#\r\n]+/y)
  }

  /** `array = "[" [ array-values ] "]"`: lines and comments can appear between the elements. */
  #array(path: readonly string[]): void {
    this.#at += 1
    for (let index = 0; this.#more(']'); index += 1) {
      const element = [...path, String(index)]
      this.#record(element, this.#currentLine())
      this.#value(element)
    }
  }

  /** `inline-table = "{" [ inline-table-keyvals ] "}"` */
  #inlineTable(path: readonly string[]): void {
    this.#at += 1
    while (this.#more('}')) this.#keyValue(path)
  }

  /** True if there is another element before `end`; skips separators, and `end` itself. */
  #more(end: string): boolean {
    this.#skipBlank()
    if (this.#toml[this.#at] === ',') {
      this.#at += 1
      this.#skipBlank()
    }
    // At the end of the text the loop ends, even if the text is invalid.
    if (this.#at < this.#toml.length && this.#toml[this.#at] !== end) return true
    this.#at += 1
    return false
  }

  /** `string = ml-basic-string / basic-string / ml-literal-string / literal-string` */
  #string(): void {
    const quote = this.#toml[this.#at] ?? ''
    if (this.#toml.startsWith(quote.repeat(3), this.#at)) {
      // Up to two quotes can precede the three that end it.
      this.#skipWhile(quote === '"' ? /"""(?:\\[\s\S]|[^\\"]|"{1,2}(?!"))*"{3,5}/y : /'''(?:[^']|'{1,2}(?!'))*'{3,5}/y)
    } else {
      this.#skipWhile(quote === '"' ? /"(?:\\.|[^\\"])*"/y : /'[^']*'/y)
    }
  }

  /** White space, line ends and comments. */
  #skipBlank(): void {
    this.#skipWhile(/(?:[\s\uFEFF]+|#[^\n]*)*/y)
  }

  #skipPast(token: string): void {
    const found = this.#toml.indexOf(token, this.#at)
    this.#at = found === -1 ? this.#toml.length : found + token.length
  }

  #skipWhile(pattern: RegExp): void {
    pattern.lastIndex = this.#at
    if (pattern.test(this.#toml)) this.#at = pattern.lastIndex
    else this.#at += 1
  }

  #record(path: readonly string[], line: number): void {
    for (let length = 1; length <= path.length; length += 1) {
      const key = JSON.stringify(path.slice(0, length))
      if (!this.#lines.has(key)) this.#lines.set(key, line)
    }
  }

  /** Continues from the last count, so that the whole text is counted once. */
  #currentLine(): number {
    for (; this.#counted < this.#at; this.#counted += 1) {
      if (this.#toml.charCodeAt(this.#counted) === 10) this.#line += 1
    }
    return this.#line
  }
}

/** Decodes a quoted key with the TOML parser, which decodes escapes. */
function unquote(quoted: string): string {
  if (!quoted.includes('\\')) return quoted.slice(1, -1)
  return String(parse(`key = ${quoted}`).key)
}

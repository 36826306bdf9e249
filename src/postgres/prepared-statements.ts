/**
 * The prepared statements of one connection, by SQL text: bounded, least recently used dropped first. A name
 * is never reused, so a statement that the server lost cannot be confused with another.
 */
import { type FieldDescription, NO_FIELDS } from './fields.ts'

/**
 * Limit on the length of a text that is prepared; longer texts are parsed at each use. A prepared statement's
 * execution plan takes many times the text's size on each connection, and a request that embeds sixty tables
 * has megabytes of it.
 */
const PREPARED_CHARACTERS_MAX = 16_384

/** A prepared statement. */
export interface PreparedStatement {
  readonly name: string
  readonly text: string
  /** True if its Parse has been written; set by the writer. */
  sent: boolean
  /** True if the server has confirmed the Parse, so that the name exists. */
  parsed: boolean
  /** True if the server has also responded to Describe, so that `fields` can be relied on. */
  described: boolean
  /** The described fields; known before the first row of the first use arrives. */
  fields: readonly FieldDescription[]
}

/** The prepared statements of one connection. */
export class PreparedStatements {
  readonly #sizeMax: number
  readonly #byText = new Map<string, PreparedStatement>()
  #toClose: string[] = []
  #made = 0

  /** With size 0 nothing is kept: each use is a new unnamed statement, as transaction poolers require. */
  constructor(sizeMax: number) {
    this.#sizeMax = sizeMax
  }

  get size(): number {
    return this.#byText.size
  }

  /**
   * Returns a statement that the server has described, or a new one to send. The result of a pending Parse is
   * not relied on, because an earlier failure in its batch may skip it; an unnamed statement is used instead.
   */
  use(text: string): PreparedStatement {
    if (this.#sizeMax === 0 || text.length > PREPARED_CHARACTERS_MAX) return unnamed(text)
    const known = this.#byText.get(text)
    if (known !== undefined) {
      if (!known.described) return unnamed(text)
      // A Map keeps insertion order: the first entry is the least recently used. The order need not be exact
      // while there is room.
      if (this.#byText.size * 2 > this.#sizeMax) {
        this.#byText.delete(text)
        this.#byText.set(text, known)
      }
      return known
    }
    if (this.#byText.size >= this.#sizeMax) this.#evict()
    const statement = fresh(`s${++this.#made}`, text)
    this.#byText.set(text, statement)
    return statement
  }

  /**
   * Drops a statement that does not exist in the server or has become invalid; the next use of its text
   * creates another.
   */
  forget(statement: PreparedStatement): void {
    if (this.#byText.get(statement.text) !== statement) return
    this.#byText.delete(statement.text)
    if (statement.parsed) this.#toClose.push(statement.name)
  }

  /**
   * Names to close, returned once. They are written at the beginning of a batch: earlier requests have used
   * them, and no failure can make the server skip them.
   */
  takeToClose(): readonly string[] {
    if (this.#toClose.length === 0) return this.#toClose
    const names = this.#toClose
    this.#toClose = []
    return names
  }

  #evict(): void {
    for (const oldest of this.#byText.values()) {
      this.#byText.delete(oldest.text)
      this.#toClose.push(oldest.name)
      return
    }
  }
}

/** A statement for one use; the next unnamed Parse replaces it in the server. */
export function unnamed(text: string): PreparedStatement {
  return fresh('', text)
}

function fresh(name: string, text: string): PreparedStatement {
  return { name, text, sent: false, parsed: false, described: false, fields: NO_FIELDS }
}

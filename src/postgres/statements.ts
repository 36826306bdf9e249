/**
 * The prepared statements of one connection, keyed by SQL text; bounded, least recently used out first.
 * A name is never used twice, so a statement that the server lost cannot be mistaken for another.
 */
import { type FieldDescription, NO_FIELDS } from './fields.ts'

/**
 * A prepared statement's plan takes the server's memory many times over, on each connection, and a request that embeds sixty tables makes megabytes
 * of it. Texts longer than this are parsed at each use.
 */
const PREPARED_CHARACTERS_MAX = 16_384

export interface Statement {
  readonly name: string
  readonly text: string
  /** False until its Parse has been written; the one who writes it sets this. */
  sent: boolean
  /** The server has confirmed the Parse: it knows the name. */
  parsed: boolean
  /** The server has answered the Describe as well, so that `fields` is true and others may rely on it. */
  described: boolean
  /** What the server described; known before the first row of the first use arrives. */
  fields: readonly FieldDescription[]
}

export class Statements {
  readonly #sizeMax: number
  readonly #byText = new Map<string, Statement>()
  #toClose: string[] = []
  #made = 0

  /** With size 0 nothing is kept: each use is a new unnamed statement, as transaction poolers need it. */
  constructor(sizeMax: number) {
    this.#sizeMax = sizeMax
  }

  get size(): number {
    return this.#byText.size
  }

  /**
   * A statement that the server has described, or one that the caller has to send. While a Parse is under way its result
   * is not relied on – what precedes it in its unit may fail, and then it was skipped – but an unnamed one serves.
   */
  use(text: string): Statement {
    if (this.#sizeMax === 0 || text.length > PREPARED_CHARACTERS_MAX) return unnamed(text)
    const known = this.#byText.get(text)
    if (known !== undefined) {
      if (!known.described) return unnamed(text)
      // A Map keeps the order of insertion: the first is the one that was not used for longest. The order need not be
      // exact while there is room.
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

  /** It does not exist in the server, or is useless there: the next use of its text makes another. */
  forget(statement: Statement): void {
    if (this.#byText.get(statement.text) !== statement) return
    this.#byText.delete(statement.text)
    if (statement.parsed) this.#toClose.push(statement.name)
  }

  /**
   * Names to Close, handed out once. They are written at the very start of a unit: what was sent before has used them,
   * and nothing that fails can make the server skip them.
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

/** For one use; the next Parse without a name takes its place in the server. */
export function unnamed(text: string): Statement {
  return fresh('', text)
}

function fresh(name: string, text: string): Statement {
  return { name, text, sent: false, parsed: false, described: false, fields: NO_FIELDS }
}

/** The keys of an object, and the check that none is repeated. */
import { shorten } from '../text/shorten.ts'
import { BACKSLASH, byteAt, END, refuseBody, unescapeString } from './json-scanner.ts'
import { addToHash, HASH_START, KeyIndex, NEW } from './key-index.ts'

/**
 * The keys of the object that is open at one depth. Consecutive objects usually have the same keys: as long
 * as each key equals, byte for byte, that of the previous object, no key can be repeated. Otherwise a few
 * keys are compared with each other, and many are put into a hash table.
 */
export class DistinctKeys {
  readonly #body: Buffer
  readonly #text: string
  // The offsets of the keys, without their quotes. The first `#count` entries belong to this object, later
  // ones to the previous object.
  readonly #starts: number[] = []
  readonly #ends: number[] = []
  #count = 0
  #countBefore = 0
  #isRepeating = false
  /** True if no key at this depth had an escape: then keys are equal if their bytes are. */
  #isPlain = true
  /** Null until an object has many keys. */
  #index: KeyIndex | null = null
  #isIndexed = false
  /** The decoded key at `#lastIndex`, which is requested before and after its value is read; −1 if none. */
  #last = ''
  #lastIndex = -1
  /** The keys of the last object requested; all objects since began with the same keys. */
  #names: readonly string[] | null = null

  /** `text` is the body as latin1. */
  constructor(body: Buffer, text: string) {
    this.#body = body
    this.#text = text
  }

  open(): void {
    this.#countBefore = this.#count
    this.#count = 0
    this.#isRepeating = true
    this.#isIndexed = false
  }

  /**
   * Accepts the key whose quote is at `start` if it equals that of the previous object, and returns its end;
   * otherwise END.
   */
  repeat(start: number): number {
    const index = this.#count
    if (!this.#isRepeating || index >= this.#countBefore) return END
    const body = this.#body
    const end = this.#ends[index] as number
    let at = start + 1
    for (let other = this.#starts[index] as number; other <= end; other += 1) {
      if (byteAt(body, at) !== body[other]) return END
      at += 1
    }
    this.#count += 1
    return at
  }

  /**
   * Adds a key that `repeat` did not accept, by its offsets between the quotes. It is plain if it has no
   * escape.
   */
  add(start: number, end: number, isPlain: boolean): void {
    const index = this.#count
    this.#isRepeating = false
    this.#names = null
    if (!isPlain) this.#isPlain = false
    if (this.#isPlain && index < COMPARED_MAX) this.#compare(index, start, end)
    else this.#lookUp(index, start, end)
    this.#starts[index] = start
    this.#ends[index] = end
    this.#lastIndex = -1
    this.#count += 1
  }

  names(): readonly string[] {
    if (this.#names?.length === this.#count) return this.#names
    const names: string[] = []
    for (let index = 0; index < this.#count; index += 1) names.push(this.#name(index))
    this.#names = names
    return names
  }

  lastName(): string {
    const index = this.#count - 1
    if (this.#lastIndex !== index) {
      this.#lastIndex = index
      this.#last = this.#name(index)
    }
    return this.#last
  }

  #name(index: number): string {
    return this.#decode(this.#starts[index] as number, this.#ends[index] as number)
  }

  #compare(count: number, start: number, end: number): void {
    for (let index = 0; index < count; index += 1) {
      if (this.#isSame(index, start, end)) this.#refuse(start, end)
    }
  }

  #isSame(index: number, start: number, end: number): boolean {
    const body = this.#body
    const other = this.#starts[index] as number
    const length = end - start
    if ((this.#ends[index] as number) - other !== length) return false
    for (let offset = 0; offset < length; offset += 1) {
      if (body[other + offset] !== body[start + offset]) return false
    }
    return true
  }

  #lookUp(count: number, start: number, end: number): void {
    this.#index ??= new KeyIndex()
    if (!this.#isIndexed) {
      this.#isIndexed = true
      this.#index.clear()
      for (let index = 0; index < count; index += 1) {
        this.#enter(this.#index, this.#starts[index] as number, this.#ends[index] as number)
      }
    }
    this.#enter(this.#index, start, end)
  }

  #enter(index: KeyIndex, start: number, end: number): void {
    const isEqual = (other: number) => this.#isSame(other, start, end) || this.#isSameText(other, start, end)
    if (index.add(this.#hash(start, end), isEqual) !== NEW) this.#refuse(start, end)
  }

  #isSameText(index: number, start: number, end: number): boolean {
    return !this.#isPlain && this.#name(index) === this.#decode(start, end)
  }

  /** The hash of the key's UTF-8 after resolving escapes. */
  #hash(start: number, end: number): number {
    const body = this.#body
    let hash = HASH_START
    for (let at = start; at < end; at += 1) {
      const byte = body[at] as number
      if (byte === BACKSLASH) return this.#hashEscaped(start, end)
      hash = addToHash(hash, byte)
    }
    return hash
  }

  #hashEscaped(start: number, end: number): number {
    const text = this.#decode(start, end)
    let hash = HASH_START
    for (let at = 0; at < text.length; at += 1) {
      const code = text.charCodeAt(at)
      if (code > 0x7f) return hashBytes(Buffer.from(text))
      hash = addToHash(hash, code)
    }
    return hash
  }

  #decode(start: number, end: number): string {
    const body = this.#body
    let at = start
    while (at < end && (body[at] as number) < 0x80) at += 1
    if (at < end) return unescapeString(body.toString('utf8', start, end))
    return unescapeString(
      end - start < COPIED_BELOW ? this.#text.slice(start, end) : body.toString('latin1', start, end),
    )
  }

  #refuse(start: number, end: number): never {
    const key = shorten(this.#decode(start, end))
    refuseBody(this.#body, start - 1, `key "${key}" is given twice in one object; keep one of them`)
  }
}

/** Up to this number of keys, comparing each with each is cheaper than a hash table. */
const COMPARED_MAX = 8

/** V8 copies shorter slices; longer ones keep the whole text in memory, so they are decoded separately. */
const COPIED_BELOW = 13

function hashBytes(bytes: Buffer): number {
  let hash = HASH_START
  for (const byte of bytes) hash = addToHash(hash, byte)
  return hash
}

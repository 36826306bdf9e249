/**
 * A hash table of the keys of one JSON object, which are compared as bytes. A `Set` of strings would take
 * five times as long: a body of 2 MiB can have 200 000 keys, and other requests wait while it is parsed.
 */
import { randomInt } from 'node:crypto'

/** Entries of a new table; a power of two. */
const SIZE_MIN = 64

/** The result of `add` for a new key. */
export const NEW = -1

/** A random seed that senders do not know; otherwise keys could be chosen that all have the same hash. */
const SEED = randomInt(2 ** 32) | 0
const FACTOR = randomInt(2 ** 31) * 2 + 1

export const HASH_START: number = SEED

/** The hash of one more byte. */
export function addToHash(hash: number, byte: number): number {
  const product = Math.imul(hash ^ byte, FACTOR)
  return product ^ (product >>> 15)
}

export class KeyIndex {
  /** The number of the key in each slot, counted from 1; 0: the slot is free. */
  #slots = new Int32Array(SIZE_MIN)
  /** The hashes, by number of the key. */
  #hashes = new Int32Array(SIZE_MIN / 2)
  #count = 0

  clear(): void {
    this.#count = 0
    // Clearing a large table for each of many small objects would take longer than reading them.
    if (this.#slots.length > SIZE_MIN) this.#slots = new Int32Array(SIZE_MIN)
    else this.#slots.fill(0)
  }

  /**
   * Adds the next key, unless an equal key exists. Returns the number of that key, counted from 0, or `NEW`.
   */
  add(hash: number, isEqual: (other: number) => boolean): number {
    if (this.#count * 2 >= this.#slots.length) this.#grow()
    const slots = this.#slots
    const mask = slots.length - 1
    let slot = hash & mask
    for (let found = slots[slot] as number; found !== 0; found = slots[slot] as number) {
      if (this.#hashes[found - 1] === hash && isEqual(found - 1)) return found - 1
      slot = (slot + 1) & mask
    }
    this.#hashes[this.#count] = hash
    this.#count += 1
    slots[slot] = this.#count
    return NEW
  }

  #grow(): void {
    const mask = this.#slots.length * 4 - 1
    const slots = new Int32Array(mask + 1)
    const hashes = new Int32Array((mask + 1) / 2)
    hashes.set(this.#hashes.subarray(0, this.#count))
    for (let index = 0; index < this.#count; index += 1) {
      let slot = (hashes[index] as number) & mask
      while (slots[slot] !== 0) slot = (slot + 1) & mask
      slots[slot] = index + 1
    }
    this.#slots = slots
    this.#hashes = hashes
  }
}

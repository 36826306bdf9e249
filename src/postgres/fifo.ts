/** A queue with cheap operations at both ends, in a ring; an array would copy itself on every `shift`. */

/** The smallest capacity, a power of two. */
const CAPACITY_MIN = 16

/** A first-in, first-out queue. */
export class Fifo<T> {
  /** Its length is a power of two. */
  #ring: (T | undefined)[] = new Array(CAPACITY_MIN).fill(undefined)
  #head = 0
  #length = 0

  get length(): number {
    return this.#length
  }

  push(item: T): void {
    if (this.#length === this.#ring.length) this.#resize(this.#ring.length * 2)
    this.#ring[(this.#head + this.#length) & (this.#ring.length - 1)] = item
    this.#length++
  }

  /** Returns an item to the front. */
  unshift(item: T): void {
    if (this.#length === this.#ring.length) this.#resize(this.#ring.length * 2)
    this.#head = (this.#head - 1) & (this.#ring.length - 1)
    this.#ring[this.#head] = item
    this.#length++
  }

  peek(): T | undefined {
    return this.#ring[this.#head]
  }

  shift(): T | undefined {
    if (this.#length === 0) return undefined
    const item = this.#ring[this.#head]
    // Release the reference.
    this.#ring[this.#head] = undefined
    this.#head = (this.#head + 1) & (this.#ring.length - 1)
    this.#length--
    // A queue that was long once does not keep its memory.
    if (this.#length === 0 && this.#ring.length > CAPACITY_MIN) this.#resize(CAPACITY_MIN)
    return item
  }

  /** Removes an item wherever it is; returns false if it is not in the queue. */
  remove(item: T): boolean {
    const ring = this.#ring
    const last = ring.length - 1
    let index = 0
    while (index < this.#length && ring[(this.#head + index) & last] !== item) index++
    if (index === this.#length) return false
    for (; index < this.#length - 1; index++) {
      ring[(this.#head + index) & last] = ring[(this.#head + index + 1) & last]
    }
    ring[(this.#head + index) & last] = undefined
    this.#length--
    return true
  }

  *[Symbol.iterator](): Generator<T> {
    for (let index = 0; index < this.#length; index++) {
      yield this.#ring[(this.#head + index) & (this.#ring.length - 1)] as T
    }
  }

  /** Empties the queue. */
  drain(): T[] {
    const items = [...this]
    this.#fill([], CAPACITY_MIN)
    return items
  }

  #resize(capacity: number): void {
    this.#fill([...this], capacity)
  }

  #fill(items: readonly T[], capacity: number): void {
    this.#ring = new Array(capacity).fill(undefined)
    for (const [index, item] of items.entries()) this.#ring[index] = item
    this.#head = 0
    this.#length = items.length
  }
}

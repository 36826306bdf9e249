/** A queue with cheap operations at both ends; an array would copy itself on every `shift`. */

/** Below this size, the empty front is not compacted. */
const COMPACT_FROM = 64

/** A first-in, first-out queue. */
export class Fifo<T> {
  #items: T[] = []
  #head = 0

  get length(): number {
    return this.#items.length - this.#head
  }

  push(item: T): void {
    this.#items.push(item)
  }

  /** Returns an item to the front. */
  unshift(item: T): void {
    if (this.#head > 0) this.#items[--this.#head] = item
    else this.#items.unshift(item)
  }

  peek(): T | undefined {
    return this.#items[this.#head]
  }

  shift(): T | undefined {
    const item = this.#items[this.#head]
    if (this.#head === this.#items.length) return undefined
    // Release the reference.
    this.#items[this.#head++] = undefined as T
    if (this.#head === this.#items.length) {
      this.#items.length = 0
      this.#head = 0
    } else if (this.#head >= COMPACT_FROM && this.#head * 2 >= this.#items.length) {
      this.#items = this.#items.slice(this.#head)
      this.#head = 0
    }
    return item
  }

  /** Removes an item wherever it is; returns false if it is not in the queue. */
  remove(item: T): boolean {
    const index = this.#items.indexOf(item, this.#head)
    if (index === -1) return false
    if (index === this.#head) this.shift()
    else this.#items.splice(index, 1)
    return true
  }

  *[Symbol.iterator](): Generator<T> {
    for (let index = this.#head; index < this.#items.length; index++) yield this.#items[index] as T
  }

  /** Empties the queue. */
  drain(): T[] {
    const items = this.#items.slice(this.#head)
    this.#items = []
    this.#head = 0
    return items
  }
}
